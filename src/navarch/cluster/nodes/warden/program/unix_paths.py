"""Unix sockets that are bound to a path, or listen: by a process of its own, which is to the kernel who the caller is."""

from __future__ import annotations

import errno
import os

from navarch.cluster.nodes.warden.program import kernel
from navarch.cluster.nodes.warden.program.filters import BIND, LISTEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

__all__ = ["bind_to_path", "listen_as_caller"]


def bind_to_path(pid: int, socket: int, sockaddr: bytes) -> int:
    """Binds the socket with the root, folder, account and umask of the thread with that id.

    Returns a descriptor where one byte comes, the errno or 0. The kernel cannot go on with the call itself: another thread
    could put a socket of the network under the same descriptor meanwhile.
    """
    return _begun(pid, lambda: kernel.call(BIND, socket, sockaddr, len(sockaddr)))


def listen_as_caller(pid: int, socket: int, backlog: int) -> int:
    """The same for `listen`: whoever connects is told the account that did it (SO_PEERCRED)."""
    return _begun(pid, lambda: kernel.call(LISTEN, socket, backlog))


def _begun(pid: int, work: Callable[[], object]) -> int:
    read, write = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(read)
        os.close(write)
        raise
    if child == 0:
        _do(pid, work, write)
    os.close(write)
    os.set_blocking(read, False)
    return read


def _do(pid: int, work: Callable[[], object], report: int) -> NoReturn:
    number = errno.EIO
    try:
        _become(pid)
        work()
        number = 0
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        os.write(report, bytes([number]))
        os._exit(0)


def _become(pid: int) -> None:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    folder = os.open(f"/proc/{pid}/cwd", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if not os.path.samestat(os.fstat(root), os.stat("/")):
        os.fchdir(root)
        os.chroot(".")
    user, group = (int(status[name].split()[3]) for name in ("Uid", "Gid"))
    if os.geteuid() == 0:
        os.setgroups([int(word) for word in status["Groups"].split()])
        os.setgid(group)
        os.setuid(user)
    os.fchdir(folder)
    os.umask(int(status.get("Umask", "022"), 8))
