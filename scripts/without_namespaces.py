"""Runs a command as an ordinary user on a kernel that refuses user namespaces: `python -m without_namespaces COMMAND…`."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

_NEW_MOUNTS: Final = 0x00020000
_NEW_USER: Final = 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 18
_ORDINARY: Final = 1000
_libc = ctypes.CDLL(None, use_errno=True)


def refuse_namespaces() -> None:
    """Makes this process an ordinary user, and lets the kernel refuse it namespaces after its next exec.

    The process moves into a user namespace of its own, where the limit of user namespaces is 0: the same answers as on a
    machine with `user.max_user_namespaces=0`, without a change for any other process. Root becomes user 1000 who writes to
    root's home, the working directory and folders of temporary files alone; the rest of the file system is read-only.
    Where the kernel refuses an ordinary user this namespace, it already refuses those of the command.
    """
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _write_protect((Path.home(), Path.cwd(), Path(tempfile.gettempdir())))
    if _libc.unshare(_NEW_USER) and user != 0 and ctypes.get_errno() in {errno.EPERM, errno.ENOSPC}:
        return
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user or _ORDINARY} {user} 1")
    (own / "gid_map").write_text(f"{group or _ORDINARY} {group} 1")
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def _write_protect(writable: tuple[Path, ...]) -> None:
    """Makes the root file system read-only but for these folders, for this process and those that it starts."""
    _checked(_libc.unshare(_NEW_MOUNTS), "unshare")
    _mount("/", "/", _RECURSIVE | _PRIVATE)
    for folder in writable:
        _mount(str(folder), str(folder), _BIND | _RECURSIVE)
    _mount("/", "/", _REMOUNT | _BIND | _READ_ONLY)
    os.chdir(Path.cwd())  # the same folder on its new mount


def _mount(source: str, target: str, flags: int) -> None:
    _checked(_libc.mount(source.encode(), target.encode(), None, ctypes.c_ulong(flags), None), f"mount {target}")


def _checked(result: int, what: str) -> None:
    if result:
        fault = ctypes.get_errno()
        raise OSError(fault, f"{what}: {os.strerror(fault)}")


if __name__ == "__main__":
    refuse_namespaces()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the command is the caller's own
