"""Starts the processes of containers, and holds their streams."""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import resource
import signal
import termios

from navarch.cluster.nodes.shim.program import kernel
from navarch.cluster.nodes.shim.program.isolation import Isolation
from navarch.cluster.nodes.shim.program.mounts import Mounts
from navarch.cluster.nodes.shim.program.output import ContainerLog
from navarch.cluster.nodes.shim.program.processes import MARK
from navarch.cluster.nodes.shim.program.supervisor import SyscallSupervisor, install_and_send, receive_supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, NoReturn

    from navarch.cluster.nodes.shim.program.seccomp import Ports

_HIGHEST_CAPABILITY: Final = 40
_KEPT_CAPABILITIES: Final = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 29, 31})
"""Those that container runtimes leave by default, but for device nodes: no cgroup decides here who may use which."""

_DESCRIPTORS: Final = resource.getrlimit(resource.RLIMIT_NOFILE)
"""How many descriptors programs may have: as many as the shim was begun with."""


def lift_limit() -> None:
    """Raises the limit of descriptors of the shim, which needs several for each container."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS[1], _DESCRIPTORS[1]))


class Streams:
    """Both ends of what leads to one process: `theirs` are its own three standard streams, the others ours (-1: none).

    `report` says why the program could not be run, and closes without a word if it could; the `link` is for its supervisor.
    """

    def __init__(self, *, stdin: bool, tty: bool) -> None:
        self.report, self.their_report = os.pipe()
        self.link = _socket.socketpair()
        self.stdin = self.stderr = -1
        if tty:
            self.stdout, slave = os.openpty()
            self.stdin = os.dup(self.stdout)
            self.theirs = (slave, slave, slave)
            return
        source, self.stdin = os.pipe()
        if not stdin:  # one that has ended: the machine's own /dev/null could be changed by whoever has it
            os.close(self.stdin)
            self.stdin = -1
        self.stdout, out = os.pipe()
        self.stderr, err = os.pipe()
        self.theirs = (source, out, err)

    def close_theirs(self) -> None:
        for fd in {*self.theirs, self.their_report}:
            os.close(fd)
        self.link[1].close()


class ChildProcess:
    """A started process: the first one of a container (which has a log), or another one inside it."""

    def __init__(
        self, plan: dict[str, Any], pid: int, streams: Streams, log: ContainerLog | None, mounts: Mounts
    ) -> None:
        self.id: str = plan["id"]
        self.container: str = plan.get("container", self.id)
        self.plan = plan
        self.pid = pid
        self.report = streams.report
        os.set_blocking(self.report, False)
        self.link = streams.link[0]
        self.link.setblocking(False)
        self.fault = b""
        self.streams = streams
        self.log = log
        self.mounts = mounts
        self.status: int | None = None

    def received_supervisor(self, on_session: Callable[[int], None]) -> SyscallSupervisor | None:
        """The supervisor of the process, if it has one; the mounts are closed with it. Raises `BlockingIOError` until the process
        has come so far: the shim waits for nobody, since what a volume holds may keep the process waiting on its way.
        """
        supervisor = receive_supervisor(self.link, self.mounts, self.plan["address"], on_session)
        self.link.close()
        return supervisor


def begin(plan: dict[str, Any], isolation: Isolation, alive: int, inside: ChildProcess | None) -> ChildProcess:
    """Forks the process. `alive` is a descriptor of the shim; `inside` is the container to run in, if any.

    Raises `OSError` if the machine has no room for another process, pipe or log.
    """
    mounts = inside.mounts.copy() if inside else _mounts(plan, isolation)
    log = ContainerLog(plan["log"]) if inside is None else None
    plan["ports"] = inside.plan["ports"] if inside else _ports(plan, isolation)
    streams = Streams(stdin=plan["stdin"], tty=plan["tty"])
    pid = isolation.fork() if inside is None else isolation.fork_into(inside.pid)
    if pid == 0:
        kernel.with_parent(signal.SIGKILL)
        if kernel.has_ended(alive):
            os._exit(1)
        _become(plan, isolation, streams, inside)
    streams.close_theirs()
    return ChildProcess(plan, pid, streams, log, mounts)


def _mounts(plan: dict[str, Any], isolation: Isolation) -> Mounts:
    """What the supervisor of the container stands for; one that has a tree of its own finds its mounts there."""
    return Mounts(plan["mounts"], plan["hidden"], plan["image"]) if isolation.supervised_files else Mounts([], [])


def _ports(plan: dict[str, Any], isolation: Isolation) -> Ports:
    """Whether sockets are bound by the shim. Where it cannot do that, a program that is told the address of its pod is
    trusted to listen there, and others bind nothing.
    """
    if isolation.ports:
        return "asked"
    return "free" if any(plan["address"] in text for text in (*plan["argv"], *plan["env"].values())) else "refused"


def _become(plan: dict[str, Any], isolation: Isolation, streams: Streams, inside: ChildProcess | None) -> NoReturn:
    """What happens between fork and the program."""
    try:
        _take_streams(streams, tty=plan["tty"])
        if inside is None:
            isolation.seclude(plan)
        else:
            isolation.join(inside.pid)
        _install_filter(plan, isolation, streams.link[1])
        _restrict(plan, isolation)
        _enter_folder(plan["folder"])
        mark = {} if isolation.processes else {MARK: plan["id"] if inside is None else inside.id}
        _run(plan["argv"], {**plan["env"], **mark})
    except OSError as error:
        os.write(streams.their_report, f"{error.errno or 0} {error.strerror or error}".encode(errors="replace"))
    finally:
        os._exit(128)


def _install_filter(plan: dict[str, Any], isolation: Isolation, link: _socket.socket) -> None:
    try:
        install_and_send(
            link,
            files=isolation.supervised_files,
            ports=plan["ports"],
            raw=plan["privileged"],
            sessions=isolation.supervised_sessions,
        )
    except OSError as error:
        fault = f"seccomp: {error}: no container is started that could listen on all addresses of this machine"
        raise OSError(error.errno, fault) from error


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
    resource.setrlimit(resource.RLIMIT_NOFILE, _DESCRIPTORS)
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
