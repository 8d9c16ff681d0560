"""Socket addresses as system calls have them, classified as a pod sees them; and Unix sockets, bound as the caller."""

from __future__ import annotations

import _socket
import errno
import os
import struct

from navarch.cluster.nodes.shim.program import kernel
from navarch.cluster.nodes.shim.program.seccomp import BIND, LISTEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, Literal, NoReturn

    Place = Literal["any", "localhost", "own", "cluster", "outside"]

INTERNET: Final = frozenset({_socket.AF_INET, _socket.AF_INET6})
_FOUR: Final = 4
_MAPPED: Final = b"\0" * 10 + b"\xff" * 2
_LOCALHOST_SIX: Final = b"\0" * 15 + b"\x01"
_FOUR_SIZE: Final = 16
_SIX_SIZE: Final = 24


def bind_to_path(pid: int, socket: int, sockaddr: bytes) -> int:
    """Binds the socket with the root, folder, account and umask of the thread with that id.

    Returns a descriptor where one byte comes, the errno or 0. The kernel cannot go on with the call itself: another thread
    could put a socket of the network under the same descriptor meanwhile.
    """
    return _begun(pid, lambda: kernel.call(BIND, socket, sockaddr, len(sockaddr)))


def listen_as_caller(pid: int, socket: int, backlog: int) -> int:
    """The same for `listen`: whoever connects is told the account that did it (SO_PEERCRED)."""
    return _begun(pid, lambda: kernel.call(LISTEN, socket, backlog))


def _begun(pid: int, work: Callable[[], object]) -> int:
    read, write = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(read)
        os.close(write)
        raise
    if child == 0:
        _do(pid, work, write)
    os.close(write)
    os.set_blocking(read, False)
    return read


def _do(pid: int, work: Callable[[], object], report: int) -> NoReturn:
    number = errno.EIO
    try:
        _become(pid)
        work()
        number = 0
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        os.write(report, bytes([number]))
        os._exit(0)


def _become(pid: int) -> None:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    folder = os.open(f"/proc/{pid}/cwd", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if not os.path.samestat(os.fstat(root), os.stat("/")):
        os.fchdir(root)
        os.chroot(".")
    user, group = (int(status[name].split()[3]) for name in ("Uid", "Gid"))
    if os.geteuid() == 0:
        os.setgroups([int(word) for word in status["Groups"].split()])
        os.setgid(group)
        os.setuid(user)
    os.fchdir(folder)
    os.umask(int(status.get("Umask", "022"), 8))


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
