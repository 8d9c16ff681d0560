"""Copies of what containers write, for those who are attached to them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["Taps"]

_MOST_WAITING: Final = 4 * 1024 * 1024


class _Tap:
    def __init__(self, fd: int, container: str, stream: str) -> None:
        self.fd = fd
        self.container = container
        self.stream = stream
        self.waiting = bytearray()
        self.ended = False


class Taps:
    """Who is attached to which stream. Who does not read does not hold the container up: after 4 MB it is cut off."""

    def __init__(self) -> None:
        self._taps: dict[int, _Tap] = {}

    def add(self, container: str, stream: str) -> int:
        """A descriptor from which the stream can be read from now on."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        self._taps[write] = _Tap(write, container, stream)
        return read

    def write(self, container: str, stream: str, data: bytes) -> None:
        """The container wrote something."""
        for tap in [tap for tap in self._taps.values() if (tap.container, tap.stream) == (container, stream)]:
            tap.waiting += data
            self.flush(tap.fd)

    def waiting(self) -> list[int]:
        """Those that have not taken everything yet."""
        return [tap.fd for tap in self._taps.values() if tap.waiting]

    def flush(self, fd: int) -> None:
        """Gives what waits, as far as it is taken."""
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
        """The container has ended: when everything was taken, so has what is read."""
        for tap in [tap for tap in self._taps.values() if tap.container == container]:
            tap.ended = True
            if tap.waiting:
                self.flush(tap.fd)
            else:
                del self._taps[tap.fd]
                os.close(tap.fd)
