"""How often the template of a DaemonSet has changed: an annotation says it, for old clients."""

from __future__ import annotations

from typing import Final

from navarch.api.integers import parse_int64
from navarch.cluster.server.objects.types import Operation
from navarch.cluster.server.wire.request import Json

__all__ = ["begin_template_generation", "count_template_generation", "keep_template_generation", "noted"]

_NOTE: Final = "deprecated.daemonset.template.generation"


def noted(value: Json) -> None:
    """Kubernetes writes the annotation into everything that it reads, so that it belongs to whoever writes."""
    _note(value, _generation(value))


def begin_template_generation(value: Json, _: Operation) -> None:
    """A new DaemonSet begins with 1, or with what it says."""
    _note(value, max(1, _generation(value)))


def count_template_generation(value: Json, old: Json, _: Operation) -> None:
    """It grows with each change of the template."""
    _note(value, _generation(old) + (value["spec"]["template"] != old["spec"]["template"]))


def keep_template_generation(value: Json, old: Json, _: Operation) -> None:
    """A write of the status leaves it alone."""
    _note(value, _generation(old))


def _generation(value: Json) -> int:
    text = (value["metadata"].get("annotations") or {}).get(_NOTE, "0")
    return (parse_int64(text) or 0) if text.isdecimal() else 0


def _note(value: Json, generation: int) -> None:
    annotations = value["metadata"].get("annotations") or {}
    value["metadata"]["annotations"] = {**annotations, _NOTE: str(generation)}
