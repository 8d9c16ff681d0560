"""Checks of the files that a volume shows: their paths and modes, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.checks.containers import check_field_reference, check_local_path
from navarch.cluster.server.wire.causes import invalid, required, unsupported
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["check_file_path", "check_files", "check_items", "check_mode"]

_HIGHEST_MODE: Final = 0o777
_FILE_FIELDS: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_RESOURCES: Final = tuple(
    sorted(f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage"))
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")


def check_mode(source: Json, field: str, path: str) -> Iterator[Cause]:
    """Who may read a file, or all of them."""
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= _HIGHEST_MODE:
        yield invalid(f"{path}.{field}", mode, "must be a number between 0 and 0777 (octal), both inclusive")


def check_file_path(text: str, field: str) -> Iterator[Cause]:
    """A path inside a volume that a node writes: names that begin with `..` are its own."""
    yield from check_local_path(text, field)
    if text.startswith("..") and not text.startswith("../"):
        yield invalid(field, text, "must not start with '..'")


def check_items(items: Any, path: str) -> Iterator[Cause]:
    """Keys of a ConfigMap or a Secret, and where they are to be."""
    for index, item in enumerate(items):
        place = f"{path}[{index}]"
        if not item.get("key"):
            yield required(f"{place}.key")
        if not item.get("path"):
            yield required(f"{place}.path")
        yield from check_file_path(item.get("path", ""), f"{place}.path")
        yield from check_mode(item, "mode", place)


def check_files(items: Any, path: str) -> Iterator[Cause]:
    """Fields of the pod, and where they are to be."""
    for item in items:
        if not item.get("path"):
            yield required(f"{path}.path")
        yield from check_file_path(item.get("path", ""), f"{path}.path")
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            yield from check_field_reference(field, f"{path}.fieldRef", _FILE_FIELDS)
            if resource is not None:
                yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
        elif resource is not None:
            yield from _check_resource(resource, f"{path}.resourceFieldRef")
        else:
            yield required(path, "one of fieldRef and resourceFieldRef is required")
        yield from check_mode(item, "mode", path)


def _check_resource(reference: Json, path: str) -> Iterator[Cause]:
    resource = reference.get("resource", "")
    if not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield unsupported(f"{path}.resource", resource, _RESOURCES)
