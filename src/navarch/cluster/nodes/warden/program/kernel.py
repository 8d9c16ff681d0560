"""Calls to the kernel that Python 3.11 has no functions for."""

from __future__ import annotations

import ctypes
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = [
    "BIND",
    "DETACH",
    "NEW_MOUNTS",
    "NEW_PROCESSES",
    "NEW_USER",
    "NEW_UTS",
    "PRIVATE",
    "READ_ONLY",
    "RECURSIVE",
    "REMOUNT",
    "call",
    "drop_capability",
    "has_ended",
    "mount",
    "no_new_privileges",
    "pivot_root",
    "set_hostname",
    "setns",
    "subreaper",
    "unmount",
    "unshare",
    "with_parent",
]

NEW_MOUNTS: Final = 0x00020000
NEW_UTS: Final = 0x04000000
NEW_USER: Final = 0x10000000
NEW_PROCESSES: Final = 0x20000000

READ_ONLY: Final = 1
REMOUNT: Final = 32
BIND: Final = 4096
RECURSIVE: Final = 16384
PRIVATE: Final = 1 << 18
DETACH: Final = 2

_SET_PARENT_DEATH_SIGNAL: Final = 1
_DROP_FROM_BOUNDING_SET: Final = 24
_SET_SUBREAPER: Final = 36
_NO_NEW_PRIVILEGES: Final = 38

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
_libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """From here on this process (or, for process ids, its next child) has namespaces of its own."""
    _checked(_libc.unshare(flags), "unshare")


def setns(fd: int, flags: int) -> None:
    """Enters the namespace behind the descriptor."""
    _checked(_libc.setns(fd, flags), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mounts something; texts that are empty are left out."""
    given = [text.encode(errors="surrogateescape") or None for text in (source, target, kind, options)]
    _checked(_libc.mount(given[0], given[1], given[2], flags, given[3]), f"mount {target}")


def unmount(target: str, flags: int) -> None:
    """Takes a mount away."""
    _checked(_libc.umount2(os.fsencode(target), flags), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """Makes the mount at `new` the root of this mount namespace."""
    _checked(_libc.pivot_root(os.fsencode(new), os.fsencode(old)), "pivot_root")


def set_hostname(name: str) -> None:
    """Names the machine, in this namespace."""
    text = name.encode()
    _checked(_libc.sethostname(text, len(text)), "sethostname")


def subreaper() -> None:
    """Orphans among the descendants of this process become its children."""
    _checked(_libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0), "prctl")


def with_parent(number: int) -> None:
    """Sends this process that signal when its parent dies."""
    _checked(_libc.prctl(_SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0), "prctl")


def drop_capability(number: int) -> None:
    """Nothing that this process runs from here on can have that capability; one the kernel does not know is none."""
    _libc.prctl(_DROP_FROM_BOUNDING_SET, number, 0, 0, 0)


def no_new_privileges() -> None:
    """Nothing that this process runs from here on gets rights that it does not have."""
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")


def call(number: int, *arguments: object) -> int:
    """A call by its number."""
    given = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        fault = ctypes.get_errno()
        raise OSError(fault, os.strerror(fault))
    return result


def has_ended(pidfd: int) -> bool:
    """Whether the process behind the descriptor is gone."""
    return bool(select.select([pidfd], [], [], 0)[0])
