"""Reads the logs of containers with the options of `kubectl logs`."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from typing import BinaryIO, Final, NamedTuple

from navarch._base.clock import Clock
from navarch.api import parse_time
from navarch.cluster.nodes.pods.container_record import ContainerRecord
from navarch.cluster.nodes.pods.pod_worker import PodWorker
from navarch.cluster.nodes.volumes.atomic_writer import PodFolder
from navarch.cluster.streams import LogOptions
from navarch.errors import ContainerError

_LOOK_SECONDS: Final = 0.1
_BATCH: Final = 256 * 1024


class LogLine(NamedTuple):
    """One line of a log, or one part of a line that is too long or not complete."""

    time: bytes
    stream: bytes
    whole: bool
    text: bytes

    @classmethod
    def of(cls, raw: bytes) -> LogLine | None:
        """Parses a line of the file; returns None for an incomplete one."""
        parts = raw.rstrip(b"\n").split(b" ", 3)
        return cls(parts[0], parts[1], parts[2] == b"F", parts[3]) if len(parts) == 4 else None

    def is_wanted(self, options: LogOptions) -> bool:
        """Returns whether the options select the line's stream and time."""
        if options.stream != "All" and self.stream.decode() != options.stream.lower():
            return False
        return options.since is None or _moment(self.time) >= options.since

    def shown(self, *, stamped: bool) -> bytes:
        """Returns the line as it is shown; `stamped` puts its time in front."""
        return (self.time + b" " if stamped else b"") + self.text + (b"\n" if self.whole else b"")


def _moment(text: bytes) -> datetime:
    """Returns the time of a line, cut to microseconds."""
    whole, _, fraction = text.decode().partition(".")
    return parse_time(f"{whole}.{fraction.rstrip('Z')[:6]}Z")


class LogFile:
    """Reads one log file, which may grow and may be rotated.

    Lines come in batches of a bounded size, so that a reader of a long log can yield to other tasks.
    """

    def __init__(self, folder: PodFolder, path: str) -> None:
        self._folder = folder
        self._path = path
        self._older = f"{path}.1"
        self._file: BinaryIO | None = None
        self._rest = b""

    def present(self) -> Iterator[list[LogLine]]:
        """Yields the lines that exist now, including those of the rotated file."""
        self.close()
        if (older := self._opened(self._older)) is not None:
            with older:
                yield from self._batches(older)
        self._rest = b""
        self._file = self._opened(self._path)
        if self._file is not None:
            yield from self._batches(self._file)

    def _batches(self, file: BinaryIO) -> Iterator[list[LogLine]]:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (data := file.read(min(left, _BATCH))):
            left -= len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            yield _understood(lines)

    def new(self) -> Iterator[list[LogLine]]:
        """Yields the lines written since the last call, or since `present` or `tail`."""
        while True:
            self._file = self._file or self._opened(self._path)
            data = self._file.read(_BATCH) if self._file is not None else b""
            if not data and not self._has_moved_on():
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            yield _understood(lines)

    def tail(self, count: int, options: LogOptions) -> list[LogLine]:
        """Returns the last lines that the options select, searched from the end."""
        size = _BATCH
        while True:
            found, is_all = self._last(size)
            wanted = [line for line in found if line.is_wanted(options)]
            if is_all or sum(line.whole for line in wanted) > count:
                return _last_lines(wanted, count)
            size *= 8

    def _last(self, size: int) -> tuple[list[LogLine], bool]:
        """Returns the lines in the last bytes, of the rotated file too if needed, and whether these are all lines."""
        self.close()
        self._file = self._opened(self._path)
        own, is_whole = (b"", True) if self._file is None else _end_of(self._file, size)
        older = b""
        if is_whole and (file := self._opened(self._older)) is not None:
            with file:
                older, is_whole = _end_of(file, max(size - len(own), 0))
        *lines, self._rest = (older + own).split(b"\n")
        return _understood(lines if is_whole else lines[1:]), is_whole

    def _has_moved_on(self) -> bool:
        """Returns whether the file was rotated since it was opened."""
        successor = None if self._file is None else self._opened(self._path)
        if self._file is None or successor is None:
            return False
        with successor:
            if os.path.sameopenfile(self._file.fileno(), successor.fileno()):
                return False
        self.close()
        return True

    def _opened(self, path: str) -> BinaryIO | None:
        """Opens the file; returns None while the shim rotates it, or if it is no regular file."""
        try:
            with self._folder.open() as folder:
                return os.fdopen(folder.open_file(path), "rb")
        except OSError:
            return None

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _understood(lines: list[bytes]) -> list[LogLine]:
    return [line for line in map(LogLine.of, lines) if line is not None]


def _end_of(file: BinaryIO, size: int) -> tuple[bytes, bool]:
    """Returns the last bytes, and whether they are the whole file."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(length - size, 0))
    return file.read(), length <= size


def _last_lines(lines: list[LogLine], count: int) -> list[LogLine]:
    """Returns the last lines, each with all of its parts."""
    kept: deque[list[LogLine]] = deque(maxlen=count)
    begins = True
    for line in lines:
        if begins:
            kept.append([])
        if kept:
            kept[-1].append(line)
        begins = line.whole
    return [line for parts in kept for line in parts]


class _View:
    """Formats lines by the options: with times at the beginning of lines, up to a number of bytes."""

    def __init__(self, options: LogOptions) -> None:
        self._stamped = options.timestamps
        self._begins = True
        self.left = options.limit_bytes

    def of(self, lines: list[LogLine]) -> bytes:
        shown = []
        for line in lines:
            shown.append(line.shown(stamped=self._stamped and self._begins))
            self._begins = line.whole
        piece = b"".join(shown)[: self.left]
        if self.left is not None:
            self.left -= len(piece)
        return piece


async def log_pieces(worker: PodWorker, container: str, options: LogOptions, clock: Clock) -> AsyncIterator[bytes]:
    """Yields the log that the options select; raises `ContainerError` if there is no such log."""
    folder, path, is_alive = _found(worker, container, previous=options.previous)
    log, view = LogFile(folder, path), _View(options)
    try:
        async for lines in _batches(log, options, clock, is_alive):
            piece = view.of(lines)
            if piece:
                yield piece
            if view.left == 0:
                return
    finally:
        log.close()


async def _batches(
    log: LogFile, options: LogOptions, clock: Clock, is_alive: Callable[[], bool]
) -> AsyncIterator[list[LogLine]]:
    if options.tail is not None:
        yield log.tail(options.tail, options)
    else:
        for lines in log.present():
            yield [line for line in lines if line.is_wanted(options)]
            await clock.sleep(0)
    while options.follow:
        alive = is_alive()
        for lines in log.new():
            yield [line for line in lines if line.is_wanted(options)]
            await clock.sleep(0)
        if not alive:
            return
        await clock.sleep(_LOOK_SECONDS)


def _found(worker: PodWorker, container: str, *, previous: bool) -> tuple[PodFolder, str, Callable[[], bool]]:
    """Returns the pod's folder, the path of the log in it, and a function that says whether the container may still
    write.
    """
    pod, record = worker.sandbox.pod.name, worker.record(container)
    if record is None:
        raise ContainerError(f'container "{container}" in pod "{pod}" is not available')
    attempt = record.restarts - 1 if previous else record.restarts
    if previous and attempt < 0:
        raise ContainerError(f'previous terminated container "{container}" in pod "{pod}" not found')
    if not record.has_run:
        raise ContainerError(f'container "{container}" in pod "{pod}" is waiting to start: {_why(record)}')
    path = worker.sandbox.log(container, attempt)
    return worker.sandbox.folder, path, lambda: record.is_running and record.restarts == attempt


def _why(record: ContainerRecord) -> str:
    reason = record.state.waiting.reason if record.state.waiting is not None else None
    if reason in {"ErrImagePull", "ImagePullBackOff"}:
        return "trying and failing to pull image"
    return reason or "ContainerCreating"
