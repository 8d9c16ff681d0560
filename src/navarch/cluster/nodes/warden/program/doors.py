"""Files of containers that have no tree of their own: who asks for one by the place of a mount gets what is meant.

The kernel asks the warden about each call that finds a file by its path (seccomp's user notification, for which nobody
needs rights). What is not at the place of a mount goes on as if nobody had been asked. Not asked about is what nobody can do
for another process: to run a program at the place of a mount, or to make it the working directory.
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import struct
from array import array

from navarch.cluster.nodes.warden.program.calls import CALLS, be_asked
from navarch.cluster.nodes.warden.program.wire import descriptors, send_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NoReturn

__all__ = ["Door", "open_door", "shut_in", "try_door"]

_RECEIVE: Final = 0xC0502100
_ANSWER: Final = 0xC0182101
_HAND_OVER: Final = 0x40182103
_QUESTION: Final = struct.Struct("=QIIiIQ6Q")
_GO_ON: Final = 1
_AND_ANSWER: Final = 2
_WRITING: Final = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
_PAGE: Final = 4096
_LONGEST_PATH: Final = 4096
_NOWHERE: Final = "/nowhere/on/this/machine"


class Door:
    """Stands between the processes of one container and the files they open. `mounts` are sources, targets, and whether
    they are only to be read.
    """

    def __init__(self, fd: int, mounts: list[tuple[str, str, bool]]) -> None:
        self.fd = fd
        places = [(source, target.rstrip("/"), read_only) for source, target, read_only in mounts]
        self._mounts = sorted(places, key=lambda place: len(place[1]), reverse=True)

    def answer(self) -> None:
        """Answers one question; whoever asked may be gone by then."""
        data = bytearray(_QUESTION.size)
        try:
            fcntl.ioctl(self.fd, _RECEIVE, data)
        except OSError:
            return
        identity, pid, _, number, _, _, *arguments = _QUESTION.unpack(data)
        try:
            self._answer(identity, pid, number, arguments)
        except OSError as error:
            self._reply(identity, error=-(error.errno or errno.EACCES))

    def _answer(self, identity: int, pid: int, number: int, arguments: list[int]) -> None:
        call = CALLS[number]
        asked = [_text(pid, arguments[place]) for place in call.paths]
        found = [self._place(path) for path in asked]
        if not any(found):
            self._reply(identity, flags=_GO_ON)
            return
        flags, mode = arguments[call.paths[0] + 1 :][:2]
        writes = call.does == "change" or (call.does == "open" and flags & _WRITING)
        if writes and any(place and place[1] for place in found):
            raise OSError(errno.EROFS, asked[0])
        paths = [place[0] if place else path for place, path in zip(found, asked, strict=True)]
        if call.does == "open":
            self._hand_over(identity, paths[0], flags, mode)
        else:
            _write(pid, arguments[call.filled], call.repeated(number, arguments, paths))
            self._reply(identity)

    def _place(self, path: str) -> tuple[str, bool] | None:
        """Where what is meant is, and whether it is only to be read."""
        for source, target, read_only in self._mounts:
            if path == target or path.startswith(f"{target}/"):
                return source + path[len(target) :], read_only
        return None

    def _hand_over(self, identity: int, path: str, flags: int, mode: int) -> None:
        """Opens it, without waiting for whoever is at the other end of it, and hands it over."""
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode & 0o7777)
        try:
            os.set_blocking(fd, not flags & os.O_NONBLOCK)
            handed = struct.pack("=QIIII", identity, _AND_ANSWER, fd, 0, flags & os.O_CLOEXEC)
            fcntl.ioctl(self.fd, _HAND_OVER, handed)
        finally:
            os.close(fd)

    def _reply(self, identity: int, *, error: int = 0, flags: int = 0) -> None:
        try:
            fcntl.ioctl(self.fd, _ANSWER, struct.pack("=QqiI", identity, 0, error, flags))
        except OSError:
            return

    def close(self) -> None:
        """Nobody is answered any more."""
        os.close(self.fd)


def _text(pid: int, address: int) -> str:
    """The text in the memory of another process; empty if it cannot be read."""
    try:
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return _read_text(fd, address)
    except OSError:
        return ""
    finally:
        os.close(fd)


def _read_text(fd: int, address: int) -> str:
    """Page by page: the next one may not be there."""
    data, piece = b"", b"-"
    while piece and len(data) < _LONGEST_PATH and b"\0" not in data:
        at = address + len(data)
        piece = os.pread(fd, _PAGE - at % _PAGE, at)
        data += piece
    return os.fsdecode(data.partition(b"\0")[0])


def _write(pid: int, address: int, data: bytes) -> None:
    """Writes into the memory of another process."""
    if not data:
        return
    fd = os.open(f"/proc/{pid}/mem", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, data, address)
    finally:
        os.close(fd)


def shut_in(link: _socket.socket) -> None:
    """From here on the warden is asked about each file that this process, or one that it begins, opens or looks at.

    The other end of `link` is told where the questions come.
    """
    fd = be_asked()
    send_with(link, b"!", [fd])
    os.close(fd)


def open_door(link: _socket.socket, mounts: list[tuple[str, str, bool]]) -> Door | None:
    """The door of whoever shuts himself in at the other end; None if that could not be done."""
    _, ancillary, *_ = link.recvmsg(1, _socket.CMSG_LEN(array("i").itemsize), _socket.MSG_CMSG_CLOEXEC)
    found = [fd for level, kind, data in ancillary for fd in descriptors(level, kind, data)]
    return Door(found[0], mounts) if found else None


def try_door() -> None:
    """Has somebody ask for a file at a place where there is none, and hands him one; raises `OSError`."""
    ours, theirs = _socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _ask_once(theirs)
    theirs.close()
    door = open_door(ours, [("/dev/null", _NOWHERE, True)])
    if door is not None:
        door.answer()
        door.close()
    ours.close()
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError(errno.EPERM, "seccomp: no file was handed over")


def _ask_once(link: _socket.socket) -> NoReturn:
    try:
        shut_in(link)
        os.open(_NOWHERE, os.O_RDONLY)
        os._exit(0)
    finally:
        os._exit(1)
