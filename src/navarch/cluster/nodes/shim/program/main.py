"""The shim's event loop: executes the messages of its socket, and kills all containers when the socket closes."""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import select
import signal
import time

from navarch.cluster.nodes.shim.program.children import ChildProcess, begin, lift_limit
from navarch.cluster.nodes.shim.program.isolation import Isolation
from navarch.cluster.nodes.shim.program.output import AttachedReaders
from navarch.cluster.nodes.shim.program.processes import SessionOwners, descendants, end_children, end_orphans, send
from navarch.cluster.nodes.shim.program.supervisor import SyscallSupervisor
from navarch.cluster.nodes.shim.program.wire import Inbox, packed, send_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_PIECE: Final = 65536
_LONGEST_BEGINNING: Final = 60
"""In seconds: what a container goes through before its program runs takes much less."""
_TOO_LATE: Final = (
    f"expected the program to run within {_LONGEST_BEGINNING} s, got no file tree with its volumes until then"
)
_NO_PORTS: Final = (
    "this container cannot bind sockets, since the kernel does not let the node bind them to the pod's address; "
    "name that address in its command or environment ($(POD_IP), status.podIP), and listen there"
)


class Shim:
    """The containers of one node and the socket to the cluster, in one thread."""

    def __init__(self, link: _socket.socket, isolation: Isolation) -> None:
        self._link = link
        self._isolation = isolation
        self._alive = os.pidfd_open(os.getpid())
        self._inbox = Inbox()
        self._outbox: list[tuple[bytes, list[int]]] = []
        self._children: dict[str, ChildProcess] = {}
        self._readers: dict[int, tuple[ChildProcess, str]] = {}
        self._beginning: dict[str, float] = {}
        self._links: dict[int, ChildProcess] = {}
        self._supervisors: dict[int, SyscallSupervisor] = {}
        self._awaited: dict[int, int] = {}
        self._poll = select.poll()
        self._taps = AttachedReaders()
        self._sessions = SessionOwners()
        self._stop_at = float("inf")
        self._connected = True
        self._wakeup = _wakeup()

    def run(self) -> None:
        """Returns when the cluster has closed the socket or has sent `stop`, or the guardian was killed."""
        features = {"mounts": self._isolation.mounts, "processes": self._isolation.processes}
        self._tell({"is": "ready", "limits": self._isolation.limits, **features})
        while self._connected and not self._is_over():
            self._turn()
        end_children()

    def _is_over(self) -> bool:
        stopping = self._stop_at != float("inf")
        return stopping and (not self._children or time.clock_gettime(time.CLOCK_MONOTONIC) >= self._stop_at)

    def _turn(self) -> None:
        guardian = [self._isolation.guardian] if self._isolation.guardian >= 0 else []
        fds = (self._link.fileno(), self._wakeup, *guardian, *self._readers, *self._links, *self._supervisors)
        awaited = dict.fromkeys(fds, select.POLLIN)
        for fd in (*([self._link.fileno()] if self._outbox else []), *self._taps.waiting()):
            awaited[fd] = awaited.get(fd, 0) | select.POLLOUT
        if awaited != self._awaited:
            self._awaited, self._poll = awaited, select.poll()
            for fd, events in awaited.items():
                self._poll.register(fd, events)
        left = min(self._stop_at, *self._beginning.values(), float("inf")) - time.clock_gettime(time.CLOCK_MONOTONIC)
        for fd, _ in self._poll.poll(None if left == float("inf") else max(left, 0) * 1000):
            self._ready(fd)
        self._end_late()

    def _ready(self, fd: int) -> None:
        if fd == self._link.fileno():
            self._flush()
            self._listen()
        elif fd == self._wakeup:
            os.read(self._wakeup, _PIECE)
            self._reap()
        elif fd == self._isolation.guardian:
            self._connected = False
        elif fd in self._readers:
            self._read(fd)
        elif fd in self._links:
            self._start_supervisor(self._links[fd])
        elif fd in self._supervisors:
            self._answer(self._supervisors[fd])
        else:
            self._taps.flush(fd)

    def _answer(self, supervisor: SyscallSupervisor) -> None:
        """Its container may have ended long ago: what was left running by an exec still asks."""
        supervisor.answer()
        if supervisor.is_over:
            del self._supervisors[supervisor.fd]
            supervisor.close()

    # The socket

    def _listen(self) -> None:
        try:
            messages = self._inbox.receive(self._link)
        except BlockingIOError:
            return
        if messages is None:
            self._connected = False
        for message in messages or ():
            self._do(message)

    def _do(self, message: dict[str, Any]) -> None:
        child = self._children.get(message.get("id", ""))
        match message["do"]:
            case "start":
                self._begin(message, None)
            case "exec":
                self._exec(message)
            case "attach":
                self._attach(message)
            case "signal" if child is not None:
                self._signal(child, message["number"])
            case "freeze":
                self._freeze(frozen=message["frozen"])
            case "stop":
                self._stop(message["seconds"])

    def _tell(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        self._outbox.append((packed({**message, "descriptors": len(fds or [])}), fds or []))
        self._flush()

    def _flush(self) -> None:
        while self._outbox:
            data, fds = self._outbox[0]
            try:
                sent = send_with(self._link, data, fds)
            except BlockingIOError:
                return
            except OSError:
                self._connected = False
                return
            for fd in fds:
                os.close(fd)
            self._outbox[0] = (data[sent:], [])
            if sent == len(data):
                self._outbox.pop(0)

    # Beginning

    def _begin(self, plan: dict[str, Any], inside: ChildProcess | None) -> None:
        try:
            child = begin(plan, self._isolation, self._alive, inside)
        except OSError as error:
            self._tell({"is": "failed", "id": plan["id"], "errno": error.errno or 0, "fault": str(error)})
            return
        self._children[child.id] = child
        self._sessions.add(child.pid, child.container)
        self._readers[child.report] = (child, "report")
        self._links[child.link.fileno()] = child
        self._beginning[child.id] = time.clock_gettime(time.CLOCK_MONOTONIC) + _LONGEST_BEGINNING

    def _start_supervisor(self, child: ChildProcess) -> None:
        """The process has its tree and asks from here on, or it has ended before."""
        fd = child.link.fileno()
        try:
            supervisor = child.received_supervisor(lambda session: self._sessions.add(session, child.container))
        except BlockingIOError:
            return
        del self._links[fd]
        if supervisor is not None:
            self._supervisors[supervisor.fd] = supervisor

    def _exec(self, message: dict[str, Any]) -> None:
        inside = self._children.get(message["container"])
        if inside is None or inside.status is not None or inside.id in self._beginning:
            self._tell({"is": "failed", "id": message["id"], "errno": errno.ESRCH, "fault": "container not running"})
            return
        own = {key: inside.plan[key] for key in ("env", "folder", "account", "privileged", "address")}
        self._begin({**own, **message}, inside)

    def _began(self, child: ChildProcess) -> None:
        """The program runs, or could not be run."""
        del self._beginning[child.id]
        del self._readers[child.report]
        os.close(child.report)
        child.report = -1  # the number may soon be that of another container's output
        if child.fault:
            self._failed(child)
            return
        streams = child.streams
        ours = [fd for fd in (streams.stdin, streams.stdout, streams.stderr) if fd >= 0]
        if child.log is None:
            self._tell({"is": "started", "id": child.id, "pid": child.pid, "streams": _which(child)}, ours)
            streams.stdin = streams.stdout = streams.stderr = -1
            return
        for stream, fd in (("stdout", streams.stdout), ("stderr", streams.stderr)):
            if fd >= 0:
                os.set_blocking(fd, False)
                self._readers[fd] = (child, stream)
        notice = _NO_PORTS if child.plan["ports"] == "refused" else ""
        self._tell({"is": "started", "id": child.id, "pid": child.pid, "streams": [], "notice": notice})

    def _end_late(self) -> None:
        """Kills what takes too long to begin."""
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        for name in [name for name, limit in self._beginning.items() if limit <= now]:
            child = self._children[name]
            send(child.pid, signal.SIGKILL)
            child.fault = f"{errno.ETIMEDOUT} {_TOO_LATE}".encode()
            self._began(child)

    def _failed(self, child: ChildProcess) -> None:
        number, _, fault = child.fault.decode(errors="replace").partition(" ")
        self._tell({"is": "failed", "id": child.id, "errno": int(number), "fault": fault})
        self._close(child)
        child.plan["failed"] = True

    def _attach(self, message: dict[str, Any]) -> None:
        child = self._children.get(message["container"])
        if child is None or child.log is None or child.status is not None:
            self._tell({"is": "failed", "id": message["id"], "errno": errno.ESRCH, "fault": "container not running"})
            return
        stdin = [os.dup(child.streams.stdin)] if child.streams.stdin >= 0 and message["stdin"] else []
        names = [name for name in ("stdout", "stderr") if message[name] and (name == "stdout" or not child.plan["tty"])]
        outputs = [self._taps.add(child.id, name) for name in names]
        streams = [*(["stdin"] if stdin else []), *names]
        self._tell({"is": "started", "id": message["id"], "pid": child.pid, "streams": streams}, [*stdin, *outputs])
        if stdin and child.plan["stdin_once"] and not child.plan["tty"]:
            os.close(child.streams.stdin)
            child.streams.stdin = -1

    # Output

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # the other end of a terminal is gone
            data = b""
        self._received(fd, data)

    def _drain(self, fd: int) -> None:
        """Reads what is still in the pipe and closes it: all who should write to it are gone, or about to be.

        No more than fits in, since a container may have given it to another one, which goes on writing.
        """
        os.set_blocking(fd, False)
        left = _capacity(fd)
        while fd in self._readers:
            try:
                data = os.read(fd, left)
            except OSError:
                data = b""
            left -= len(data)
            self._received(fd, data)
            if left == 0 and fd in self._readers:
                self._received(fd, b"")

    def _received(self, fd: int, data: bytes) -> None:
        child, stream = self._readers[fd]
        if stream == "report":
            child.fault += data
            if not data:
                self._began(child)
        elif data:
            self._took(child, stream, data)
        else:
            self._close_reader(fd)

    def _took(self, child: ChildProcess, stream: str, data: bytes) -> None:
        assert child.log is not None
        child.log.add(stream, data.replace(b"\r\n", b"\n") if child.plan["tty"] else data)
        self._taps.write(child.id, stream, data)

    def _close_reader(self, fd: int) -> None:
        child, stream = self._readers.pop(fd)
        os.close(fd)
        setattr(child.streams, stream, -1)

    # Ending

    def _signal(self, child: ChildProcess, number: int) -> None:
        if child.status is not None:
            return
        if number == signal.SIGKILL and not self._isolation.processes:
            for pid in descendants(child.pid):
                send(pid, number)
        send(child.pid, number)

    def _freeze(self, *, frozen: bool) -> None:
        number = signal.SIGSTOP if frozen else signal.SIGCONT
        left = float("inf") if frozen else _LONGEST_BEGINNING
        self._beginning = dict.fromkeys(self._beginning, time.clock_gettime(time.CLOCK_MONOTONIC) + left)
        for pid in descendants(os.getpid()):
            send(pid, number)

    def _stop(self, seconds: float) -> None:
        self._stop_at = time.clock_gettime(time.CLOCK_MONOTONIC) + seconds
        for child in self._children.values():
            self._signal(child, signal.SIGCONT)
            self._signal(child, signal.SIGTERM)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = next((known for known in self._children.values() if known.pid == pid), None)
            if child is not None:
                self._ended(child, status)

    def _ended(self, child: ChildProcess, status: int) -> None:
        child.status = status
        if child.link.fileno() in self._links:
            self._start_supervisor(child)
        if child.report in self._readers:
            self._drain(child.report)
        if child.log is not None and not self._isolation.processes:
            end_orphans(child.id, self._sessions.remove(child.id))
        for fd in (child.streams.stdout, child.streams.stderr):
            if fd in self._readers:
                self._drain(fd)
        self._close(child)
        del self._children[child.id]
        if not child.plan.get("failed"):
            killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            code = 128 + killed if killed else os.WEXITSTATUS(status)
            self._tell({"is": "ended", "id": child.id, "code": code, "signal": killed})

    def _close(self, child: ChildProcess) -> None:
        for name in ("stdin", "stdout", "stderr"):
            fd = getattr(child.streams, name)
            if fd in self._readers:
                self._close_reader(fd)
            elif fd >= 0:
                os.close(fd)
                setattr(child.streams, name, -1)
        if child.log is not None:
            child.log.close()
            child.log = None
        self._taps.close(child.id)


def _which(child: ChildProcess) -> list[str]:
    return [name for name in ("stdin", "stdout", "stderr") if getattr(child.streams, name) >= 0]


def _capacity(fd: int) -> int:
    """How many bytes there can be in a pipe, or about as many as in a terminal."""
    try:
        return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    except OSError:
        return _PIECE


def _wakeup() -> int:
    """A descriptor that can be read when a child has ended."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def main(fd: int, base: str) -> None:
    """Serves the cluster at the other end of the socket."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a terminal's Ctrl-C is for the cluster
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(fd, False)
    lift_limit()
    isolation = Isolation(base)
    isolation.find_out()
    isolation.settle()
    link = _socket.socket(fileno=fd)
    link.setblocking(False)
    Shim(link, isolation).run()
