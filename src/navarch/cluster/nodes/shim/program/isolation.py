"""`Isolation`: finds out by trying which namespaces this machine allows for containers, and applies them."""

from __future__ import annotations

import os
import signal

from navarch.cluster.nodes.shim.program import kernel, rootfs
from navarch.cluster.nodes.shim.program.mounts import Mounts
from navarch.cluster.nodes.shim.program.processes import end_children
from navarch.cluster.nodes.shim.program.supervisor import try_files, try_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

_ACCOUNTS: Final = "runAsUser, runAsGroup and fsGroup are not honoured"
_MEANS: Final = (
    "containers see the machine as it is; in their commands and variables volumes are named by where they are"
)
_NO_PORTS: Final = "containers bind no sockets, unless their command or environment names the address of their pod"
_MOST_DESCRIPTORS: Final = 1 << 16
_UNASKED: Final = "names of services do not resolve, and read-only volumes can be written to"


class Isolation:
    """What keeps containers apart from each other and from the machine.

    `mounts`: they have file trees of their own; `supervised_files`: instead of these, files are opened for them by the places of their
    mounts; `processes`: they have process ids of their own, and all of them end with the first; `ports`: what they bind is
    bound to the address of their pod.
    `limits` says in words what is not possible. Without root the shim has namespaces of its own around those of its
    containers, since it may do nothing with others.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        self._own = self.guardian = -1
        self.is_root = os.geteuid() == 0
        self.mounts = self.processes = self.supervised_files = self.ports = False
        self.limits: list[str] = [] if self.is_root else [f"not root: {_ACCOUNTS}"]

    def find_out(self) -> None:
        """Tries with an empty container what every container needs."""
        self._find_ports()
        fault = _attempt(self._try_processes)
        if not fault:
            self.mounts = self.processes = True
            return
        self.limits.append(f"no process namespaces ({fault}): containers see each other's processes")
        fault = _attempt(self._try_mounts)
        self.mounts = not fault
        if fault:
            self.limits.append(f"no mount namespaces ({fault}): {_MEANS}{f', and {_ACCOUNTS}' if self.is_root else ''}")
            self._find_supervision()

    def _find_ports(self) -> None:
        fault = _attempt(try_ports)
        self.ports = not fault
        if fault:
            self.limits.append(f"the kernel does not ask about sockets ({fault}): {_NO_PORTS}")

    def _find_supervision(self) -> None:
        fault = _attempt(try_files)
        self.supervised_files = not fault
        if fault:
            self.limits.append(f"the kernel does not ask about files ({fault}): {_UNASKED}")

    @property
    def supervised_sessions(self) -> bool:
        """Whether the kernel tells of new sessions: without process namespaces, sessions say whose a process is."""
        return not self.processes and (self.ports or self.supervised_files)

    @property
    def accounts(self) -> bool:
        """Whether a program runs as whom its pod says. Who may not look into programs of others has to be one of them."""
        return self.is_root and self.mounts

    def _try_processes(self) -> None:
        if self.is_root:
            self._try_container()
            return
        self._take(kernel.NEW_PROCESSES | kernel.NEW_MOUNTS)
        _attempt_or_raise(self._try_inside)

    def _try_inside(self) -> None:
        _show_own_processes()
        self._try_container()

    def _try_container(self) -> None:
        kernel.unshare(kernel.NEW_PROCESSES | kernel.NEW_MOUNTS | kernel.NEW_UTS)
        _attempt_or_raise(lambda: rootfs.enter(self._base, [], own_processes=True))

    def _try_mounts(self) -> None:
        self._take(kernel.NEW_MOUNTS | kernel.NEW_UTS)
        rootfs.enter(self._base, [], own_processes=False)

    def _take(self, flags: int) -> None:
        """Namespaces for this process, or for its children; where we are not root, in a user namespace of ours."""
        if self.is_root:
            kernel.unshare(flags)
            return
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEW_USER | flags)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)

    def settle(self) -> None:
        """Moves the shim into its own namespaces, if it needs some."""
        if self.processes and not self.is_root:
            self._go_inside()
        elif self.mounts and not self.is_root:
            self._take(kernel.NEW_MOUNTS)
        if self.processes:
            self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        else:
            self._leave_guardian()
        kernel.subreaper()

    def _leave_guardian(self) -> None:
        """The shim goes on as a child; this process kills what the shim leaves behind if the shim is killed.

        The shim does the same if the guardian is killed: `guardian` can be read then.
        """
        kernel.subreaper()
        guardian = os.pidfd_open(os.getpid())
        pid = os.fork()
        if pid:
            _close_descriptors()
            os.waitpid(pid, 0)
            end_children()
            os._exit(0)
        os.setpgid(0, 0)
        self.guardian = guardian

    def _go_inside(self) -> None:
        """The shim goes on as a child, the first process of a namespace; this one only waits. Who kills either, kills all."""
        self._take(kernel.NEW_PROCESSES | kernel.NEW_MOUNTS)
        outer = os.pidfd_open(os.getpid())
        pid = os.fork()
        if pid:
            _close_descriptors()
            os.waitpid(pid, 0)
            os._exit(0)
        kernel.with_parent(signal.SIGKILL)
        if kernel.has_ended(outer):
            os._exit(1)
        os.close(outer)
        _show_own_processes()

    def fork(self) -> int:
        """Forks the first process of a container."""
        if self.processes:
            kernel.unshare(kernel.NEW_PROCESSES)
        return self._forked()

    def fork_into(self, pid: int) -> int:
        """Forks another process of the container whose first process has that id."""
        if self.processes:
            _enter(pid, "pid", kernel.NEW_PROCESSES)
        return self._forked()

    def _forked(self) -> int:
        try:
            pid = os.fork()
        except OSError:
            self._return()
            raise
        if pid:
            self._return()
        return pid

    def _return(self) -> None:
        """The shim's next child is to be in the shim's own namespace again."""
        if self.processes:
            kernel.setns(self._own, kernel.NEW_PROCESSES)

    def seclude(self, plan: dict[str, Any]) -> None:
        """Gives this process, the first of a container, its own root file system and hostname."""
        if not self.mounts:
            return
        kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_UTS)
        if plan["hostname"]:
            kernel.set_hostname(plan["hostname"])
        mounts = Mounts(
            plan["mounts"], plan["hidden"]
        )  # a descriptor from outside of this namespace cannot be mounted in it
        rootfs.enter(
            self._base,
            mounts.places,
            own_processes=self.processes,
            privileged=plan["privileged"],
            hidden=mounts.hidden,
            image=plan["image"],
        )
        if plan["read_only"]:
            os.makedirs(plan["folder"], exist_ok=True)
            rootfs.make_root_read_only()

    def join(self, pid: int) -> None:
        """Moves this process into the mount namespace of the container whose first process has that id."""
        if self.mounts:
            _enter(pid, "uts", kernel.NEW_UTS)
            _enter(pid, "mnt", kernel.NEW_MOUNTS)


def _close_descriptors() -> None:
    """Closes all but the standard streams: the cluster is to see when the shim itself closes its own."""
    os.closerange(3, _MOST_DESCRIPTORS)


def _show_own_processes() -> None:
    kernel.mount("", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("proc", "/proc", "proc")


def _enter(pid: int, kind: str, flag: int) -> None:
    fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        kernel.setns(fd, flag)
    finally:
        os.close(fd)


def _attempt_or_raise(work: Callable[[], None]) -> None:
    fault = _attempt(work)
    if fault:
        raise OSError(fault)


def _attempt(work: Callable[[], None]) -> str:
    """Does it in a process of its own; returns what went wrong, or nothing."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _report(work, write)
    os.close(write)
    with open(read, "rb") as pipe:
        fault = pipe.read().decode(errors="replace")
    os.waitpid(pid, 0)
    return fault


def _report(work: Callable[[], None], write: int) -> None:
    try:
        work()
    except OSError as error:
        os.write(write, str(error).encode())
    finally:
        os._exit(0)
