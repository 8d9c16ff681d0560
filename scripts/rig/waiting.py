"""Bounded waits that explain themselves when they fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rig.errors import WaitError
from rig.process import Daemon, tail

T = TypeVar("T")

PAUSE = 0.05


def wait_for(
    what: str, probe: Callable[[], T | None], *, seconds: float, daemon: Daemon | None = None, log: Path | None = None
) -> T:
    """Call `probe` until it returns something true, and return that.

    Raises WaitError when the time is up, or at once when `daemon` (the process that should bring it about) has ended.
    The text names what was awaited and shows the end of a log: the given one, else the daemon's.
    """
    deadline = time.monotonic() + seconds
    if log is None and daemon is not None:
        log = daemon.log
    while True:
        if found := probe():
            return found
        if daemon is not None and (code := daemon.exit_code()) is not None:
            problem = f"{daemon.name} ended with exit code {code} while waiting for {what}"
            raise WaitError(_explain(problem, daemon.log))
        if time.monotonic() > deadline:
            raise WaitError(_explain(f"waited {seconds:.0f} s in vain for {what}", log))
        time.sleep(PAUSE)


def _explain(problem: str, log: Path | None) -> str:
    return problem if log is None else f"{problem}; the end of {log.name}:\n{tail(log)}"
