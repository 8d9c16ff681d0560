"""What runs beside the API server of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Equipment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """The built-in controllers and the scheduler, nodes whose pods are processes of this machine, and `simulated` ones.

    Logs, volumes and everything else of nodes is in `folder`, a temporary one by default; `images` is the file with the
    images that were added to those that the machine has anyway.
    """

    controllers: bool = True
    nodes: int = 0
    simulated: int = 0
    folder: Path | None = None
    images: Path | None = None
