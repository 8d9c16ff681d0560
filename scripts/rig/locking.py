"""Take turns with other processes of the rig."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(lock: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock file; `on_wait` is called if another process holds it now.

    The kernel releases the lock when its holder dies, so no stale lock can remain. The file itself stays.
    """
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
