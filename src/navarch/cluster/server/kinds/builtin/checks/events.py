"""Checks of Events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.cluster.server.kinds.builtin.checks.common import label_name
from navarch.cluster.server.objects.metadata import immutable_faults
from navarch.cluster.server.wire.causes import invalid, required
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["check_event"]

_ELSEWHERE: Final = "does not match event.namespace"
_ANYWHERE: Final = frozenset({"default", "kube-system"})
_SHORT: Final = 128
_NOTE: Final = 1024
_FIXED: Final = {
    "regarding": "involvedObject",
    "reason": "reason",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "type": "type",
    "eventTime": "eventTime",
    "action": "action",
    "related": "related",
    "reportingController": "reportingController",
    "reportingInstance": "reportingInstance",
}


def check_event(value: Json) -> Iterator[Cause]:
    """An Event is where the object is that it is about; one that says when it happened says who reports it, too."""
    about = (value.get("involvedObject") or value.get("regarding") or {}).get("namespace", "")
    own = value["metadata"].get("namespace", "")
    if value.get("eventTime"):
        if not about and own not in _ANYWHERE:
            yield invalid("involvedObject.namespace", about, _ELSEWHERE)
        yield from _check_report(value)
    elif about not in {own, ""} or (not about and own != "default"):
        yield invalid("involvedObject.namespace", about, _ELSEWHERE)


def check_event_update(value: Json, old: Json) -> Iterator[Cause]:
    """An Event that was reported says the same ever after; only how often it was seen again may change."""
    for name, told in _FIXED.items():
        yield from immutable_faults(value.get(name), old.get(name), told)


def _check_report(value: Json) -> Iterator[Cause]:
    reporter = "reportingComponent" if value["apiVersion"] == "v1" else "reportingController"
    if not value.get(reporter):
        yield required(reporter)
    yield from label_name(value.get(reporter, ""), reporter)
    for name in ("reportingInstance", "action", "reason"):
        if not value.get(name):
            yield required(name)
        yield from _check_length(value.get(name, ""), name, _SHORT)
    yield from _check_length(value.get("message") or value.get("note") or "", "message", _NOTE)


def _check_length(text: str, field: str, most: int) -> Iterator[Cause]:
    if len(text.encode()) > most:
        yield invalid(field, "", f"can have at most {most} characters")
