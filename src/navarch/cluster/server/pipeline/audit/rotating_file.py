"""The file of an audit log, which is rotated by size. All of it blocks; it is called in a thread, one call at a time."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["RotatingFile"]

_MOST_BYTES: Final = 20 * 2**20
_BACKUPS: Final = 3
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not hold it up


class RotatingFile:
    """Lines at the end of `path`. Before the file grows beyond `size` bytes it becomes `<path>.1`, that one `<path>.2`,
    and so on; of these `backups` are kept.

    It is opened for each call, so that one that was moved or removed comes anew.
    """

    def __init__(self, path: Path, *, size: int = _MOST_BYTES, backups: int = _BACKUPS) -> None:
        self.path = path
        self._size = size
        self._backups = backups

    def append(self, lines: Sequence[bytes]) -> int:
        """Writes the lines, each with its newline, and returns how many: all of them, or those before the disk was full.

        Raises `OSError` if none could be written. Nothing is left of a line that could not be written as a whole.
        """
        written = 0
        while written < len(lines):
            try:
                written += self._append_some(lines[written:])
            except OSError:
                if not written:
                    raise
                return written
        return written

    def _append_some(self, lines: Sequence[bytes]) -> int:
        """Writes as many lines as the file takes before it is rotated; at least one."""
        file, size = self._opened()
        try:
            if size and size + len(lines[0]) > self._size:
                os.close(file)
                file = -1
                self._rotate()
                file, size = self._opened()
            count, total = 1, len(lines[0])
            while count < len(lines) and size + total + len(lines[count]) <= self._size:
                total += len(lines[count])
                count += 1
            _write(file, size, b"".join(lines[:count]))
            return count
        finally:
            if file >= 0:
                os.close(file)

    def _opened(self) -> tuple[int, int]:
        """The file, and its size."""
        file = os.open(self.path, _FLAGS, 0o600)
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            os.close(file)
            raise OSError(f"expected a file at {self.path}, got something else; remove it")
        return file, found.st_size

    def _rotate(self) -> None:
        for number in range(self._backups - 1, 0, -1):
            if self._backup(number).exists():
                self._backup(number).replace(self._backup(number + 1))
        if self._backups:
            self.path.replace(self._backup(1))
        else:
            self.path.unlink()

    def _backup(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _write(file: int, size: int, data: bytes) -> None:
    """All of the data or, with an `OSError`, none of it."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        os.ftruncate(file, size)
        raise
