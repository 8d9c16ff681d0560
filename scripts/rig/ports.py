"""Free loopback ports."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

from rig.commands import LOOPBACK, Ports

RANGE = range(20_000, 30_000)
"""Below the range that the kernel hands out to outgoing connections, so that none of those can take a port between
the moment it is found free and the moment its server binds it."""


def find_free() -> Ports:
    """Return ports on which nothing listens now."""
    free = _free()
    return Ports(*(next(free) for _ in range(5)))


def _free() -> Iterator[int]:
    for port in random.sample(RANGE, len(RANGE)):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        yield port
    raise OSError(f"no free port on {LOOPBACK} in {RANGE}")
