"""`SyscallSupervisor`: answers system calls of containers (seccomp user notifications, which need no privileges).

`sockets.py` answers calls about sockets. Containers without a root file system of their own also notify of each call
that finds a file by its path: a path at a mount is replaced by its source, every other call continues. Two calls cannot
be made for another process: executing a program at a mount, and changing the working directory to a mount.
"""

from __future__ import annotations

import _socket
import errno
import os
import select
import struct
from array import array

from navarch.cluster.nodes.shim.program.guard import Guard, HeldPaths, follows_link
from navarch.cluster.nodes.shim.program.kernel import CALLS
from navarch.cluster.nodes.shim.program.mounts import Mounts
from navarch.cluster.nodes.shim.program.seccomp import SETSID, Notification, install
from navarch.cluster.nodes.shim.program.sockets import SOCKET_CALLS, PodSockets
from navarch.cluster.nodes.shim.program.wire import descriptors, send_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, NoReturn

    from navarch.cluster.nodes.shim.program.seccomp import Ports

_WRITING: Final = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
_PAGE: Final = 4096
_LONGEST_PATH: Final = 4096
_NOWHERE: Final = "/nowhere/on/this/machine"
_TRIED: Final = "127.0.0.1"


class SyscallSupervisor:
    """Answers the calls of the processes of one container until the last of them has ended.

    It owns the mounts, and closes them; `address` is the pod's. It calls `on_session` with the id of each new session.
    `fd` is readable while a call waits for an answer.
    """

    def __init__(self, listener: int, mounts: Mounts, address: str, on_session: Callable[[int], None]) -> None:
        self._listener = listener
        self._on_session = on_session
        self._held = mounts
        places = [(_own(source), target.rstrip("/"), read_only) for source, target, read_only in mounts.places]
        self._mounts = sorted(places, key=lambda place: len(place[1]), reverse=True)
        self._guard = Guard(mounts, self._place, _text)
        self._sockets = PodSockets(address, self._wait, self._guard.check_path)
        self._waiting: dict[int, Callable[[], None]] = {}
        self._poll = select.epoll()
        self._poll.register(listener, select.EPOLLIN)
        self.fd = self._poll.fileno()
        self.is_over = False

    def answer(self) -> None:
        """Answers one call, and the calls that waited for something that is ready now."""
        for fd, events in self._poll.poll(0):
            if fd != self._listener:
                self._poll.unregister(fd)
                self._waiting.pop(fd)()
            elif events & select.EPOLLIN:
                self._receive()
            else:
                self.is_over = True

    def _wait(self, fd: int, events: int, then: Callable[[], None]) -> None:
        self._waiting[fd] = then
        self._poll.register(fd, events)

    def _receive(self) -> None:
        """Whatever is wrong with a call is its caller's matter: it fails there, and the shim goes on."""
        call = Notification.receive(self._listener)
        if call is None:
            return
        try:
            if call.number in SOCKET_CALLS:
                self._sockets.answer(call)
            elif call.number == SETSID:
                self._on_session(call.process())
                call.go_on()
            else:
                self._answer(call)
        except OSError as error:
            call.fail(error.errno or errno.EACCES)
        except (OverflowError, ValueError, struct.error):  # no address that a process can have, or no path
            call.fail(errno.EFAULT)
        except Exception:  # noqa: BLE001 - all containers of the node depend on this process
            call.fail(errno.EIO)

    def _answer(self, question: Notification) -> None:
        pid, number, arguments = question.pid, question.number, question.arguments
        self._guard.check(pid, number, arguments)
        call = CALLS.get(number)
        if call is None:
            question.go_on()
            return
        asked = [_text(pid, arguments[place]) for place in call.paths]
        found = [self._place(path) for path in asked]
        if not any(found):
            question.go_on()
            return
        flags, mode = arguments[call.paths[0] + 1 :][:2]
        writes = call.does == "change" or (call.does == "open" and flags & _WRITING)
        if writes and any(place and place[1] for place in found):
            raise OSError(errno.EROFS, asked[0])
        names = asked if all(found) else self._guard.names(pid, number, arguments)
        paths = [place[0] if place else name for place, name in zip(found, names, strict=True)]
        if call.does == "open":
            follows = not flags & (os.O_NOFOLLOW | os.O_EXCL)
            with HeldPaths(pid, paths, follows=follows) as held:
                _hand_over(question, held[0], flags | os.O_NOFOLLOW, mode)
        else:
            with HeldPaths(pid, paths, follows=follows_link(number)) as held:
                filled = call.repeated(number, arguments, held)
            _write(pid, arguments[call.filled], filled)
            question.succeed()

    def _place(self, path: str) -> tuple[str, bool] | None:
        """Where what is meant is, and whether it is only to be read. `..` leads out of no mount."""
        if ".." in path.split("/"):
            path = os.path.normpath(path)
        for source, target, read_only in self._mounts:
            if path == target or path.startswith(f"{target}/"):
                return source + path[len(target) :], read_only
        return None

    def close(self) -> None:
        """Closes the listener; later calls fail."""
        for then in self._waiting.values():
            then()
        self._poll.close()
        os.close(self._listener)
        self._held.close()


def _hand_over(question: Notification, path: str, flags: int, mode: int) -> None:
    """Opens it, without waiting for whoever is at the other end of it, and hands it over."""
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode & 0o7777)
    try:
        os.set_blocking(fd, not flags & os.O_NONBLOCK)
        question.hand_over(fd, flags)
    finally:
        os.close(fd)


def _own(source: str) -> str:
    """A descriptor of the shim, so that it is not taken for one of whoever asks."""
    return source.replace("/proc/self/", f"/proc/{os.getpid()}/", 1) if source.startswith("/proc/self/") else source


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


def install_and_send(
    link: _socket.socket, *, files: bool, ports: Ports, raw: bool = False, sessions: bool = False
) -> None:
    """Installs the filter in this process (see `install`), and sends its listener over `link`."""
    fd = install(files=files, ports=ports, raw=raw, sessions=sessions)
    send_with(link, b"!", [] if fd is None else [fd])
    if fd is not None:
        os.close(fd)


def receive_supervisor(
    link: _socket.socket, mounts: Mounts, address: str, on_session: Callable[[int], None]
) -> SyscallSupervisor | None:
    """Receives the listener of a process that installs its filter, and returns its supervisor; None if there is no
    filter, or it could not be installed.

    Raises `BlockingIOError` if the link does not block, and nothing has arrived.
    """
    _, ancillary, *_ = link.recvmsg(1, _socket.CMSG_LEN(array("i").itemsize), _socket.MSG_CMSG_CLOEXEC)
    found = [fd for level, kind, data in ancillary for fd in descriptors(level, kind, data)]
    if not found:
        mounts.close()
        return None
    return SyscallSupervisor(found[0], mounts, address, on_session)


def try_files() -> None:
    """Tries the supervision of files: a process opens a path that does not exist, and gets a file; raises `OSError`."""
    _try(lambda: os.close(os.open(_NOWHERE, os.O_RDONLY)), files=True)


def try_ports() -> None:
    """Tries the supervision of sockets: a process binds to all addresses, and is bound to one; raises `OSError`."""
    _try(_bind_any, files=False)


def _bind_any() -> None:
    for kind in (_socket.SOCK_STREAM, _socket.SOCK_DGRAM):
        sock = _socket.socket(_socket.AF_INET, kind)
        sock.bind(("", 0))
        if sock.getsockname()[0] != _TRIED:
            raise OSError(errno.EADDRNOTAVAIL, f"expected a socket at {_TRIED}, got {sock.getsockname()[0]}")


def _try(work: Callable[[], None], *, files: bool) -> None:
    """Does it in a process that asks us; raises `OSError` if it goes wrong there."""
    ours, theirs = _socket.socketpair()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _ask(work, theirs, write, files=files)
    theirs.close()
    os.close(write)
    supervisor = receive_supervisor(ours, Mounts([("/dev/null", _NOWHERE, True, "")], []), _TRIED, lambda _: None)
    while supervisor is not None and read not in select.select([supervisor.fd, read], [], [])[0]:
        supervisor.answer()
    with open(read, "rb") as pipe:
        fault = pipe.read().decode(errors="replace")
    if supervisor is not None:
        supervisor.close()
    ours.close()
    os.waitpid(pid, 0)
    if fault:
        raise OSError(errno.EPERM, f"seccomp: {fault}")


def _ask(work: Callable[[], None], link: _socket.socket, report: int, *, files: bool) -> NoReturn:
    try:
        install_and_send(link, files=files, ports="free" if files else "asked")
        work()
    except OSError as error:
        os.write(report, str(error).encode())
    finally:
        os._exit(0)
