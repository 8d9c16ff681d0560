"""Logs of containers, read as `kubectl logs` asks for them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from navarch._base.clock import Clock
from navarch.api import parse_time
from navarch.cluster.nodes.pods.records import Record
from navarch.cluster.nodes.pods.worker import PodWorker
from navarch.cluster.nodes.runtime import LogOptions
from navarch.errors import ContainerError

__all__ = ["LogFile", "log_pieces"]

_LOOK_SECONDS: Final = 0.1
_PIECE: Final = 1024 * 1024


class Line(NamedTuple):
    """One line of a log, or a part of one that is too long or not over yet."""

    time: bytes
    stream: bytes
    whole: bool
    text: bytes

    @classmethod
    def of(cls, raw: bytes) -> Line | None:
        """A line as it is in the file; None for one that was not written whole."""
        parts = raw.rstrip(b"\n").split(b" ", 3)
        return cls(parts[0], parts[1], parts[2] == b"F", parts[3]) if len(parts) == 4 else None

    def is_wanted(self, options: LogOptions) -> bool:
        """Whether it is of the stream and of the time that are asked for."""
        if options.stream != "All" and self.stream.decode() != options.stream.lower():
            return False
        return options.since is None or _moment(self.time) >= options.since

    def shown(self, *, stamped: bool) -> bytes:
        """As it is shown: with its time in front if it begins a line."""
        return (self.time + b" " if stamped else b"") + self.text + (b"\n" if self.whole else b"")


def _moment(text: bytes) -> datetime:
    """Nanoseconds are more than a datetime can hold."""
    whole, _, fraction = text.decode().partition(".")
    return parse_time(f"{whole}.{fraction.rstrip('Z')[:6]}Z")


class LogFile:
    """Reads one log, in which new lines may come and which may be begun anew when it is too large."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def earlier(self) -> Iterator[Line]:
        """The lines of the file before this one, if there is one."""
        older = self._path.with_name(f"{self._path.name}.1")
        if older.exists():
            with older.open("rb") as file:
                yield from filter(None, map(Line.of, file))

    def new_lines(self) -> Iterator[Line]:
        """The lines that have come since the last call."""
        while True:
            if self._file is None and self._path.exists():
                self._file = self._path.open("rb")
            data = self._file.read(_PIECE) if self._file is not None else b""
            if not data and not self._has_moved_on():
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            yield from filter(None, map(Line.of, lines))

    def _has_moved_on(self) -> bool:
        """Whether another file has taken the place of the one that was read."""
        if self._file is None or not self._path.exists():
            return False
        if os.fstat(self._file.fileno()).st_ino == self._path.stat().st_ino:
            return False
        self.close()
        return True

    def close(self) -> None:
        """Lets go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


async def log_pieces(worker: PodWorker, container: str, options: LogOptions, clock: Clock) -> AsyncIterator[bytes]:
    """What the options ask for; raises `ContainerError` in Kubernetes' words where there is no such log."""
    path, is_alive = _found(worker, container, previous=options.previous)
    log, left, begins = LogFile(path), options.limit_bytes, True
    try:
        async for line in _lines(log, options, clock, is_alive):
            piece = line.shown(stamped=options.timestamps and begins)[:left]
            begins = line.whole
            if left is not None:
                left -= len(piece)
            if piece:
                yield piece
            if left == 0:
                return
    finally:
        log.close()


async def _lines(log: LogFile, options: LogOptions, clock: Clock, is_alive: Callable[[], bool]) -> AsyncIterator[Line]:
    for line in _first_lines(log, options):
        yield line
    while options.follow:
        alive = is_alive()
        for line in log.new_lines():
            if line.is_wanted(options):
                yield line
        if not alive:
            return
        await clock.sleep(_LOOK_SECONDS)


def _first_lines(log: LogFile, options: LogOptions) -> Iterator[Line]:
    def everything() -> Iterator[Line]:
        yield from log.earlier()
        yield from log.new_lines()

    wanted = (line for line in everything() if line.is_wanted(options))
    return wanted if options.tail is None else iter(_tail(wanted, options.tail))


def _tail(lines: Iterator[Line], count: int) -> list[Line]:
    """The last so many lines, each with all of its parts."""
    kept: deque[list[Line]] = deque(maxlen=count)
    begins = True
    for line in lines:
        if begins:
            kept.append([])
        if kept:
            kept[-1].append(line)
        begins = line.whole
    return [line for parts in kept for line in parts]


def _found(worker: PodWorker, container: str, *, previous: bool) -> tuple[Path, Callable[[], bool]]:
    """The file, and whether somebody may still write to it."""
    pod, record = worker.home.pod.name, worker.record(container)
    if record is None:
        raise ContainerError(f'container "{container}" in pod "{pod}" is not available')
    attempt = record.restarts - 1 if previous else record.restarts
    if previous and attempt < 0:
        raise ContainerError(f'previous terminated container "{container}" in pod "{pod}" not found')
    if not record.has_run:
        raise ContainerError(f'container "{container}" in pod "{pod}" is waiting to start: {_why(record)}')
    return worker.home.log(container, attempt), lambda: record.is_running and record.restarts == attempt


def _why(record: Record) -> str:
    reason = record.state.waiting.reason if record.state.waiting is not None else None
    if reason in {"ErrImagePull", "ImagePullBackOff"}:
        return "trying and failing to pull image"
    return reason or "ContainerCreating"
