"""The processes of this machine that descend from the shim: finds, signals and kills them."""

from __future__ import annotations

import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
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


class SessionOwners:
    """Which container each session belongs to. Without process namespaces this tells whose a process is: it cannot leave
    its session unseen, where the kernel asks the shim about that.
    """

    def __init__(self) -> None:
        self._owners: dict[int, str] = {}

    def add(self, session: int, container: str) -> None:
        """Adds a session. One with the same id was over before."""
        self._owners[session] = container

    def remove(self, container: str) -> set[int]:
        """Removes the sessions of a container, and returns them."""
        found = {session for session, owner in self._owners.items() if owner == container}
        for session in found:
            del self._owners[session]
        return found


def end_orphans(container: str, sessions: Collection[int]) -> None:
    """Kills what runs of a container whose first process has ended, among the descendants of this process."""
    limit = time.monotonic_ns() + _LONGEST_END
    while time.monotonic_ns() < limit:
        own = set(descendants(os.getpid()))
        left = [pid for pid in _those_of([container], sessions) if pid in own]
        if not left:
            return
        _end(left, limit)


def _those_of(containers: Collection[str], sessions: Collection[int]) -> list[int]:
    """What runs of containers: it is in one of their sessions, or has the mark, which cannot be read if its account is
    another one, and which a program can remove.
    """
    marks = {f"{MARK}={container}".encode() for container in containers}
    return [
        pid
        for pid, (state, _, session) in _stats().items()
        if state != b"Z" and (session in sessions or not marks.isdisjoint(_read(f"/proc/{pid}/environ").split(b"\0")))
    ]


def end_left_behind(containers: Mapping[str, int]) -> None:
    """Kills what runs of these containers, by their ids and their first processes, if both the shim and its guardian
    were killed: what is in the first one's session, or has the mark.
    """
    limit = time.monotonic_ns() + _LONGEST_END
    while time.monotonic_ns() < limit and (left := _those_of(containers.keys(), containers.values())):
        _end(left, limit)


def _end(pids: list[int], limit: int) -> None:
    """Kills the processes, and waits until they are dead."""
    handles = []
    for pid in pids:
        try:
            handles.append(os.pidfd_open(pid))
        except ProcessLookupError:
            continue
        send(pid, signal.SIGKILL)
    for handle in handles:
        select.select([handle], [], [], max(0, limit - time.monotonic_ns()) / 1e9)
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
