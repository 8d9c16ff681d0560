"""`WriteAheadLog`: the log that a file storage appends to. All calls block: make them in a thread, one at a time."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from navarch.cluster.storage.folder import create_log, log_path, mark_of, mark_path
from navarch.cluster.storage.records import frame

_MARK_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not hold it up


class DisplacedError(OSError):
    """Another process removed, replaced or changed the log file: acknowledged writes are missing in it."""


class WriteAheadLog:
    """Appends frames to one file.

    `size` counts the bytes of the frames that are on disk. Remains of a failed write are truncated before the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _opened(path)
        self.size = os.fstat(self._file).st_size
        self._is_torn = False
        self._unused: Path | None = None  # a new log that failed: the next start must not find it
        self._mark = -1
        self._write_mark()

    def append(self, payload: bytes) -> None:
        """Adds one frame; it is on disk when this returns.

        After an `OSError` the frame is not part of the log, and the next call tries anew. Raises `DisplacedError` if the
        file is not the one that was written before.
        """
        self._mend()
        rest = memoryview(frame(payload, self.size))
        grown, self._is_torn = self.size + len(rest), True
        while rest:
            rest = rest[os.write(self._file, rest) :]
        os.fdatasync(self._file)
        self.size, self._is_torn = grown, False
        self._write_mark()

    def begin_anew(self, revision: int) -> None:
        """Continues in a new file, for writes after that revision; after an `OSError`, in the old file."""
        self._mend()
        path = log_path(self.path.parent, revision)
        try:
            create_log(self.path.parent, revision)
            file = _opened(path)
        except OSError:
            self._unused = path if path != self.path else None
            raise
        os.close(self._file)
        self._file, self.path, self.size = file, path, os.fstat(file).st_size
        self._write_mark()

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)
        if self._mark >= 0:
            os.close(self._mark)

    def _mend(self) -> None:
        """Truncates the file behind the last frame that is on disk."""
        if self._unused is not None:
            self._unused.unlink(missing_ok=True)
            self._unused = None
        size = self._size_in_place()
        if size < self.size or (size > self.size and not self._is_torn):
            raise DisplacedError(
                f"expected {self.path} to have {self.size} bytes, got {size}: another process has changed it"
            )
        if self._is_torn:
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)
            self._is_torn = False

    def _size_in_place(self) -> int:
        """Returns the size of the file; raises `DisplacedError` if its path leads to another file."""
        found = os.fstat(self._file)
        try:
            named = self.path.stat()
        except FileNotFoundError:
            raise DisplacedError(f"expected {self.path}, but another process has removed it") from None
        if (named.st_dev, named.st_ino) != (found.st_dev, found.st_ino):
            raise DisplacedError(f"expected {self.path} unchanged, but another process has replaced it")
        return found.st_size

    def _write_mark(self) -> None:
        """Writes the mark without fsync: after a power cut it may be smaller than the log, never larger."""
        with contextlib.suppress(OSError):
            if self._mark < 0:
                self._mark = os.open(mark_path(self.path.parent), _MARK_FLAGS, 0o600)
            os.pwrite(self._mark, mark_of(self.path, self.size), 0)


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
