"""`Mounts`: the mounts of one container, with sources held by descriptors, so that they cannot be replaced after the
start.
"""

from __future__ import annotations

import os

from navarch.cluster.nodes.shim.program.root import Root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Mounts:
    """Sources, targets, and whether they are only to be read: `places`. What is in the `hidden` folders is not shown.

    A part of a volume (`subPath`) is opened beneath the volume, and is named by the descriptor: a container that replaces
    it by a link meanwhile changes nothing. Raises `OSError` for one that leaves its volume or is not there.
    """

    def __init__(self, planned: list[Any], hidden: list[str]) -> None:
        self.hidden = hidden
        self._held: list[int] = []
        self.places: list[tuple[str, str, bool]] = []
        try:
            for source, target, read_only, sub_path in planned:
                self.places.append((self._found(source, sub_path), target, read_only))
        except OSError:
            self.close()
            raise

    def _found(self, source: str, sub_path: str) -> str:
        if not sub_path:
            return source
        with Root.at(source) as volume:
            fd = volume.open(sub_path, os.O_PATH, links="beneath")
        self._held.append(fd)
        return f"/proc/self/fd/{fd}"

    def copy(self) -> Mounts:
        """Returns a copy with its own descriptors, for another process of the container."""
        copied = Mounts([], self.hidden)
        copies = {f"/proc/self/fd/{fd}": os.dup(fd) for fd in self._held}
        copied._held += copies.values()
        for source, target, read_only in self.places:
            copied.places.append((f"/proc/self/fd/{copies[source]}" if source in copies else source, target, read_only))
        return copied

    def close(self) -> None:
        """Closes the descriptors."""
        while self._held:
            os.close(self._held.pop())
