"""The output of containers: `ContainerLog` writes a log file in the CRI format, `AttachedReaders` copies streams to
attached clients.
"""

from __future__ import annotations

import os
import time

from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_MOST_WAITING: Final = 4 * 1024 * 1024
LARGEST: Final = 10 * 1024 * 1024
_LONGEST_LINE: Final = 16384


class _AttachedReader:
    def __init__(self, fd: int, container: str, stream: str) -> None:
        self.fd = fd
        self.container = container
        self.stream = stream
        self.waiting = bytearray()
        self.ended = False


class AttachedReaders:
    """The attached clients by stream. A client that does not read does not block the container: it is cut off after 4
    MB.
    """

    def __init__(self) -> None:
        self._taps: dict[int, _AttachedReader] = {}

    def add(self, container: str, stream: str) -> int:
        """Returns a descriptor from which the stream can be read from now on."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        self._taps[write] = _AttachedReader(write, container, stream)
        return read

    def write(self, container: str, stream: str, data: bytes) -> None:
        """Copies output of the container to the attached clients."""
        for tap in [tap for tap in self._taps.values() if (tap.container, tap.stream) == (container, stream)]:
            tap.waiting += data
            self.flush(tap.fd)

    def waiting(self) -> list[int]:
        """Returns the descriptors of clients with pending output."""
        return [tap.fd for tap in self._taps.values() if tap.waiting]

    def flush(self, fd: int) -> None:
        """Writes pending output, as far as the client reads it."""
        tap = self._taps.get(fd)
        if tap is None:
            return
        try:
            while tap.waiting:
                del tap.waiting[: os.write(fd, tap.waiting)]
        except BlockingIOError:
            if len(tap.waiting) <= _MOST_WAITING:
                return
        except OSError:
            tap.ended = True
        if tap.ended or len(tap.waiting) > _MOST_WAITING:
            del self._taps[fd]
            os.close(fd)

    def close(self, container: str) -> None:
        """Closes the streams of an ended container, after pending output was written."""
        for tap in [tap for tap in self._taps.values() if tap.container == container]:
            tap.ended = True
            if tap.waiting:
                self.flush(tap.fd)
            else:
                del self._taps[tap.fd]
                os.close(tap.fd)


class ContainerLog:
    """Writes the output of a container line by line: `2030-01-01T00:00:00.000000000Z stdout F text`.

    A line that is too long is written in parts (P). At 10 MB the file is rotated to `<name>.1`, which replaces the one
    before. Output that the disk does not take is lost.
    """

    def __init__(self, path: str) -> None:
        folder, _, self._name = path.rpartition("/")
        self._folder = ConfinedDirectory.at(folder)
        self._partial = {"stdout": b"", "stderr": b""}
        try:
            self._fd = self._opened()
        except OSError:
            self._folder.close()
            raise
        self._size = 0

    def add(self, stream: str, data: bytes) -> None:
        """Writes one piece of output."""
        *lines, rest = (self._partial[stream] + data).split(b"\n")
        head = f"{_now()} {stream} ".encode()
        text = _whole(head, lines) if lines else b""
        while len(rest) >= _LONGEST_LINE:
            text += b"%bP %b\n" % (head, rest[:_LONGEST_LINE])
            rest = rest[_LONGEST_LINE:]
        self._partial[stream] = rest
        self._write(text)

    def close(self) -> None:
        """Writes an incomplete last line, and closes the file."""
        for stream, rest in self._partial.items():
            if rest:
                self._write(f"{_now()} {stream} P ".encode() + rest + b"\n")
        os.close(self._fd)
        self._folder.close()

    def _write(self, text: bytes) -> None:
        try:
            self._size += os.write(self._fd, text)
        except OSError:
            return
        if self._size >= LARGEST:
            self._rotate()

    def _rotate(self) -> None:
        try:
            self._folder.move(self._name, f"{self._name}.1")
            fresh = self._opened()
        except OSError:
            return
        os.close(self._fd)
        self._fd, self._size = fresh, 0

    def _opened(self) -> int:
        """Never what a link leads to; a pipe that somebody put there keeps nobody waiting."""
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        return self._folder.open(self._name, flags, 0o640)


def _whole(head: bytes, lines: list[bytes]) -> bytes:
    """Lines that have ended: in one step, since there may be many, unless one of them is too long."""
    if max(map(len, lines)) <= _LONGEST_LINE:
        return b"%bF %b\n" % (head, (b"\n%bF " % head).join(lines))
    return b"".join(_in_parts(head, line) for line in lines)


def _in_parts(head: bytes, line: bytes) -> bytes:
    """A line of any length: all parts but the last say that it goes on."""
    starts = range(0, max(len(line) - 1, 0) // _LONGEST_LINE * _LONGEST_LINE, _LONGEST_LINE)
    parts = [b"%bP %b\n" % (head, line[start : start + _LONGEST_LINE]) for start in starts]
    return b"".join([*parts, b"%bF %b\n" % (head, line[len(starts) * _LONGEST_LINE :])])


def _now() -> str:
    seconds, fraction = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{fraction:09d}Z"
