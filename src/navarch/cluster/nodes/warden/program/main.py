"""The warden's loop: does what it is told over its socket, and ends with everything it started when that closes."""

from __future__ import annotations

import _socket
import errno
import os
import select
import signal
import time

from navarch.cluster.nodes.warden.program import kernel
from navarch.cluster.nodes.warden.program.children import Child, begin
from navarch.cluster.nodes.warden.program.doors import Door
from navarch.cluster.nodes.warden.program.isolation import Isolation
from navarch.cluster.nodes.warden.program.processes import adopted, descendants, end_children, send
from navarch.cluster.nodes.warden.program.taps import Taps
from navarch.cluster.nodes.warden.program.wire import Inbox, packed, send_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["main"]

_PIECE: Final = 65536


class Warden:
    """Containers and the socket to the cluster, in one thread."""

    def __init__(self, link: _socket.socket, isolation: Isolation) -> None:
        self._link = link
        self._isolation = isolation
        self._alive = os.pidfd_open(os.getpid())
        self._inbox = Inbox()
        self._outbox: list[tuple[bytes, list[int]]] = []
        self._children: dict[str, Child] = {}
        self._readers: dict[int, tuple[Child, str]] = {}
        self._doors: dict[int, Door] = {}
        self._taps = Taps()
        self._stop_at = float("inf")
        self._connected = True
        self._wakeup = _wakeup()

    def run(self) -> None:
        """Returns when the cluster is gone, or has said that all is to end."""
        features = {"mounts": self._isolation.mounts, "processes": self._isolation.processes}
        self._tell({"is": "ready", "limits": self._isolation.limits, **features})
        while self._connected and not self._is_over():
            self._turn()
        end_children()

    def _is_over(self) -> bool:
        stopping = self._stop_at != float("inf")
        return stopping and (not self._children or time.clock_gettime(time.CLOCK_MONOTONIC) >= self._stop_at)

    def _turn(self) -> None:
        reading = [self._link.fileno(), self._wakeup, *self._readers, *self._doors]
        writing = [*([self._link.fileno()] if self._outbox else []), *self._taps.waiting()]
        poll = select.poll()
        for fd in reading:
            poll.register(fd, select.POLLIN)
        for fd in writing:
            poll.register(fd, select.POLLOUT | (select.POLLIN if fd in reading else 0))
        left = self._stop_at - time.clock_gettime(time.CLOCK_MONOTONIC)
        for fd, _ in poll.poll(None if left == float("inf") else max(left, 0) * 1000):
            self._ready(fd)

    def _ready(self, fd: int) -> None:
        if fd == self._link.fileno():
            self._flush()
            self._listen()
        elif fd == self._wakeup:
            os.read(self._wakeup, _PIECE)
            self._reap()
        elif fd in self._readers:
            self._read(fd)
        elif fd in self._doors:
            self._doors[fd].answer()
        else:
            self._taps.flush(fd)

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

    def _begin(self, plan: dict[str, Any], inside: Child | None) -> None:
        try:
            child = begin(plan, self._isolation, self._alive, inside)
        except OSError as error:
            self._tell({"is": "failed", "id": plan["id"], "errno": error.errno or 0, "fault": str(error)})
            return
        self._children[child.id] = child
        self._readers[child.report] = (child, "report")
        if child.door is not None:
            self._doors[child.door.fd] = child.door

    def _exec(self, message: dict[str, Any]) -> None:
        inside = self._children.get(message["container"])
        if inside is None or inside.status is not None:
            self._tell({"is": "failed", "id": message["id"], "errno": errno.ESRCH, "fault": "container not running"})
            return
        own = {key: inside.plan[key] for key in ("env", "folder", "account", "privileged")}
        self._begin({**own, **message}, inside)

    def _began(self, child: Child) -> None:
        """The program runs, or could not be run."""
        del self._readers[child.report]
        os.close(child.report)
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
        self._tell({"is": "started", "id": child.id, "pid": child.pid, "streams": []})

    def _failed(self, child: Child) -> None:
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
        """Reads what is still in the pipe and closes it: all who could write to it are gone, or about to be."""
        os.set_blocking(fd, False)
        while fd in self._readers:
            try:
                data = os.read(fd, _PIECE)
            except OSError:
                data = b""
            self._received(fd, data)

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

    def _took(self, child: Child, stream: str, data: bytes) -> None:
        assert child.log is not None
        child.log.add(stream, data.replace(b"\r\n", b"\n") if child.plan["tty"] else data)
        self._taps.write(child.id, stream, data)

    def _close_reader(self, fd: int) -> None:
        child, stream = self._readers.pop(fd)
        os.close(fd)
        setattr(child.streams, stream, -1)

    # Ending

    def _signal(self, child: Child, number: int) -> None:
        if child.status is not None:
            return
        if number == signal.SIGKILL and not self._isolation.processes:
            for pid in descendants(child.pid):
                send(pid, number)
        send(child.pid, number)

    def _freeze(self, *, frozen: bool) -> None:
        number = signal.SIGSTOP if frozen else signal.SIGCONT
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

    def _ended(self, child: Child, status: int) -> None:
        child.status = status
        if child.report in self._readers:
            self._drain(child.report)
        if child.log is not None and not self._isolation.processes:
            for pid in adopted(child.id, child.pid):
                send(pid, signal.SIGKILL)
        for fd in (child.streams.stdout, child.streams.stderr):
            if fd in self._readers:
                self._drain(fd)
        self._close(child)
        del self._children[child.id]
        if not child.plan.get("failed"):
            killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            code = 128 + killed if killed else os.WEXITSTATUS(status)
            self._tell({"is": "ended", "id": child.id, "code": code, "signal": killed})

    def _close(self, child: Child) -> None:
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
        if child.door is not None:
            del self._doors[child.door.fd]
            child.door.close()
            child.door = None
        self._taps.close(child.id)


def _which(child: Child) -> list[str]:
    return [name for name in ("stdin", "stdout", "stderr") if getattr(child.streams, name) >= 0]


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
    isolation = Isolation(base)
    isolation.find_out()
    isolation.settle()
    kernel.subreaper()
    link = _socket.socket(fileno=fd)
    link.setblocking(False)
    Warden(link, isolation).run()
