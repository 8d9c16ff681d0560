"""Mounts of containers that see the machine as it is: they are named by where they are, since they cannot be mounted."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from navarch.cluster.nodes.runtime import Launch, Mount

__all__ = ["Places"]


class Places:
    """Replaces the places of mounts in texts by where their contents are on this machine.

    >>> from pathlib import Path
    >>> places = Places([Mount(Path("/pods/7/data"), "/var/etcd")])
    >>> places.in_text("--data-dir=/var/etcd/data --other=/var/etcdish")
    '--data-dir=/pods/7/data/data --other=/var/etcdish'
    """

    def __init__(self, mounts: Iterable[Mount]) -> None:
        self._sources = {
            target: str(mount.source / mount.sub_path) for mount in mounts if (target := mount.target.rstrip("/"))
        }
        targets = "|".join(re.escape(target) for target in sorted(self._sources, key=len, reverse=True))
        self._pattern = re.compile(rf"(?:(?<![\w./-])|(?<=://))(?:{targets})(?![\w.-])")

    def in_text(self, text: str) -> str:
        """The text with other places; a place inside another path or name is none."""
        return self._pattern.sub(lambda found: self._sources[found[0]], text) if self._sources else text

    def in_all(self, texts: Iterable[str]) -> tuple[str, ...]:
        """The same for each of them."""
        return tuple(self.in_text(text) for text in texts)

    def in_launch(self, launch: Launch) -> Launch:
        """The launch with other places in its command, its environment and its folder."""
        env = {name: self.in_text(value) for name, value in launch.env.items()}
        return msgspec.structs.replace(
            launch, argv=self.in_all(launch.argv), env=env, folder=self.in_text(launch.folder)
        )
