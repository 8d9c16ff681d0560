"""What runs beside the API server of a cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec

__all__ = ["Equipment"]


class Equipment(msgspec.Struct, frozen=True, kw_only=True):
    """The built-in controllers and the scheduler, nodes whose pods are processes of this machine, and `simulated` ones.

    Logs, volumes and everything else of nodes is in `folder`, a temporary one by default, which containers do not see, nor
    what is in the `hidden` folders; `images` is the file with the images that were added to those that the machine has anyway. It begins with the server or, if it `waits`, when
    `EmbeddedCluster.equip` is called.
    """

    controllers: bool = True
    nodes: int = 0
    simulated: int = 0
    folder: Path | None = None
    images: Path | None = None
    hidden: tuple[Path, ...] = ()
    waits: bool = False
