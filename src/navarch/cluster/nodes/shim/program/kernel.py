"""System calls that Python 3.11 has no functions for, and the table of calls that find a file by its path."""

from __future__ import annotations

import ctypes
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal

    Does = Literal["open", "look", "change"]

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


class PathCall:
    """A call with paths: the indexes of its path arguments, and of the buffer that it fills. A call that opens has
    flags and mode after its path.
    """

    def __init__(self, does: Does, *paths: int, filled: int = 0, size: int = 0) -> None:
        self.does = does
        self.paths = paths
        self.filled = filled
        self.size = size

    def repeated(self, number: int, arguments: list[int], paths: list[str]) -> bytes:
        """Makes the call with these paths, and returns the filled buffer."""
        buffer = ctypes.create_string_buffer(max(self.size, 1))
        given: list[object] = list(arguments)
        for place, path in zip(self.paths, paths, strict=True):
            given[place] = ctypes.c_char_p(os.fsencode(path))
        if self.size:
            given[self.filled] = buffer
        call(number, *given)
        return buffer.raw[: self.size]


_CALLS_OF_MACHINES: Final = {
    "x86_64": (
        0xC000003E,
        317,
        {
            2: PathCall("open", 0),
            4: PathCall("look", 0, filled=1, size=144),  # stat
            6: PathCall("look", 0, filled=1, size=144),  # lstat
            21: PathCall("look", 0),  # access
            76: PathCall("change", 0),  # truncate
            82: PathCall("change", 0, 1),  # rename
            83: PathCall("change", 0),  # mkdir
            84: PathCall("change", 0),  # rmdir
            87: PathCall("change", 0),  # unlink
            90: PathCall("change", 0),  # chmod
            257: PathCall("open", 1),
            258: PathCall("change", 1),  # mkdirat
            262: PathCall("look", 1, filled=2, size=144),  # newfstatat
            263: PathCall("change", 1),  # unlinkat
            264: PathCall("change", 1, 3),  # renameat
            268: PathCall("change", 1),  # fchmodat
            269: PathCall("look", 1),  # faccessat
            316: PathCall("change", 1, 3),  # renameat2
            332: PathCall("look", 1, filled=4, size=256),  # statx
            439: PathCall("look", 1),  # faccessat2
        },
    ),
    "aarch64": (
        0xC00000B7,
        277,
        {
            34: PathCall("change", 1),  # mkdirat
            35: PathCall("change", 1),  # unlinkat
            38: PathCall("change", 1, 3),  # renameat
            45: PathCall("change", 0),  # truncate
            48: PathCall("look", 1),  # faccessat
            53: PathCall("change", 1),  # fchmodat
            56: PathCall("open", 1),
            79: PathCall("look", 1, filled=2, size=128),  # newfstatat
            276: PathCall("change", 1, 3),  # renameat2
            291: PathCall("look", 1, filled=4, size=256),  # statx
            439: PathCall("look", 1),  # faccessat2
        },
    ),
}


MACHINE, SECCOMP, CALLS = _CALLS_OF_MACHINES.get(os.uname().machine, (0, 0, {}))
"""The architecture as filters name it, the number of `seccomp`, and the calls by number."""


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Gives this process (or, for process ids, its next child) its own namespaces."""
    _checked(_libc.unshare(flags), "unshare")


def setns(fd: int, flags: int) -> None:
    """Enters the namespace behind the descriptor."""
    _checked(_libc.setns(fd, flags), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mounts a file system; empty texts are passed as NULL."""
    given = [text.encode(errors="surrogateescape") or None for text in (source, target, kind, options)]
    _checked(_libc.mount(given[0], given[1], given[2], flags, given[3]), f"mount {target}")


def unmount(target: str, flags: int) -> None:
    """Unmounts the target."""
    _checked(_libc.umount2(os.fsencode(target), flags), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """Makes the mount at `new` the root of this mount namespace."""
    _checked(_libc.pivot_root(os.fsencode(new), os.fsencode(old)), "pivot_root")


def set_hostname(name: str) -> None:
    """Sets the hostname of this namespace."""
    text = name.encode()
    _checked(_libc.sethostname(text, len(text)), "sethostname")


def subreaper() -> None:
    """Makes this process the parent of orphans among its descendants."""
    _checked(_libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0), "prctl")


def with_parent(number: int) -> None:
    """Lets the kernel send this process that signal when its parent dies."""
    _checked(_libc.prctl(_SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0), "prctl")


def drop_capability(number: int) -> None:
    """Drops the capability from the bounding set; ignores one that the kernel does not know."""
    _libc.prctl(_DROP_FROM_BOUNDING_SET, number, 0, 0, 0)


def no_new_privileges() -> None:
    """Prevents this process and its programs from gaining privileges."""
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")


def call(number: int, *arguments: object) -> int:
    """Makes the system call of that number, and returns its result; raises `OSError`."""
    given = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        fault = ctypes.get_errno()
        raise OSError(fault, os.strerror(fault))
    return result


def has_ended(pidfd: int) -> bool:
    """Returns whether the process behind the descriptor has ended."""
    return bool(select.select([pidfd], [], [], 0)[0])
