"""The log that a file store appends to. All of it blocks; it is called in a thread, one call at a time."""

from __future__ import annotations

import os
from pathlib import Path

from navarch.cluster.storage.folder import create_log
from navarch.cluster.storage.framing import frame

__all__ = ["Log"]


class Log:
    """One file at its end."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self.size = os.fstat(self._file).st_size

    def append(self, payload: bytes) -> None:
        """Adds one frame; it is on disk when this returns. After an error the log must not be used any more."""
        rest = memoryview(frame(payload, self.size))
        self.size += len(rest)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        os.fdatasync(self._file)

    def begin_anew(self, revision: int) -> None:
        """Goes on in a new file, with what comes after that revision."""
        path = create_log(self._folder, revision)
        self.close()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self.size = os.fstat(self._file).st_size

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._file)
