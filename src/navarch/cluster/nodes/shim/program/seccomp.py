"""Seccomp: the filter of a container (`install`), and the notifications of its system calls (`Notification`).

Sockets that reach the network are TCP and UDP over IPv4 and IPv6. Other ways to the network (MPTCP, SCTP, vsock,
io_uring, the calls of other architectures) are refused, since no notification would tell what they bind.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import fcntl
import os
import signal
import struct

from navarch.cluster.nodes.shim.program import kernel
from navarch.cluster.nodes.shim.program.guard import GUARDED
from navarch.cluster.nodes.shim.program.kernel import CALLS, MACHINE, SECCOMP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal

    Ports = Literal["asked", "refused", "free"]
    Step = tuple[int, int, int, int]

_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_IS_VALID: Final = 0x40082102
_ADD_FD: Final = 0x40182103
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_CONTINUE: Final = 1
_AND_SEND: Final = 2
_PIDFD_GETFD: Final = 438
_PIDFD_THREAD: Final = os.O_EXCL
_NUMBERS: Final = {
    "x86_64": (41, 42, 44, 46, 49, 50, 307, 323, 112),
    "aarch64": (198, 203, 206, 211, 200, 201, 269, 282, 157),
}
SOCKET, CONNECT, SENDTO, _SENDMSG, BIND, LISTEN, _SENDMMSG, _USERFAULTFD, SETSID = _NUMBERS.get(
    os.uname().machine, (-1,) * 9
)
_IO_URING: Final = (425, 426, 427)
_X32: Final = 0x40000000
_LOAD, _MASK, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _NOTIFY, _ERRNO, _KILL = 0x7FFF0000, 0x7FC00000, 0x00050000, 0x80000000
_SET_FILTER: Final = 1
_NEW_LISTENER: Final = 8
_WAIT_KILLABLE: Final = 32
"""A call that was received is not interrupted by signals (Linux 5.19): the shim may have made it already."""
_FAST_OPEN: Final = 0x20000000
_LOCAL_FAMILIES: Final = (_socket.AF_UNIX, _socket.AF_NETLINK, _socket.AF_ALG)
_TYPE_MASK: Final = 0xF
_ANY_PROTOCOL: Final = 0


class Notification:
    """One system call of one thread, which waits for an answer. Its arguments are read once: the program may change
    them concurrently.
    """

    def __init__(self, listener: int, data: bytes) -> None:
        self._listener = listener
        self._id, self.pid, _, self.number, _, _, *self.arguments = _NOTIFICATION.unpack(data)

    @classmethod
    def receive(cls, listener: int) -> Notification | None:
        """Returns the next notification; None if the thread was killed before."""
        data = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, data)
        except OSError:
            return None
        return cls(listener, bytes(data))

    def read(self, address: int, size: int) -> bytes:
        """Returns that part of the caller's memory; raises `OSError` if it is not mapped."""
        fd = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(fd, size, address)
        except OverflowError as error:  # no address that a process can have
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from error
        finally:
            os.close(fd)
        self._check()
        if len(data) != size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return data

    def socket(self, fd: int) -> _socket.socket:
        """Returns the caller's socket under a descriptor of the shim; raises `OSError` as a call on no socket does."""
        handle = _thread(self.pid)
        try:
            self._check()
            own = kernel.call(_PIDFD_GETFD, handle, fd & 0xFFFFFFFF, 0)
        finally:
            os.close(handle)
        try:
            return _socket.socket(fileno=own)
        except OSError:
            os.close(own)
            raise

    def process(self) -> int:
        """Returns the id of the caller's process, of which it is a thread; raises `OSError` if it was killed."""
        leader = _leader(self.pid)
        self._check()
        return leader

    def _check(self) -> None:
        """Raises `OSError` if the caller was killed: its id may be another process by now."""
        fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", self._id))

    def go_on(self) -> None:
        """Lets the kernel make the call; memory and descriptors may have changed by then."""
        self._send(0, 0, _CONTINUE)

    def succeed(self, value: int = 0) -> None:
        """Lets the call return that value."""
        self._send(value, 0, 0)

    def fail(self, number: int) -> None:
        """Lets the call fail with that errno."""
        self._send(0, -number, 0)

    def hand_over(self, fd: int, flags: int) -> None:
        """Lets the call return a new descriptor of the file behind `fd`; raises `OSError` if the caller can have no
        more.
        """
        handed = struct.pack("=QIIII", self._id, _AND_SEND, fd, 0, flags & os.O_CLOEXEC)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # once begun, it cannot be begun again
        try:
            fcntl.ioctl(self._listener, _ADD_FD, handed)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def _send(self, value: int, error: int, flags: int) -> None:
        answer = struct.pack("=QqiI", self._id, value, error, flags)
        try:
            fcntl.ioctl(self._listener, _SEND, answer)
        except InterruptedError:
            self._send(value, error, flags)
        except OSError:  # it was killed
            return


def _thread(pid: int) -> int:
    """A pidfd of the thread, whose descriptors may be its own; of its process where the kernel has none of threads (6.9)."""
    try:
        return os.pidfd_open(pid, _PIDFD_THREAD)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return os.pidfd_open(_leader(pid))


def _leader(thread: int) -> int:
    """The id of the process that the thread belongs to."""
    with open(f"/proc/{thread}/status", "rb") as status:
        return int(next(line for line in status if line.startswith(b"Tgid:")).split()[1])


def install(*, files: bool, ports: Ports, raw: bool, sessions: bool = False) -> int | None:
    """Filters the calls of this process and of all that it begins; raises `OSError`.

    With `files` the shim is asked about calls that find a file by its path, with `sessions` about new sessions. About
    sockets it is `asked` or, where it cannot answer, they are `refused` to be bound (UDP, which is bound by sending, to be
    made), or `free`. `raw` sockets hear the whole machine, whatever they are bound to.
    Returns the descriptor to which the calls come, if any do.
    """
    listens = files or sessions or ports == "asked"
    if ports == "free" and not listens:
        return None
    bound = {"asked": _asking_rules, "refused": _refusing_rules, "free": list}[ports]()
    of_udp = {"asked": _NOTIFY, "refused": _ERRNO | errno.EACCES, "free": _ALLOW}[ports]
    made = _new_socket(of_udp, _ALLOW if raw else _ERRNO | errno.EPERM)
    asked = [*(_file_rules() if files else ()), *(_rule(SETSID, [(_RETURN, 0, 0, _NOTIFY)]) if sessions else ())]
    steps = [*_head(), *bound, *_rule(SOCKET, made), *asked, (_RETURN, 0, 0, _ALLOW)]
    if not listens:
        _load(steps, 0)
        return None
    try:
        return _load(steps, _NEW_LISTENER | _WAIT_KILLABLE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return _load(steps, _NEW_LISTENER)


def _head() -> list[Step]:
    """Calls of other architectures have other numbers: programs that make them are ended.

    The shim would wait for memory whose faults the program handles itself.
    """
    refused = [
        step
        for number in (*_IO_URING, _USERFAULTFD)
        for step in _rule(number, [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)])
    ]
    return [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, MACHINE),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_IF_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        *refused,
    ]


def _rule(number: int, body: list[Step]) -> list[Step]:
    """What is done about the call of that number; the body ends with a return."""
    return [(_IF_EQUAL, 0, len(body), number), *body]


def _if(values: tuple[int, ...], action: int) -> list[Step]:
    """Returns the action if the accumulator has one of the values."""
    return [step for value in values for step in ((_IF_EQUAL, 0, 1, value), (_RETURN, 0, 0, action))]


def _argument(index: int, *, upper: bool = False) -> Step:
    """Loads half of an argument of the call."""
    return (_LOAD, 0, 0, 16 + 8 * index + (4 if upper else 0))


def _file_rules() -> list[Step]:
    return [step for number in sorted({*CALLS, *GUARDED}) for step in _rule(number, [(_RETURN, 0, 0, _NOTIFY)])]


def _asking_rules() -> list[Step]:
    notify: Step = (_RETURN, 0, 0, _NOTIFY)
    allow: Step = (_RETURN, 0, 0, _ALLOW)
    unsupported: Step = (_RETURN, 0, 0, _ERRNO | errno.EOPNOTSUPP)
    with_address = [
        _argument(3),
        (_IF_ANY, 0, 1, _FAST_OPEN),
        unsupported,
        _argument(4),
        *((_IF_EQUAL, 1, 0, 0), notify),
        _argument(4, upper=True),
        *((_IF_EQUAL, 1, 0, 0), notify),
        allow,
    ]
    return [
        *(step for number in (BIND, LISTEN, CONNECT) for step in _rule(number, [notify])),
        *_rule(SENDTO, with_address),
        *_rule(_SENDMSG, [_argument(2), (_IF_ANY, 0, 1, _FAST_OPEN), unsupported, allow]),
        *_rule(_SENDMMSG, [_argument(3), (_IF_ANY, 0, 1, _FAST_OPEN), unsupported, allow]),
    ]


def _refusing_rules() -> list[Step]:
    refused: Step = (_RETURN, 0, 0, _ERRNO | errno.EACCES)
    return [step for number in (BIND, LISTEN) for step in _rule(number, [refused])]


def _new_socket(of_udp: int, of_raw: int) -> list[Step]:
    """TCP is asked about when it is bound. UDP is bound by its first datagram, so the shim is asked for the socket."""
    unsupported: Step = (_RETURN, 0, 0, _ERRNO | errno.EPROTONOSUPPORT)
    stream = [_argument(2), *_if((_ANY_PROTOCOL, _socket.IPPROTO_TCP), _ALLOW), unsupported]
    datagram = [
        _argument(2),
        *_if((_ANY_PROTOCOL, _socket.IPPROTO_UDP), of_udp),
        *_if((_socket.IPPROTO_ICMP, _socket.IPPROTO_ICMPV6), _ALLOW),
        unsupported,
    ]
    return [
        _argument(0),
        *_if(_LOCAL_FAMILIES, _ALLOW),
        *_if((_socket.AF_PACKET,), of_raw),
        (_IF_EQUAL, 2, 0, _socket.AF_INET),
        (_IF_EQUAL, 1, 0, _socket.AF_INET6),
        (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
        _argument(1),
        (_MASK, 0, 0, _TYPE_MASK),
        *_rule(_socket.SOCK_STREAM, stream),
        *_rule(_socket.SOCK_DGRAM, datagram),
        *_if((_socket.SOCK_RAW,), of_raw),
        unsupported,
    ]


def _load(steps: list[Step], flags: int) -> int:
    if not MACHINE:
        raise OSError(errno.ENOSYS, f"expected a machine of {', '.join(_NUMBERS)}, got {os.uname().machine}")
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    try:
        return kernel.call(SECCOMP, _SET_FILTER, flags, program)
    except OSError as error:
        if error.errno != errno.EACCES:
            raise
    kernel.no_new_privileges()  # whoever may not administer the system gives up setuid programs for it
    return kernel.call(SECCOMP, _SET_FILTER, flags, program)
