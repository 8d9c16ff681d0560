"""The processes of this machine, as far as they descend from the warden."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Final

__all__ = ["MARK", "adopted", "descendants", "end_children"]

MARK: Final = "NAVARCH_CONTAINER"
"""In the environment of a container's processes where it has no process namespace: whose they are."""
_LONGEST_END: Final = 5_000_000_000


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def descendants(pid: int) -> list[int]:
    """The children of that process, theirs, and so on; not the process itself."""
    parents = _parents()
    found, new = [], {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found += sorted(new)
    return found


def adopted(container: str) -> list[int]:
    """Children of the warden that the container left behind: orphans come to the warden, and have the mark."""
    own, mark = os.getpid(), f"{MARK}={container}".encode()
    return [pid for pid, parent in _parents().items() if parent == own and mark in _environment(pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def end_children() -> None:
    """Kills all children until there are none: those that a killed one leaves behind come here too."""
    limit = time.monotonic_ns() + _LONGEST_END
    while time.monotonic_ns() < limit:
        own = os.getpid()
        for pid, parent in _parents().items():
            if parent == own:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
