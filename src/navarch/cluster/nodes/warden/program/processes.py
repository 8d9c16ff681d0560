"""The processes of this machine, as far as they descend from the warden."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["MARK", "adopted", "descendants", "end_children", "send"]

MARK: Final = "NAVARCH_CONTAINER"
"""In the environment of a container's processes where it has no process namespace: whose they are."""
_LONGEST_END: Final = 5_000_000_000


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        stat = _read(f"/proc/{name}/stat") if name.isdigit() else b""
        if stat:
            found[int(name)] = int(stat.rpartition(b")")[2].split()[1])
    return found


def _read(path: str) -> bytes:
    """What a file of a process says; nothing if the process is gone."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def send(pid: int, number: int) -> bool:
    """Sends a signal; whether the process was still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


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
    parents = _parents().items()
    return [pid for pid, parent in parents if parent == own and mark in _read(f"/proc/{pid}/environ").split(b"\0")]


def end_children() -> None:
    """Kills all children until there are none: those that a killed one leaves behind come here too."""
    limit = time.monotonic_ns() + _LONGEST_END
    while time.monotonic_ns() < limit:
        own = os.getpid()
        for pid, parent in _parents().items():
            if parent == own:
                send(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
