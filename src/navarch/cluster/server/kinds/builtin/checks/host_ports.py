"""Ports of the machine, of which a pod can have each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from navarch.cluster.server.wire.causes import duplicate
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["check_host_ports"]


def check_host_ports(containers: Iterable[Json], path: str) -> Iterator[Cause]:
    """All containers of a pod together."""
    seen: set[str] = set()
    for outer, container in enumerate(containers):
        for inner, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            taken = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if taken in seen:
                yield duplicate(f"{path}[{outer}].ports[{inner}].hostPort", taken)
            seen.add(taken)
