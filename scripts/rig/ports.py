"""Free loopback ports."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice

from rig.commands import LOOPBACK

RANGE = range(20_000, 30_000)
"""Below the range that the kernel hands out to outgoing connections, so that none of those can take a port between
the moment it is found free and the moment its server binds it."""


@contextmanager
def reserved(count: int) -> Iterator[list[int]]:
    """Ports on which nothing listens now, and that nobody else is given here, in whatever process, until the end.

    For each a datagram socket of the same number is held: it is in no server's way, and goes even with kill -9.
    """
    with ExitStack() as locks:
        yield [locks.enter_context(lock).getsockname()[1] for lock in islice(_locks(), count)]


def _locks() -> Iterator[socket.socket]:
    for port in random.sample(RANGE, len(RANGE)):
        if (lock := _lock(port)) is not None:
            yield lock
    raise OSError(f"no free port on {LOOPBACK} in {RANGE}")


def _lock(port: int) -> socket.socket | None:
    lock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        lock.bind((LOOPBACK, port))
        with socket.socket() as probe:
            probe.bind((LOOPBACK, port))
    except OSError:
        lock.close()
        return None
    return lock
