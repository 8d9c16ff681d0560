"""Bounded waits that explain themselves when they fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from rig.errors import WaitError
from rig.process import Daemon

T = TypeVar("T")

PAUSE = 0.05


def wait_for(what: str, probe: Callable[[], T | None], *, seconds: float, daemon: Daemon | None = None) -> T:
    """Call `probe` until it returns something true, and return that.

    Raises WaitError when the time is up, or at once when `daemon` (the process that should bring it about) has
    ended; the text names what was awaited and shows the end of the daemon's log.
    """
    deadline = time.monotonic() + seconds
    while True:
        if found := probe():
            return found
        if daemon is not None and (code := daemon.exit_code()) is not None:
            raise WaitError(_explain(f"{daemon.name} ended with exit code {code} while waiting for {what}", daemon))
        if time.monotonic() > deadline:
            raise WaitError(_explain(f"waited {seconds:.0f} s in vain for {what}", daemon))
        time.sleep(PAUSE)


def _explain(problem: str, daemon: Daemon | None) -> str:
    return problem if daemon is None else f"{problem}; the end of {daemon.log}:\n{daemon.tail()}"
