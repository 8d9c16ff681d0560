"""Seccomp user notifications: system calls of a container that wait until the warden answers them."""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import signal
import struct

from navarch.cluster.nodes.warden.program import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["Notification"]

_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_IS_VALID: Final = 0x40082102
_ADD_FD: Final = 0x40182103
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_CONTINUE: Final = 1
_AND_SEND: Final = 2
_PIDFD_GETFD: Final = 438
_PIDFD_THREAD: Final = os.O_EXCL


class Notification:
    """One system call of one thread. Whatever it refers to is read once: the program may change it meanwhile."""

    def __init__(self, listener: int, data: bytes) -> None:
        self._listener = listener
        self._id, self.pid, _, self.number, _, _, *self.arguments = _NOTIFICATION.unpack(data)

    @classmethod
    def receive(cls, listener: int) -> Notification | None:
        """Returns the next one; None if the thread was killed before."""
        data = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, data)
        except OSError:
            return None
        return cls(listener, bytes(data))

    def read(self, address: int, size: int) -> bytes:
        """Returns that part of the caller's memory; raises `OSError` if it is not there."""
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
        """Returns the caller's socket itself, under a descriptor of ours; raises `OSError` as for a call on no socket."""
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

    def _check(self) -> None:
        """Raises `OSError` if the caller was killed: its id may be another process by now."""
        fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", self._id))

    def go_on(self) -> None:
        """The kernel makes the call as if nobody had been asked; memory and descriptors may be others by then."""
        self._send(0, 0, _CONTINUE)

    def succeed(self, value: int = 0) -> None:
        """The call returns that."""
        self._send(value, 0, 0)

    def fail(self, number: int) -> None:
        """The call fails with that errno."""
        self._send(0, -number, 0)

    def hand_over(self, fd: int, flags: int) -> None:
        """The call returns a new descriptor of the file behind `fd`; raises `OSError` if the caller can have no more."""
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
    with open(f"/proc/{pid}/status", "rb") as status:
        leader = next(line for line in status if line.startswith(b"Tgid:"))
    return os.pidfd_open(int(leader.split()[1]))
