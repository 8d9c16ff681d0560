"""Sockets of one pod on the network stack that all pods share: what it binds, and what it calls localhost, is its own address.

The shim makes these calls itself, on the caller's socket and with an address that is read once. So no socket of a pod ever
listens on another address than the pod's, which is a loopback address. Connections to other addresses are the kernel's own:
a program that exchanges the address while the shim looks at it connects elsewhere, and no more.
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import select

from navarch.cluster.nodes.shim.program import kernel
from navarch.cluster.nodes.shim.program.seccomp import BIND, CONNECT, LISTEN, SENDTO, SOCKET
from navarch.cluster.nodes.shim.program.socket_addresses import (
    INTERNET,
    PodAddress,
    bind_to_path,
    error,
    family_of,
    is_four,
    listen_as_caller,
    local_address,
    localhost_six,
    parsed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from navarch.cluster.nodes.shim.program.seccomp import Notification
    from navarch.cluster.nodes.shim.program.socket_addresses import Place

    Wait = Callable[[int, int, Callable[[], None]], None]

SOCKET_CALLS: Final = frozenset({BIND, CONNECT, LISTEN, SENDTO, SOCKET})
_BIND_ADDRESS_NO_PORT: Final = 24
_DISCONNECT: Final = b"\0" * 16
_LONGEST_ADDRESS: Final = 128
_LARGEST_DATAGRAM: Final = 65535
_MOST_WAITING: Final = 64
_MOST_SIXES: Final = 1024
"""Of one pod."""
_GROUPS_FOR_ALL: Final = frozenset({_socket.NETLINK_ROUTE, 15})
"""Netlink protocols whose groups need no rights: changes of interfaces, and devices that come and go."""
_sixes: dict[str, dict[int, int]] = {}
"""Where pods, by their addresses, listen on a TCP port of IPv6 alone: they share ::1, so each has another port there."""


class PodSockets:
    """Answers the calls about sockets of one container whose pod has that address.

    `wait` gets a descriptor, events, and a function to call once the descriptor has one of them. `check_path` raises
    `OSError` for a path at which the process with that id may create nothing.
    """

    def __init__(self, address: str, wait: Wait, check_path: Callable[[int, str], None]) -> None:
        self._pod = PodAddress(address)
        self._wait = wait
        self._check_path = check_path
        self._waiting = 0

    def answer(self, call: Notification) -> None:
        """Makes the call for the caller, or lets the kernel make it; raises `OSError` if it fails."""
        if call.number == SOCKET:
            self._make(call)
            return
        sock = call.socket(call.arguments[0])
        steps = {BIND: self._bind, LISTEN: self._listen, CONNECT: self._connect, SENDTO: self._send}
        try:
            steps[call.number](call, sock)
        finally:
            sock.close()

    def _finish_later(self, call: Notification, fd: int, events: int, finish: Callable[[], int]) -> None:
        """The call returns what `finish` returns, an errno or 0, once the descriptor is ready. Closes it."""
        if self._waiting >= _MOST_WAITING:
            os.close(fd)
            raise error(errno.EAGAIN)
        self._waiting += 1

        def finished() -> None:
            self._waiting -= 1
            try:
                _reply(call, finish())
            except OSError as fault:
                call.fail(fault.errno or errno.EIO)
            finally:
                os.close(fd)

        self._wait(fd, events, finished)

    # Binding

    def _make(self, call: Notification) -> None:
        """A UDP socket is the pod's from its beginning: else its first datagram would bind it to every address."""
        family, kind, protocol = (argument & 0xFFFFFFFF for argument in call.arguments[:3])
        sock = _socket.socket(family, _socket.SOCK_DGRAM, protocol)
        try:
            _bind_address(sock, self._pod.bound(family, 0))
            os.set_blocking(sock.fileno(), not kind & _socket.SOCK_NONBLOCK)
            call.hand_over(sock.fileno(), kind)
        finally:
            sock.close()

    def _bind(self, call: Notification, sock: _socket.socket) -> None:
        sockaddr = _sockaddr(call, 1)
        if sock.family in INTERNET:
            self._bind_internet(sock, sockaddr)
        elif sock.family == _socket.AF_UNIX and sockaddr[2:3] not in {b"", b"\0"}:
            self._bind_path(call, sock, sockaddr)
            return
        else:
            if sock.family == _socket.AF_NETLINK and any(sockaddr[8:12]) and sock.proto not in _GROUPS_FOR_ALL:
                raise error(errno.EPERM)  # what the shim may hear, the caller may not
            kernel.call(BIND, sock.fileno(), sockaddr, len(sockaddr))
        call.succeed()

    def _bind_path(self, call: Notification, sock: _socket.socket, sockaddr: bytes) -> None:
        self._check_path(call.pid, os.fsdecode(sockaddr[2:].partition(b"\0")[0]))
        report = bind_to_path(call.pid, sock.fileno(), sockaddr)
        self._finish_later(call, report, select.POLLIN, lambda: _reported(report))

    def _bind_internet(self, sock: _socket.socket, sockaddr: bytes) -> None:
        if family_of(sockaddr) == _socket.AF_UNSPEC and sock.family == _socket.AF_INET:
            sockaddr = _socket.AF_INET.to_bytes(2, "little") + sockaddr[2:]  # the kernel takes it for that
        if family_of(sockaddr) != sock.family:
            raise error(errno.EAFNOSUPPORT)
        packed, port = parsed(sockaddr)
        place = self._pod.place(packed)
        if place in {"cluster", "outside"}:
            raise error(errno.EADDRNOTAVAIL)
        self._bind_inside(sock, port, beside_localhost=place == "localhost")

    def _bind_inside(self, sock: _socket.socket, port: int, *, beside_localhost: bool = False) -> None:
        """Binds to the pod's address. ::1 can be bound beside 127.0.0.1."""
        if _is_six_alone(sock):
            self._bind_six(sock, port)
            return
        bound = self._pod.bound(sock.family, port)
        try:
            sock.bind(bound)
        except OSError as fault:
            if fault.errno == errno.EINVAL and port and sock.getsockname()[:2] == bound:
                return  # the call came before, and a signal interrupted it
            if fault.errno != errno.EADDRINUSE or not beside_localhost or sock.family != _socket.AF_INET6:
                raise
            self._bind_six(sock, port)

    def _bind_six(self, sock: _socket.socket, port: int) -> None:
        sock.bind(("::1", 0))
        if port and sock.type == _socket.SOCK_STREAM:
            own = _sixes.setdefault(self._pod.text, {})
            while len(own) >= _MOST_SIXES:
                del own[next(iter(own))]
            own[port] = sock.getsockname()[1]

    def _listen(self, call: Notification, sock: _socket.socket) -> None:
        """A socket that was not bound is bound now: else it would listen on every address."""
        backlog = call.arguments[1] & 0x7FFFFFFF
        if sock.family == _socket.AF_UNIX:
            report = listen_as_caller(call.pid, sock.fileno(), backlog)
            self._finish_later(call, report, select.POLLIN, lambda: _reported(report))
            return
        if sock.family in INTERNET and not self._is_inside(sock):
            self._bind_inside(sock, 0)
        sock.listen(backlog)
        if sock.family in INTERNET and not self._is_inside(sock):  # another thread has disconnected it meanwhile
            sock.shutdown(_socket.SHUT_RD)
            raise error(errno.EADDRNOTAVAIL)
        call.succeed()

    def _is_inside(self, sock: _socket.socket) -> bool:
        """Whether the socket is bound to a loopback address."""
        return self._pod.place(local_address(sock)) not in {"any", "outside"}

    # Connecting

    def _connect(self, call: Notification, sock: _socket.socket) -> None:
        sockaddr = _sockaddr(call, 1)
        if sock.family not in INTERNET:
            call.go_on()
        elif sock.type == _socket.SOCK_DGRAM:
            self._connect_datagrams(sock, sockaddr)
            call.succeed()
        else:
            self._connect_stream(call, sock, sockaddr)

    def _connect_stream(self, call: Notification, sock: _socket.socket, sockaddr: bytes) -> None:
        """Other pods and services see the pod's address; what is wrong with an address, the kernel says."""
        if family_of(sockaddr) != sock.family:
            call.go_on()
            return
        packed, port = parsed(sockaddr)
        place = self._pod.place(packed)
        if place in {"any", "localhost"}:
            self._connect_localhost(call, sock, port, sockaddr)
            return
        if place != "outside" and not _is_six_alone(sock) and not any(local_address(sock)):
            _bind_address(sock, self._pod.bound(sock.family, 0))
        call.go_on()

    def _connect_localhost(self, call: Notification, sock: _socket.socket, port: int, machine: bytes) -> None:
        """To the pod's own listener or, if it has none at that port, to the machine's.

        The shim does not wait: where the socket blocks, the call returns when the connection is there.
        """
        if _is_six_alone(sock):
            sock.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 0)
        targets = self._localhosts(sock.family, port, machine)
        blocks = not fcntl.fcntl(sock.fileno(), fcntl.F_GETFL) & os.O_NONBLOCK
        os.set_blocking(sock.fileno(), False)
        code = _first_not_refused(sock.fileno(), targets)
        if blocks and code in {errno.EINPROGRESS, errno.EALREADY}:
            self._finish_connecting(call, os.dup(sock.fileno()), machine)
            return
        os.set_blocking(sock.fileno(), blocks)
        _reply(call, code)

    def _localhosts(self, family: int, port: int, machine: bytes) -> list[bytes]:
        """What to try in turn. A socket of IPv6 gets one: after IPv4 has refused it, the kernel confuses the two."""
        own = self._pod.sockaddr(family, port)
        if family == _socket.AF_INET:
            return [own, machine]
        six = _sixes.get(self._pod.text, {}).get(port, 0)
        if six and _is_taken(_socket.AF_INET6, _socket.SOCK_STREAM, "::1", six):
            return [localhost_six(six)]
        return [own if _is_taken(_socket.AF_INET, _socket.SOCK_STREAM, self._pod.text, port) else machine]

    def _finish_connecting(self, call: Notification, fd: int, sockaddr: bytes) -> None:
        def finish() -> int:
            code = _connected(fd, sockaddr)
            os.set_blocking(fd, True)
            return code

        self._finish_later(call, fd, select.POLLOUT, finish)

    # Datagrams

    def _connect_datagrams(self, sock: _socket.socket, sockaddr: bytes) -> None:
        if family_of(sockaddr) == _socket.AF_UNSPEC:
            self._bind_again(sock, self._home(sock))
            return
        try:
            if self._face(sock, sockaddr) == "own":
                sockaddr = self._pod.sockaddr(sock.family, parsed(sockaddr)[1])
            kernel.call(CONNECT, sock.fileno(), sockaddr, len(sockaddr))
        except OSError:
            self._bring_home(sock)
            raise

    def _send(self, call: Notification, sock: _socket.socket) -> None:
        """A datagram to localhost. One to the outside connects its socket, which then hears nobody else."""
        sockaddr = _sockaddr(call, 4)
        if sock.family not in INTERNET or sock.type != _socket.SOCK_DGRAM or family_of(sockaddr) not in INTERNET:
            call.go_on()
            return
        try:
            place = self._face(sock, sockaddr)
            if place == "outside":
                kernel.call(CONNECT, sock.fileno(), sockaddr, len(sockaddr))
        except OSError:
            self._bring_home(sock)
            raise
        if place == "own":
            self._send_inside(call, sock, parsed(sockaddr)[1])
        else:
            call.go_on()

    def _send_inside(self, call: Notification, sock: _socket.socket, port: int) -> None:
        _, address, size, flags, *_ = call.arguments
        if size > _LARGEST_DATAGRAM:
            raise error(errno.EMSGSIZE)
        data = call.read(address, size) if size else b""
        target = self._pod.bound(sock.family, port)
        call.succeed(sock.sendto(data, (flags & 0x7FFFFFFF) | _socket.MSG_DONTWAIT, target))

    def _face(self, sock: _socket.socket, sockaddr: bytes) -> Place:
        """Returns where datagrams to that address go, after the socket got an address that reaches it."""
        packed, port = parsed(sockaddr)
        place = self._pod.place(packed)
        if place in {"any", "localhost"} and _is_taken(_socket.AF_INET, _socket.SOCK_DGRAM, self._pod.text, port):
            place = "own"
        if place == "outside":
            if self._is_inside(sock):
                self._bind_again(sock, ("::" if sock.family == _socket.AF_INET6 else "0.0.0.0", 0))  # noqa: S104 - until it is connected
            return place
        six = place in {"any", "localhost"} and not is_four(packed)
        bound = ("::1", 0) if six else self._pod.bound(sock.family, 0)
        if sock.getsockname()[0] != bound[0]:
            self._bind_again(sock, bound)
        return place

    def _home(self, sock: _socket.socket) -> tuple[str, int]:
        """Where a socket is that goes nowhere else."""
        return ("::1", 0) if _is_six_alone(sock) else self._pod.bound(sock.family, 0)

    def _bring_home(self, sock: _socket.socket) -> None:
        """A socket that was to reach the outside, and could not, is not left at every address."""
        if self._pod.place(local_address(sock)) == "any":
            self._bind_again(sock, self._home(sock))

    def _bind_again(self, sock: _socket.socket, bound: tuple[str, int]) -> None:
        """Disconnects the socket and gives it that address; one that was bound to a port keeps both."""
        kernel.call(CONNECT, sock.fileno(), _DISCONNECT, len(_DISCONNECT))
        if sock.getsockname()[1] == 0:
            _bind_address(sock, bound)


def _sockaddr(call: Notification, index: int) -> bytes:
    """The address that two arguments of the call point to; raises `OSError` for one that is too long."""
    address, size = call.arguments[index], call.arguments[index + 1] & 0xFFFFFFFF
    if size > _LONGEST_ADDRESS:
        raise error(errno.EINVAL)
    return call.read(address, size) if size else b""


def _reply(call: Notification, code: int) -> None:
    if code:
        call.fail(code)
    else:
        call.succeed()


def _reported(report: int) -> int:
    """The errno that came through the pipe."""
    try:
        return (os.read(report, 1) or bytes([errno.EIO]))[0]
    except BlockingIOError:
        return errno.EIO


def _is_six_alone(sock: _socket.socket) -> bool:
    """Whether the socket knows no IPv4."""
    return sock.family == _socket.AF_INET6 and bool(sock.getsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY))


def _is_taken(family: int, kind: int, host: str, port: int) -> bool:
    """Whether a socket listens there, or waits for datagrams."""
    probe = _socket.socket(family, kind)
    try:
        if kind == _socket.SOCK_STREAM:
            probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)  # what was closed does not count
        probe.bind((host, port))
    except OSError as fault:
        return fault.errno == errno.EADDRINUSE
    else:
        return False
    finally:
        probe.close()


def _bind_address(sock: _socket.socket, bound: tuple[str, int]) -> None:
    """Gives the socket an address but no port yet, so that it can be bound once more."""
    sock.setsockopt(_socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
    try:
        sock.bind(bound)
    finally:
        sock.setsockopt(_socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 0)


def _first_not_refused(fd: int, sockaddrs: list[bytes]) -> int:
    """The errno, or 0, of the first that does not refuse the connection."""
    code = errno.ECONNREFUSED
    for sockaddr in sockaddrs:
        code = _connected(fd, sockaddr)
        if code == errno.EINPROGRESS and _is_writable(fd):  # on one machine that is soon
            code = _connected(fd, sockaddr)
        if code != errno.ECONNREFUSED:
            break
    return code


def _connected(fd: int, sockaddr: bytes) -> int:
    """The errno, or 0."""
    try:
        return kernel.call(CONNECT, fd, sockaddr, len(sockaddr))
    except OSError as fault:
        return fault.errno or errno.EIO


def _is_writable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))
