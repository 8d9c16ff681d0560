"""Writes files of a pod: `PodFolder` is its folder, `write_payload` replaces all files of a volume at once, as
Kubernetes' atomic writer does.

The files are in a versioned folder, `..data` is a link to it, and containers see links through `..data`. A new version
is a new folder; replacing the link switches to it in one step.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self

from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory
from navarch.errors import ContainerError

_MOST_PARTS: Final = 64
"""Each part is a directory that the node makes: a pod of a few bytes could keep it busy with thousands of them."""
_SHOWN: Final = 40
_DATA: Final = "..data"
_FRESH: Final = "..data_tmp"


class PodFolder:
    """The folder `pods/<uid>` of one pod in the folder of its node: volumes, logs, termination messages, hosts file.

    Containers may replace anything in it, also by links. Each operation begins at the node's folder and never leaves
    this one.
    """

    def __init__(self, node: Path, uid: str) -> None:
        self._node = node
        self._place = f"pods/{uid}"
        self.uid = uid
        self.path = node / self._place

    @classmethod
    def all_of(cls, node: Path) -> list[Self]:
        """Returns the folders of all pods of a node."""
        with ConfinedDirectory.at(node, create=True) as root:
            return [cls(node, name) for name in root.list("pods")] if root.exists("pods") else []

    def open(self, path: str = ".", *, create: int | None = None) -> ConfinedDirectory:
        """Opens a directory of the folder; `create` makes it with that mode if it is missing, and its parents with
        0755. Raises `OSError`.
        """
        if create is None:
            with ConfinedDirectory.at(self._node) as node:
                return node.open_directory(f"{self._place}/{path}")
        with ConfinedDirectory.at(self._node, create=True) as node:
            above, _, _ = f"{self._place}/{path}".rpartition("/")
            node.make_directories(above, 0o755)
            return node.open_directory(f"{self._place}/{path}", create=create)

    def remove(self) -> None:
        """Removes the folder with its content. Raises `OSError` if something is left."""
        with ConfinedDirectory.at(self._node) as node:
            node.remove_all(self._place)


def check_depth(path: str, what: str) -> None:
    """Raises `ContainerError` if the path has too many parts; `what` names the field.

    >>> check_depth("a/" * 65, "subPath")
    Traceback (most recent call last):
        ...
    navarch.errors.ContainerError: expected a subPath of at most 64 parts, got 65 in 'a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/'…; choose one with fewer directories
    """
    count = sum(part not in {"", "."} for part in path.split("/"))
    if count > _MOST_PARTS:
        raise ContainerError(
            f"expected a {what} of at most {_MOST_PARTS} parts, got {count} in {path[:_SHOWN]!r}…; "
            "choose one with fewer directories"
        )


class FileProjection(NamedTuple):
    """The content, mode and owner of a file; the default owner is the user of the node."""

    content: bytes
    mode: int = 0o644
    owner: int = -1
    group: int = -1


def write_payload(volume: ConfinedDirectory, files: Mapping[str, FileProjection]) -> bool:
    """Makes the volume hold exactly these files; returns whether anything changed.

    Raises `ContainerError` for a path that leaves the volume, is too deep, or has a name reserved for `..data`.
    """
    for path in files:
        _check(path)
    current = volume.link_target(_DATA) or ""
    if _is_version(current) and _holds(volume, current, files):
        return False
    version = f"..{os.urandom(8).hex()}"
    try:
        with volume.open_directory(version, create=0o755) as made:
            for path, file in files.items():
                _write(made, path, file)
    except OSError:
        volume.remove_all(version)
        raise
    _point_to(volume, version)
    _show(volume, {path.split("/")[0] for path in files})
    for name in volume.list():
        if name.startswith("..") and name not in {_DATA, version}:
            volume.remove_all(name)
    return True


def _check(path: str) -> None:
    parts = path.split("/")
    if path.startswith(("/", "..")) or ".." in parts or not all(parts):
        raise ContainerError(f"expected the path of a file inside the volume, got {path!r}")
    check_depth(path, "path of a file")


def _is_version(name: str) -> bool:
    return name.startswith("..") and name != ".." and "/" not in name


def _holds(volume: ConfinedDirectory, version: str, files: Mapping[str, FileProjection]) -> bool:
    """Returns whether the version has these contents and modes; owners do not change while a pod runs."""
    try:
        with volume.open_directory(version) as held:
            return all(_has(held, path, file) for path, file in files.items()) and all(
                {*held.list(directory)} == names for directory, names in _directories(files).items()
            )
    except OSError:  # it is not what was written
        return False


def _has(version: ConfinedDirectory, path: str, file: FileProjection) -> bool:
    same_mode = stat.S_IMODE(version.stat(path).st_mode) == file.mode
    return same_mode and version.read(path, len(file.content) + 1) == file.content


def _directories(paths: Iterable[str]) -> dict[str, set[str]]:
    """Returns the directories of these files, and the names in each.

    >>> {directory: sorted(names) for directory, names in _directories(["a", "b/c"]).items()}
    {'.': ['a', 'b'], 'b': ['c']}
    """
    found: dict[str, set[str]] = {".": set()}
    for path in paths:
        parts = path.split("/")
        for end, name in enumerate(parts):
            found.setdefault("/".join(parts[:end]) or ".", set()).add(name)
    return found


def _write(version: ConfinedDirectory, path: str, file: FileProjection) -> None:
    above, _, _ = path.rpartition("/")
    if above:
        version.make_directories(above, 0o755)
    owner, group = (file.owner, file.group) if os.geteuid() == 0 else (-1, -1)
    version.create(path, file.content, file.mode, owner, group)


def _point_to(volume: ConfinedDirectory, version: str) -> None:
    volume.remove_all(_FRESH)
    volume.symlink(version, _FRESH)
    if volume.exists(_DATA) and volume.link_target(_DATA) is None:
        volume.remove_all(_DATA)
    volume.move(_FRESH, _DATA)


def _show(volume: ConfinedDirectory, names: set[str]) -> None:
    """Links the names to the current version, and removes everything else."""
    for name in volume.list():
        is_ours = name in names and volume.link_target(name) == f"{_DATA}/{name}"
        if not name.startswith("..") and not is_ours:
            volume.remove_all(name)
    for name in names:
        if not volume.exists(name):
            volume.symlink(f"{_DATA}/{name}", name)
