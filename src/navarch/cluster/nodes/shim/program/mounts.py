"""`Mounts`: the mounts of one container, with sources held by descriptors, so that they cannot be replaced after the
start.
"""

from __future__ import annotations

import os

from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Mounts:
    """Sources, targets, and whether they are only to be read: `places`. What is in the `hidden` folders is not shown.

    A part of a volume (`subPath`) is opened beneath the volume, and is named by the descriptor: a container that replaces
    it by a link meanwhile changes nothing. `parts` are the paths of these in their volumes, which may be links, as every
    file of a ConfigMap is. An `image` can be read where it is. Raises `OSError` for a source that is not there, and for a
    part that leaves its volume.
    """

    def __init__(self, planned: list[Any], hidden: list[str], image: str = "") -> None:
        self.hidden = hidden
        self._held: list[int] = []
        self.places: list[tuple[str, str, bool]] = []
        self.parts: list[tuple[str, bool]] = [(os.path.realpath(image), True)] if image else []
        try:
            for source, target, read_only, sub_path in planned:
                self.places.append((self._found(source, sub_path), target, read_only))
                if sub_path:
                    self.parts.append((_named(source, sub_path), read_only))
        except OSError:
            self.close()
            raise

    def _found(self, source: str, sub_path: str) -> str:
        if not sub_path:
            os.stat(source)
            return source
        with ConfinedDirectory.at(source) as volume:
            fd = volume.open(sub_path, os.O_PATH, links="beneath")
        self._held.append(fd)
        return f"/proc/self/fd/{fd}"

    def copy(self) -> Mounts:
        """Returns a copy with its own descriptors, for another process of the container."""
        copied = Mounts([], self.hidden)
        copied.parts += self.parts
        copies = {f"/proc/self/fd/{fd}": os.dup(fd) for fd in self._held}
        copied._held += copies.values()
        for source, target, read_only in self.places:
            copied.places.append((f"/proc/self/fd/{copies[source]}" if source in copies else source, target, read_only))
        return copied

    def close(self) -> None:
        """Closes the descriptors."""
        while self._held:
            os.close(self._held.pop())


def _named(source: str, sub_path: str) -> str:
    """The path of a part of a volume without links on the way to it; the part itself may be one."""
    folder, name = os.path.split(os.path.join(source, sub_path))
    return os.path.join(os.path.realpath(folder), name)
