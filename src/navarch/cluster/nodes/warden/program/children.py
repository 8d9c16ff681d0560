"""Processes of containers: how they are begun, and what is known of each."""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import signal
import termios

from navarch.cluster.nodes.warden.program import kernel
from navarch.cluster.nodes.warden.program.doors import Door, open_door, shut_in
from navarch.cluster.nodes.warden.program.isolation import Isolation
from navarch.cluster.nodes.warden.program.logs import Log
from navarch.cluster.nodes.warden.program.processes import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, NoReturn

__all__ = ["Child", "Streams", "begin"]

_HIGHEST_CAPABILITY: Final = 40
_KEPT_CAPABILITIES: Final = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31})
"""Those that container runtimes leave by default."""


class Streams:
    """Both ends of what leads to one process: `theirs` are its own three standard streams, the others ours (-1: none).

    `report` says why the program could not be run, and closes without a word if it could; a `link` is for its door.
    """

    def __init__(self, *, stdin: bool, tty: bool, door: bool) -> None:
        self.report, self.their_report = os.pipe()
        self.link = _socket.socketpair() if door else None
        self.stdin = self.stderr = -1
        if tty:
            self.stdout, slave = os.openpty()
            self.stdin = os.dup(self.stdout)
            self.theirs = (slave, slave, slave)
            return
        source = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        if stdin:
            os.close(source)
            source, self.stdin = os.pipe()
        self.stdout, out = os.pipe()
        self.stderr, err = os.pipe()
        self.theirs = (source, out, err)

    def close_theirs(self) -> None:
        for fd in {*self.theirs, self.their_report}:
            os.close(fd)

    def opened_door(self, mounts: list[tuple[str, str, bool]]) -> Door | None:
        """The door of the process that was begun, if it has one."""
        if self.link is None:
            return None
        ours, theirs = self.link
        theirs.close()
        try:
            return open_door(ours, mounts)
        finally:
            ours.close()


class Child:
    """A process that was begun: the first of a container (which has a log), or one more inside it."""

    def __init__(self, plan: dict[str, Any], pid: int, streams: Streams, log: Log | None, door: Door | None) -> None:
        self.id: str = plan["id"]
        self.plan = plan
        self.pid = pid
        self.report = streams.report
        self.fault = b""
        self.streams = streams
        self.log = log
        self.door = door
        self.status: int | None = None


def begin(plan: dict[str, Any], isolation: Isolation, alive: int, inside: Child | None) -> Child:
    """Forks the process. `alive` is a descriptor of the warden itself; `inside` is the container to run in, if any.

    Raises `OSError` if there is no room for one more process, pipe or log.
    """
    log = Log(plan["log"]) if inside is None else None
    streams = Streams(stdin=plan["stdin"], tty=plan["tty"], door=isolation.doors)
    pid = isolation.fork() if inside is None else isolation.fork_into(inside.pid)
    if pid == 0:
        kernel.with_parent(signal.SIGKILL)
        if kernel.has_ended(alive):
            os._exit(1)
        _become(plan, isolation, streams, inside)
    streams.close_theirs()
    return Child(plan, pid, streams, log, streams.opened_door((inside.plan if inside else plan)["mounts"]))


def _become(plan: dict[str, Any], isolation: Isolation, streams: Streams, inside: Child | None) -> NoReturn:
    """What happens between fork and the program."""
    try:
        _take_streams(streams, tty=plan["tty"])
        if inside is None:
            isolation.seclude(plan["mounts"], plan["hostname"])
        else:
            isolation.join(inside.pid)
        if streams.link is not None:
            shut_in(streams.link[1])
        _restrict(plan, isolation)
        _enter_folder(plan["folder"])
        mark = {} if isolation.processes else {MARK: plan["id"] if inside is None else inside.id}
        _run(plan["argv"], {**plan["env"], **mark})
    except OSError as error:
        os.write(streams.their_report, f"{error.errno or 0} {error.strerror or error}".encode(errors="replace"))
    finally:
        os._exit(128)


def _take_streams(streams: Streams, *, tty: bool) -> None:
    os.setsid()
    for number, fd in enumerate(streams.theirs):
        os.dup2(fd, number)
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _restrict(plan: dict[str, Any], isolation: Isolation) -> None:
    """The account, the capabilities, and signals as a program expects them."""
    if isolation.is_root and not plan["privileged"]:
        for number in range(_HIGHEST_CAPABILITY + 1):
            if number not in _KEPT_CAPABILITIES:
                kernel.drop_capability(number)
    user, group, groups = plan["account"]
    if isolation.accounts and (user is not None or group is not None or groups):
        os.setgroups(groups)
        os.setgid(group or 0)
        os.setuid(user or 0)
        kernel.with_parent(signal.SIGKILL)  # forgotten when the account changes
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)


def _enter_folder(folder: str) -> None:
    try:
        os.chdir(folder)
    except FileNotFoundError:
        os.makedirs(folder)
        os.chdir(folder)


def _run(argv: list[str], env: dict[str, str]) -> NoReturn:
    """Runs the program. It is looked for here, since the library's search imports what this account may not read."""
    program = argv[0]
    folders = [""] if "/" in program else env.get("PATH", "").split(":")
    passed_over = set() if "/" in program else {errno.ENOENT, errno.ENOTDIR, errno.EACCES}
    fault = OSError(errno.ENOENT, "")
    for folder in folders:
        try:
            os.execve(os.path.join(folder, program), argv, env)  # noqa: S606 - what the user asked for
        except OSError as error:
            if error.errno not in passed_over:
                fault = error
    raise OSError(fault.errno, _cannot_run(program, fault))


def _cannot_run(program: str, error: OSError) -> str:
    """As container runtimes say it."""
    if error.errno in {errno.ENOENT, errno.ENOTDIR} and "/" not in program:
        return f'exec: "{program}": executable file not found in $PATH'
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return f'exec: "{program}": stat {program}: no such file or directory'
    return f'exec: "{program}": {(error.strerror or str(error)).lower()}'
