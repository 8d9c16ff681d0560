"""Checks of the volumes of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.server.builtin.checks.common import exactly_one, required_name, unique
from navarch.cluster.server.builtin.checks.containers import check_field_reference, check_local_path
from navarch.cluster.server.causes import invalid, required
from navarch.cluster.server.request import Json
from navarch.errors import Cause

__all__ = ["check_volumes"]

_ORDER: Final = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flexVolume",
    "configMap",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "persistentVolumeClaim",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
"""In which order the server looks for them: the first counts, more are refused."""
_REQUIRED: Final = {
    "hostPath": ("path",),
    "secret": ("secretName",),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "nfs": ("server", "path"),
    "csi": ("driver",),
}
_HIGHEST_MODE: Final = 0o777
_FILE_FIELDS: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)


def check_volumes(volumes: Any, path: str) -> Iterator[Cause]:
    """All volumes of a pod."""
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        yield from required_name(volume.get("name"), f"{place}.name")
        yield from _check_source(volume, place)
    yield from unique((each.get("name"), f"{path}[{index}].name") for index, each in enumerate(volumes))


def _check_source(volume: Json, path: str) -> Iterator[Cause]:
    given = [name for name in _ORDER if name in volume]
    yield from exactly_one(given, path, "volume type")
    if not given:
        return
    kind, place = given[0], f"{path}.{given[0]}"
    source = volume[kind]
    for field in _REQUIRED.get(kind, ()):
        if not source.get(field):
            yield required(f"{place}.{field}")
    if kind == "hostPath" and ".." in source.get("path", "").split("/"):
        yield invalid(f"{place}.path", source["path"], "must not contain '..'")
    yield from _check_mode(source, "defaultMode", place)
    if kind in {"secret", "configMap"}:
        yield from _check_items(source.get("items") or (), f"{place}.items")
    elif kind == "downwardAPI":
        yield from _check_files(source.get("items") or (), place)


def _check_mode(source: Json, field: str, path: str) -> Iterator[Cause]:
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= _HIGHEST_MODE:
        yield invalid(f"{path}.{field}", mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _check_items(items: Any, path: str) -> Iterator[Cause]:
    for index, item in enumerate(items):
        place = f"{path}[{index}]"
        if not item.get("key"):
            yield required(f"{place}.key")
        if not item.get("path"):
            yield required(f"{place}.path")
        else:
            yield from check_local_path(item["path"], f"{place}.path")
        yield from _check_mode(item, "mode", place)


def _check_files(items: Any, path: str) -> Iterator[Cause]:
    for item in items:
        if not item.get("path"):
            yield required(f"{path}.path")
        else:
            yield from check_local_path(item["path"], f"{path}.path")
        if "fieldRef" in item:
            yield from check_field_reference(item["fieldRef"], f"{path}.fieldRef", _FILE_FIELDS)
        elif "resourceFieldRef" not in item:
            yield required(path, "one of fieldRef and resourceFieldRef is required")
