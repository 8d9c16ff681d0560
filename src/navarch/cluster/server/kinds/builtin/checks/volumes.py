"""Checks of the volumes of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.checks.common import choice, exactly_one, required_name, unique
from navarch.cluster.server.kinds.builtin.checks.files import check_files, check_items, check_mode
from navarch.cluster.server.kinds.builtin.checks.projections import check_projected
from navarch.cluster.server.wire.causes import invalid, required
from navarch.cluster.server.wire.request import Json
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
_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
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
    if kind == "hostPath" and source.get("path"):
        if ".." in source["path"].split("/"):
            yield invalid(f"{place}.path", source["path"], "must not contain '..'")
        yield from choice(source.get("type"), f"{place}.type", _HOST_PATHS)
    yield from check_mode(source, "defaultMode", place)
    if kind in {"secret", "configMap"}:
        yield from check_items(source.get("items") or (), f"{place}.items")
    elif kind == "downwardAPI":
        yield from check_files(source.get("items") or (), place)
    elif kind == "projected":
        yield from check_projected(source, place)
