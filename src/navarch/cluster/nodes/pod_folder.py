"""`PodFolder`: what a node keeps of one pod on this machine: volumes, logs, messages, its hosts file."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from navarch.cluster.nodes.warden.program.root import Root

__all__ = ["PodFolder"]


class PodFolder:
    """The folder of one pod beneath that of its node, `pods/<uid>`.

    Containers may have replaced whatever is in it, by links too; each operation begins at the node's folder and never
    leaves this one.
    """

    def __init__(self, node: Path, uid: str) -> None:
        self._node = node
        self._place = f"pods/{uid}"
        self.uid = uid
        self.path = node / self._place

    @classmethod
    def all_of(cls, node: Path) -> list[Self]:
        """Those that a node has."""
        with Root.at(node, create=True) as root:
            return [cls(node, name) for name in root.list("pods")] if root.exists("pods") else []

    def open(self, path: str = ".", *, create: int | None = None) -> Root:
        """One of its directories; with `create` it is made with that mode if it is missing, and those
        above it for all to read. Raises `OSError`.
        """
        if create is None:
            with Root.at(self._node) as node:
                return node.open_root(f"{self._place}/{path}")
        with Root.at(self._node, create=True) as node:
            above, _, _ = f"{self._place}/{path}".rpartition("/")
            node.make_directories(above, 0o755)
            return node.open_root(f"{self._place}/{path}", create=create)

    def remove(self) -> None:
        """Removes it with all that is in it. Raises `OSError` if something is left."""
        with Root.at(self._node) as node:
            node.remove_all(self._place)
