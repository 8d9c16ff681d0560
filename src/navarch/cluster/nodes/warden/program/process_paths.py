"""Paths as another process means them: resolved for it, and used for it."""

from __future__ import annotations

import errno
import os
import stat

from navarch.cluster.nodes.warden.program.openat import open_beneath, path_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["HeldPaths", "real_path"]

_MOST_STEPS: Final = 4096
_ON_THE_WAY: Final = os.O_PATH | os.O_CLOEXEC
_SELF: Final = frozenset({"self", "thread-self"})
_PROCESSES: Final = os.stat("/proc")
_ROOT: Final = os.open("/", _ON_THE_WAY | os.O_DIRECTORY)


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
