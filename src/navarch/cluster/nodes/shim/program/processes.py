"""The processes of this machine that descend from the shim: finds, signals and kills them."""

from __future__ import annotations

import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

MARK: Final = "NAVARCH_CONTAINER"
"""In the environment of a container's processes where it has no process namespace: whose they are."""
_LONGEST_END: Final = 5_000_000_000


def _stats() -> dict[int, tuple[bytes, int, int]]:
    """The state, the parent and the session of each process."""
    found = {}
    for name in os.listdir("/proc"):
        stat = _read(f"/proc/{name}/stat") if name.isdigit() else b""
        if stat:
            state, parent, _, session = stat.rpartition(b")")[2].split()[:4]
            found[int(name)] = (state, int(parent), int(session))
    return found


def _parents() -> dict[int, int]:
    return {pid: parent for pid, (_, parent, _) in _stats().items()}


def _read(path: str) -> bytes:
    """What a file of a process says; nothing if the process is gone."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def send(pid: int, number: int) -> bool:
    """Sends a signal; returns False if the process is gone or the number is no signal."""
    try:
        os.kill(pid, number)
    except (OSError, OverflowError):
        return False
    return True


def descendants(pid: int) -> list[int]:
    """Returns the ids of the process's children, their children, and so on."""
    parents = _parents()
    found, new = [], {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found += sorted(new)
    return found


def adopted(container: str, first: int) -> list[int]:
    """Returns the orphans of the container, which the shim has adopted."""
    own, of_container = os.getpid(), _those_of({container: first})
    return [pid for pid, parent in _parents().items() if parent == own and pid in of_container]


def _those_of(containers: Mapping[str, int]) -> list[int]:
    """What runs of containers, by the ids of these and of their first processes: it is in the session of the first one, or
    has the mark, which cannot be read if its account is another one.
    """
    marks = {f"{MARK}={container}".encode() for container in containers}
    sessions = set(containers.values())
    return [
        pid
        for pid, (state, _, session) in _stats().items()
        if state != b"Z" and (session in sessions or not marks.isdisjoint(_read(f"/proc/{pid}/environ").split(b"\0")))
    ]


def end_left_behind(containers: Mapping[str, int]) -> None:
    """Kills all processes of these containers, whose shim is gone."""
    limit = time.monotonic_ns() + _LONGEST_END
    while time.monotonic_ns() < limit and (left := _those_of(containers)):
        for pid in left:
            _end(pid)


def _end(pid: int) -> None:
    """Kills the process, and waits until it is dead."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        send(pid, signal.SIGKILL)
        select.select([handle], [], [], _LONGEST_END / 1e9)
    finally:
        os.close(handle)


def end_children() -> None:
    """Kills all children until there are none; orphans of killed children become children too."""
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
