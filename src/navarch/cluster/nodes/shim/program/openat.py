"""Opens paths beneath a directory without leaving it, whatever symbolic links and renames there are meanwhile.

The kernel does it (`openat2`, Linux 5.6) or, where it cannot, a walk that opens one directory after the other.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from navarch.cluster.nodes.shim.program import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal

    Links = Literal["refuse", "beneath", "in_root"]

_OPENAT2: Final = 437
_CURRENT: Final = -100
_NO_MAGIC_LINKS, _NO_SYMBOLIC_LINKS, _BENEATH, _IN_ROOT = 0x02, 0x04, 0x08, 0x10
_RESOLVE: Final = {"refuse": _BENEATH | _NO_SYMBOLIC_LINKS, "beneath": _BENEATH, "in_root": _IN_ROOT}
_MOST_LINKS: Final = 40
_MOST_TRIES: Final = 64
_MOST_HELD: Final = 256
_ON_THE_WAY: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def open_beneath(directory: int, parts: list[str], flags: int, mode: int = 0, links: Links = "refuse") -> int:
    """A descriptor of what is at the path beneath the directory. Raises `OSError`: EXDEV for a path that leaves it.

    `links` says what symbolic links mean. `refuse`: ELOOP. `beneath`: they are followed, and are an error where they leave
    the directory. `in_root`: they are followed as if the directory were `/`, as after chroot.
    """
    try:
        return resolver(directory, parts, flags | os.O_CLOEXEC, mode, links)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "/".join(parts)) from None


def path_parts(path: str, links: Links) -> list[str]:
    """The parts of a path; raises `OSError` for one that leads out before any link is followed."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if "\0" in path:
        raise OSError(errno.EINVAL, "a path cannot contain a NUL character", path)
    if links != "in_root" and (path.startswith("/") or ".." in parts):
        raise OSError(errno.EXDEV, "path leads out of its root", path)
    return parts


def _openat2(directory: int, parts: list[str], flags: int, mode: int, links: Links) -> int:
    """Resolves by the kernel. A rename elsewhere can make it unsure of `..` for a moment; it says so, and is asked again."""
    creates = flags & (os.O_CREAT | os.O_TMPFILE & ~os.O_DIRECTORY)
    how = struct.pack("=QQQ", flags, mode if creates else 0, _RESOLVE[links] | _NO_MAGIC_LINKS)
    path = ctypes.c_char_p(os.fsencode("/".join(parts) or "."))
    for tries_left in reversed(range(_MOST_TRIES)):
        try:
            return kernel.call(_OPENAT2, directory, path, ctypes.c_char_p(how), len(how))
        except BlockingIOError:
            if not tries_left:
                raise
    raise AssertionError


def _walk(directory: int, parts: list[str], flags: int, mode: int, links: Links) -> int:
    """Resolves part by part. `..` leads back to where the walk came from, whatever was renamed meanwhile."""
    way = [os.open(".", _ON_THE_WAY, dir_fd=directory)]
    waiting, followed = parts[::-1], 0
    try:
        while waiting:
            part = waiting.pop()
            if part == "..":
                _go_up(way, links)
                continue
            opened, target = _step(way[-1], part, flags, mode, is_last=not waiting)
            if target is None and not waiting:
                return opened
            if target is None:
                way.append(opened)
                continue
            followed += 1
            if links == "refuse" or followed > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)
            if target.startswith("/"):
                if links != "in_root":
                    raise OSError(errno.EXDEV, "symbolic link leads out of its root", part)
                _close(way[1:])
                del way[1:]
            waiting += [each for each in reversed(target.split("/")) if each not in {"", "."}]
            if len(waiting) + len(way) > _MOST_HELD:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), part)
        return os.open(".", flags & ~os.O_NOFOLLOW, mode, dir_fd=way[-1])
    finally:
        _close(way)


def _go_up(way: list[int], links: Links) -> None:
    if len(way) > 1:
        os.close(way.pop())
    elif links != "in_root":
        raise OSError(errno.EXDEV, "path leads out of its root", "..")


def _step(above: int, part: str, flags: int, mode: int, *, is_last: bool) -> tuple[int, str | None]:
    """The descriptor of one part, or where it leads if it is a link that is to be followed."""
    own = flags if is_last else _ON_THE_WAY
    try:
        fd = os.open(part, own | os.O_NOFOLLOW, mode, dir_fd=above)
    except OSError as error:
        follows = not (is_last and flags & (os.O_NOFOLLOW | os.O_EXCL))
        if follows and error.errno in {errno.ELOOP, errno.ENOTDIR}:
            return -1, _link(above, part, error)
        raise
    if is_last and flags & os.O_PATH and not flags & os.O_NOFOLLOW and stat.S_ISLNK(os.fstat(fd).st_mode):
        try:
            return -1, os.readlink("", dir_fd=fd)
        finally:
            os.close(fd)
    return fd, None


def _link(above: int, part: str, error: OSError) -> str:
    """Where the link leads; raises the error if it is none."""
    try:
        return os.readlink(part, dir_fd=above)
    except OSError:
        raise error from None


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _has_openat2() -> bool:
    """Linux has it since 5.6; a container's filter may refuse what it does not know."""
    try:
        os.close(_openat2(_CURRENT, [], os.O_PATH | os.O_CLOEXEC, 0, "beneath"))
    except OSError:
        return False
    return True


resolver = _openat2 if _has_openat2() else _walk
