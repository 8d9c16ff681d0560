"""`Guard`: refuses calls by which a container without a root file system of its own would change files that it must
not.

Such a container shares the machine's files, and its volumes have paths of the machine beside the paths of their mounts.
A read-only volume is read-only by every path, also through links, relative paths and descriptors; of the cluster's own
folders a container sees its volumes alone. This holds for calls that are notified: it prevents mistakes, and is no
barrier against a program that works around it (it may change a path after the check).
"""

from __future__ import annotations

import errno
import os
import stat
import struct

from navarch.cluster.nodes.shim.program.openat import open_beneath, path_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from navarch.cluster.nodes.shim.program.mounts import Mounts

    Place = Callable[[str], "tuple[str, bool] | None"]

_WRITING: Final = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
_CURRENT: Final = -100
_MOST_STEPS: Final = 4096
_ON_THE_WAY: Final = os.O_PATH | os.O_CLOEXEC
_SELF: Final = frozenset({"self", "thread-self"})
_PROCESSES: Final = os.stat("/proc")
_ROOT: Final = os.open("/", _ON_THE_WAY | os.O_DIRECTORY)


class GuardedCall:
    """A call that changes a file: which arguments are its paths, each with the descriptor that it is relative to, if any.

    `follows` says whether a link at the end of a path is followed. `flags` is where one that opens has its flags; `how` where
    they are in memory. A path of -1 means the descriptor itself.
    """

    def __init__(self, *paths: tuple[int | None, int], follows: bool = True, flags: int = -1, how: int = -1) -> None:
        self.paths = paths
        self.follows = follows
        self.flags = flags
        self.how = how

    @property
    def opens(self) -> bool:
        return self.flags >= 0 or self.how >= 0


def _plain(*paths: int, follows: bool = True) -> GuardedCall:
    return GuardedCall(*((None, path) for path in paths), follows=follows)


_OF_MACHINES: Final = {
    "x86_64": {
        2: GuardedCall((None, 0), flags=1),  # open
        76: _plain(0),  # truncate
        82: _plain(0, 1, follows=False),  # rename
        83: _plain(0, follows=False),  # mkdir
        84: _plain(0, follows=False),  # rmdir
        85: _plain(0),  # creat
        86: _plain(0, 1, follows=False),  # link
        87: _plain(0, follows=False),  # unlink
        88: _plain(1, follows=False),  # symlink
        90: _plain(0),  # chmod
        91: GuardedCall((0, -1)),  # fchmod
        92: _plain(0),  # chown
        93: GuardedCall((0, -1)),  # fchown
        94: _plain(0, follows=False),  # lchown
        132: _plain(0),  # utime
        133: _plain(0, follows=False),  # mknod
        188: _plain(0),  # setxattr
        189: _plain(0, follows=False),  # lsetxattr
        190: GuardedCall((0, -1)),  # fsetxattr
        197: _plain(0),  # removexattr
        198: _plain(0, follows=False),  # lremovexattr
        199: GuardedCall((0, -1)),  # fremovexattr
        235: _plain(0),  # utimes
        257: GuardedCall((0, 1), flags=2),  # openat
        258: GuardedCall((0, 1), follows=False),  # mkdirat
        259: GuardedCall((0, 1), follows=False),  # mknodat
        260: GuardedCall((0, 1)),  # fchownat
        261: GuardedCall((0, 1)),  # futimesat
        263: GuardedCall((0, 1), follows=False),  # unlinkat
        264: GuardedCall((0, 1), (2, 3), follows=False),  # renameat
        265: GuardedCall((0, 1), (2, 3)),  # linkat
        266: GuardedCall((1, 2), follows=False),  # symlinkat
        268: GuardedCall((0, 1)),  # fchmodat
        280: GuardedCall((0, 1)),  # utimensat
        316: GuardedCall((0, 1), (2, 3), follows=False),  # renameat2
        437: GuardedCall((0, 1), how=2),  # openat2
        452: GuardedCall((0, 1)),  # fchmodat2
        463: GuardedCall((0, 1)),  # setxattrat
        466: GuardedCall((0, 1)),  # removexattrat
    },
    "aarch64": {
        5: _plain(0),  # setxattr
        6: _plain(0, follows=False),  # lsetxattr
        7: GuardedCall((0, -1)),  # fsetxattr
        14: _plain(0),  # removexattr
        15: _plain(0, follows=False),  # lremovexattr
        16: GuardedCall((0, -1)),  # fremovexattr
        33: GuardedCall((0, 1), follows=False),  # mknodat
        34: GuardedCall((0, 1), follows=False),  # mkdirat
        35: GuardedCall((0, 1), follows=False),  # unlinkat
        36: GuardedCall((1, 2), follows=False),  # symlinkat
        37: GuardedCall((0, 1), (2, 3)),  # linkat
        38: GuardedCall((0, 1), (2, 3), follows=False),  # renameat
        45: _plain(0),  # truncate
        52: GuardedCall((0, -1)),  # fchmod
        53: GuardedCall((0, 1)),  # fchmodat
        54: GuardedCall((0, 1)),  # fchownat
        55: GuardedCall((0, -1)),  # fchown
        56: GuardedCall((0, 1), flags=2),  # openat
        88: GuardedCall((0, 1)),  # utimensat
        276: GuardedCall((0, 1), (2, 3), follows=False),  # renameat2
        437: GuardedCall((0, 1), how=2),  # openat2
        452: GuardedCall((0, 1)),  # fchmodat2
        463: GuardedCall((0, 1)),  # setxattrat
        466: GuardedCall((0, 1)),  # removexattrat
    },
}


GUARDED: Final = _OF_MACHINES.get(os.uname().machine, {})
"""By number."""


class Guard:
    """Judges the calls of one container. What is in the hidden folders of `mounts`, but not in a mount, is not for it.
    `place` finds the source of a path at a mount, `text` the text at an address of a process.

    The path of a mounted part counts as the part: it is how commands name it. If it is a link, its target is judged too.
    """

    def __init__(self, mounts: Mounts, place: Place, text: Callable[[int, int], str]) -> None:
        self._hidden = tuple(os.path.realpath(folder) for folder in mounts.hidden)
        found: dict[str, bool] = {}
        whole = [(os.path.realpath(source), read_only) for source, _, read_only in mounts.places]
        for path, read_only in (*whole, *mounts.parts):
            found[path] = read_only and found.get(path, True)
        self._sources = sorted(found.items(), key=lambda source: len(source[0]), reverse=True)
        self._place = place
        self._text = text

    def names(self, pid: int, number: int, arguments: list[int]) -> list[str]:
        """Absolute names of the paths of a call, as this process can use them too."""
        return [self._named(pid, arguments, *pair) for pair in GUARDED[number].paths]

    def check(self, pid: int, number: int, arguments: list[int]) -> None:
        """Raises `OSError` for a call that the container may not make: EROFS or EACCES."""
        call = GUARDED.get(number)
        if call is None:
            return
        flags = _flags(call, pid, arguments) if call.opens else 0
        writes = not call.opens or bool(flags & _WRITING)
        for descriptor, path in call.paths:
            self._check(pid, self._named(pid, arguments, descriptor, path), writes=writes, follows=call.follows)

    def check_path(self, pid: int, path: str) -> None:
        """Raises `OSError` if the process may not create something at that path."""
        if not self._sources and not self._hidden:
            return
        named = path if path.startswith("/") else f"/proc/{pid}/cwd/{path}"
        self._check(pid, named, writes=True, follows=False)

    def _named(self, pid: int, arguments: list[int], descriptor: int | None, path: int) -> str:
        """An absolute path of what is meant, as it is named on this machine."""
        text = self._text(pid, arguments[path]) if path >= 0 and arguments[path] else ""
        if text.startswith("/"):
            return text
        at = (
            _CURRENT
            if descriptor is None
            else struct.unpack("=i", struct.pack("=I", arguments[descriptor] & 0xFFFFFFFF))[0]
        )
        above = f"/proc/{pid}/cwd" if at == _CURRENT else f"/proc/{pid}/fd/{at}"
        return f"{above}/{text}" if text else above

    def _check(self, pid: int, path: str, *, writes: bool, follows: bool) -> None:
        place = self._place(path)
        if writes and place is not None and place[1]:
            raise OSError(errno.EROFS, path)
        for real in {real_path(pid, place[0] if place else path, follows=each) for each in {False, follows}}:
            read_only = self._is_read_only(real)
            if read_only is None and _is_in(real, self._hidden):
                raise OSError(errno.EACCES, path)
            if writes and read_only:
                raise OSError(errno.EROFS, path)

    def _is_read_only(self, path: str) -> bool | None:
        """Whether the mount that a path of the machine belongs to is only to be read; None if it belongs to none."""
        return next((read_only for source, read_only in self._sources if _is_in(path, (source,))), None)


def follows_link(number: int) -> bool:
    """Whether a call follows a link at the end of its path; one that only looks is left to do so itself."""
    return number in GUARDED and GUARDED[number].follows


def _is_in(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _flags(call: GuardedCall, pid: int, arguments: list[int]) -> int:
    if call.how < 0:
        return arguments[call.flags]
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found: int = struct.unpack("=Q", os.pread(fd, 8, arguments[call.how]))[0]
    finally:
        os.close(fd)
    return found


class HeldPaths:
    """Paths of a process, for another one to use: resolved as for that process, each by a descriptor of the folder it is in.

    A link in a volume could otherwise lead to files of the one that opens it, such as `/proc/self/mem`. Raises `OSError`.
    """

    def __init__(self, pid: int, paths: list[str], *, follows: bool) -> None:
        self._folders: list[int] = []
        self._paths: list[str] = []
        try:
            for path in paths:
                above, _, name = real_path(pid, path, follows=follows).rpartition("/")
                self._folders.append(_folder(above))
                self._paths.append(f"/proc/self/fd/{self._folders[-1]}/{name}")
        except OSError:
            self.__exit__()
            raise

    def __enter__(self) -> list[str]:
        return self._paths

    def __exit__(self, *_: object) -> None:
        while self._folders:
            os.close(self._folders.pop())


def _folder(path: str) -> int:
    """A folder without links on the way to it; what the kernel shows of processes is for these alone."""
    if path == "/proc" or path.startswith("/proc/"):
        raise OSError(errno.EACCES, path)
    return open_beneath(_ROOT, path_parts(path, "in_root"), _ON_THE_WAY | os.O_DIRECTORY)


def real_path(pid: int, path: str, *, follows: bool) -> str:
    """Where the path leads for that process; a link at its end is followed if asked for. What is not there is named all the
    same. Raises `OSError` for a path that has no end, or is too long to be named.
    """
    waiting = [part for part in reversed(path.split("/")) if part not in {"", "."}]
    here, steps = os.open("/", _ON_THE_WAY), 0
    try:
        while waiting:
            part = waiting.pop()
            steps += 1
            if steps > _MOST_STEPS:
                raise OSError(errno.ELOOP, path)
            if part in _SELF and os.path.samestat(os.fstat(here), _PROCESSES):
                part = str(pid)
            there, target = _step(here, part, follows=bool(waiting) or follows)
            if there < 0 and target is None:
                return "/".join([_name(here), part, *reversed(waiting)])
            if target is not None:
                waiting += [each for each in reversed(target.split("/")) if each not in {"", "."}]
                there = os.open("/", _ON_THE_WAY) if target.startswith("/") else os.dup(here)
            os.close(here)
            here = there
        return _name(here)
    finally:
        os.close(here)


def _step(above: int, part: str, *, follows: bool) -> tuple[int, str | None]:
    """What a part of a path is, or where it leads if it is a link that is to be followed; neither if there is nothing.

    Links to open files and folders of processes lead there directly, whatever their text is.
    """
    try:
        fd = os.open(part, _ON_THE_WAY | os.O_NOFOLLOW, dir_fd=above)
    except OSError:
        return -1, None
    found = os.fstat(fd)
    if not follows or not stat.S_ISLNK(found.st_mode):
        return fd, None
    try:
        target = os.readlink("", dir_fd=fd)
        if found.st_dev != _PROCESSES.st_dev or target.startswith("self/"):
            return -1, target
        return os.open(part, _ON_THE_WAY, dir_fd=above), None
    except OSError:
        return -1, None
    finally:
        os.close(fd)


def _name(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}").rstrip("/")
