"""Addresses of sockets as system calls have them, and whose they are as a pod sees it."""

from __future__ import annotations

import _socket
import errno
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal

    Place = Literal["any", "localhost", "own", "cluster", "outside"]

__all__ = ["INTERNET", "PodAddress", "error", "family_of", "is_four", "local_address", "localhost_six", "parsed"]

INTERNET: Final = frozenset({_socket.AF_INET, _socket.AF_INET6})

_FOUR: Final = 4
_MAPPED: Final = b"\0" * 10 + b"\xff" * 2
_LOCALHOST_SIX: Final = b"\0" * 15 + b"\x01"
_FOUR_SIZE: Final = 16
_SIX_SIZE: Final = 24


class PodAddress:
    """The IPv4 loopback address of a pod. Its cluster has the first two bytes of it to itself."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._packed = _socket.inet_aton(text)

    def place(self, packed: bytes) -> Place:
        """Whose address that is. Loopback addresses that are not the cluster's are localhost."""
        four = packed[-_FOUR:] if is_four(packed) else b""
        if not any(four or packed):
            return "any"
        if four == self._packed:
            return "own"
        if four[:1] == b"\x7f":
            return "cluster" if four[:2] == self._packed[:2] else "localhost"
        return "localhost" if packed == _LOCALHOST_SIX else "outside"

    def bound(self, family: int, port: int) -> tuple[str, int]:
        """The address as a socket of that family is bound to it."""
        return (f"::ffff:{self.text}" if family == _socket.AF_INET6 else self.text), port

    def sockaddr(self, family: int, port: int) -> bytes:
        """The address as a socket of that family connects to it."""
        if family == _socket.AF_INET6:
            return _six_sockaddr(_MAPPED + self._packed, port)
        return struct.pack("=H", family) + struct.pack("!H", port) + self._packed + b"\0" * 8


def is_four(packed: bytes) -> bool:
    """Whether that is an IPv4 address, also as IPv6 has it."""
    return len(packed) == _FOUR or packed[:12] == _MAPPED


def localhost_six(port: int) -> bytes:
    """A port of ::1, as a socket connects to it."""
    return _six_sockaddr(_LOCALHOST_SIX, port)


def _six_sockaddr(packed: bytes, port: int) -> bytes:
    """A port of an IPv6 address, as a socket connects to it."""
    return struct.pack("=H", _socket.AF_INET6) + struct.pack("!HI", port, 0) + packed + struct.pack("=I", 0)


def family_of(sockaddr: bytes) -> int:
    """The family that the address itself names; AF_UNSPEC for one that is too short."""
    return int.from_bytes(sockaddr[:2], "little") if len(sockaddr) >= 2 else _socket.AF_UNSPEC  # as on both machines


def parsed(sockaddr: bytes) -> tuple[bytes, int]:
    """The IP address and the port; raises `OSError` as the kernel does."""
    family = family_of(sockaddr)
    size = {_socket.AF_INET: _FOUR_SIZE, _socket.AF_INET6: _SIX_SIZE}.get(family)
    if size is None:
        raise error(errno.EAFNOSUPPORT)
    if len(sockaddr) < size:
        raise error(errno.EINVAL)
    packed = sockaddr[4:8] if family == _socket.AF_INET else sockaddr[8:24]
    return packed, int.from_bytes(sockaddr[2:4], "big")


def local_address(sock: _socket.socket) -> bytes:
    """The IP address that the socket is bound to."""
    return _socket.inet_pton(sock.family, sock.getsockname()[0])


def error(number: int) -> OSError:
    """The error of that number, with the system's own words."""
    return OSError(number, os.strerror(number))
