"""`ComponentOptions`: the components of a cluster beside its API server. It imports little, since commands need it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec


class ComponentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Controllers and scheduler, `nodes` whose pods are processes of this machine, and `simulated` nodes.

    Nodes keep logs and volumes in `folder`, a temporary one by default. Containers see neither it nor the `hidden` folders.
    `images` is a file with additional images. The components start with the server, or, if `deferred`, with
    `EmbeddedCluster.start_components`.
    """

    controllers: bool = True
    nodes: int = 0
    simulated: int = 0
    folder: Path | None = None
    images: Path | None = None
    hidden: tuple[Path, ...] = ()
    deferred: bool = False


def unpacked_images(folder: Path) -> Path:
    """Returns where the images that were loaded are, in the folder of the nodes."""
    return folder / "images"


POWER: Final = "navarch.dev/power"
"""Annotation of a Node: a node that has it with the value `off` does not run."""
POWER_OFF: Final = "off"
