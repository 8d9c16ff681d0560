"""Events: checks, fields, columns, their expiry, and the conversion between the groups `""` and `events.k8s.io`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from navarch._base.clock import Clock
from navarch.cluster.server.kinds.builtin.generic.checks import label_name
from navarch.cluster.server.kinds.builtin.generic.columns import Ages, name_of
from navarch.cluster.server.objects.metadata import immutable_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import invalid, required
from navarch.cluster.storage import EVENT_SECONDS, EVENTS_PREFIX, ChangedError, Storage, StorageError
from navarch.errors import Cause

_log = logging.getLogger("navarch.cluster.server")

_LOOK_SECONDS: Final = 60.0


class _SeenEvent(NamedTuple):
    revision: int
    since: float


class EventExpiry:
    """Deletes events to which nothing has been added for an hour, as Kubernetes does.

    How old they are is counted from when this server saw them first: after a restart they have another hour.
    """

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._seen: dict[str, _SeenEvent] = {}

    async def run(self) -> None:
        """Works until it is cancelled; while the store does not answer, nothing is forgotten."""
        while True:
            await self._clock.liveness.sleep(_LOOK_SECONDS)
            try:
                await self._forget_old()
            except StorageError as error:
                _log.debug("the expiry of Events failed: %s; retried in 60 s", error)

    async def _forget_old(self) -> None:
        now, page = self._clock.monotonic(), await self._storage.page(EVENTS_PREFIX)
        self._seen = {item.key: self._known(item.key, item.revision, now) for item in page.items}
        for key, seen in self._seen.items():
            if now - seen.since >= EVENT_SECONDS:
                with contextlib.suppress(ChangedError):  # somebody has added to it, or deleted it
                    await self._storage.delete(key, expected=seen.revision)

    def _known(self, key: str, revision: int, now: float) -> _SeenEvent:
        known = self._seen.get(key)
        return known if known is not None and known.revision == revision else _SeenEvent(revision, now)


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


def event_cells(value: Json, ages: Ages) -> list[Any]:
    """Last seen, type, reason, object, message; subobject, source, first seen, count, name."""
    source = value.get("source") or {}
    component = source.get("component") or value.get("reportingComponent") or ""
    instance = source.get("host") or value.get("reportingInstance") or ""
    first = ages.since(value.get("firstTimestamp") or value.get("eventTime"))
    last = ages.since(value["lastTimestamp"]) if value.get("lastTimestamp") else first
    count = value.get("count") or 1
    if (series := value.get("series")) is not None:
        last, count = ages.since(series.get("lastObservedTime")), series.get("count", 0)
    about = value.get("involvedObject") or {}
    return [
        last,
        value.get("type", ""),
        value.get("reason", ""),
        _about(about),
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        value.get("message", "").strip(),
        first,
        count,
        name_of(value),
    ]


def _about(about: Json) -> str:
    kind = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


_OLD_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}


def events_v1_cells(value: Json, ages: Ages) -> list[Any]:
    """Does the same for an event of `events.k8s.io`."""
    return event_cells({_OLD_NAMES.get(key, key): part for key, part in value.items()}, ages)


_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def event_fields(value: Json) -> Mapping[str, str]:
    """Returns the selectable fields of an Event, which may be stored in the other group's shape."""
    about = value.get("involvedObject") or value.get("regarding") or {}
    component = value.get("reportingComponent") or value.get("reportingController") or ""
    source = value.get("source") or value.get("deprecatedSource") or {}
    return {
        **{f"involvedObject.{name}": about.get(name) or "" for name in _ABOUT},
        "reason": value.get("reason") or "",
        "reportingComponent": component,
        "source": source.get("component") or component,
        "type": value.get("type") or "",
    }


def events_v1_fields(value: Json) -> Mapping[str, str]:
    """Does the same for an event of `events.k8s.io`."""
    about = value.get("regarding") or value.get("involvedObject") or {}
    return {
        **{f"regarding.{name}": about.get(name) or "" for name in _ABOUT},
        "reason": value.get("reason") or "",
        "reportingController": value.get("reportingController") or value.get("reportingComponent") or "",
        "type": value.get("type") or "",
    }


_EVENT_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Fields of an event in the core group, and what `events.k8s.io` calls them."""
_CORE_NAMES: Final = {new: old for old, new in _EVENT_NAMES.items()}
_OLD_ALWAYS: Final[Json] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_NEW_ALWAYS: Final[Json] = {"eventTime": None, "regarding": {}, "deprecatedSource": {}}
_LEFT_OUT_EMPTY: Final = frozenset(
    {"deprecatedFirstTimestamp", "deprecatedLastTimestamp", "reportingController", "reportingInstance"}
)
"""Empty fields that Go writes in one shape and omits in the other."""


async def convert_events(objects: Sequence[Json], api_version: str) -> list[Json]:
    return [_event(each, api_version) for each in objects]


def _event(value: Json, api_version: str) -> Json:
    if value.get("apiVersion") == api_version:
        return value
    names, always = (_CORE_NAMES, _OLD_ALWAYS) if api_version == "v1" else (_EVENT_NAMES, _NEW_ALWAYS)
    found: Json = {names.get(key, key): part for key, part in value.items()}
    if api_version != "v1":
        found = {key: part for key, part in found.items() if part or key not in _LEFT_OUT_EMPTY}
    return {**always, **found, "apiVersion": api_version}
