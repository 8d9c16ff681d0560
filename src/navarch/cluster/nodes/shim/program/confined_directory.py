"""`ConfinedDirectory`: a directory, and operations on paths beneath it that never leave it, as Go's `os.Root` has them.

Everything that nodes do on this machine with files that a container can change goes through this module. A path is
resolved once (see `openat`), and the operation then acts on the descriptor: whoever replaces a directory by a symbolic
link meanwhile leads nobody elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat

from navarch.cluster.nodes.shim.program.openat import open_beneath, path_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Self

    from navarch.cluster.nodes.shim.program.openat import Links

_MOST_DEPTH: Final = 32
"""So many levels of a tree are removed with a descriptor for each; what is deeper is moved up first."""
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ON_THE_WAY: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_REPLACED: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""What is no directory any more, or too deep for a path."""


class ConfinedDirectory:
    """A directory that no path leads out of. `with` closes its descriptor.

    Paths are relative; `links` says what symbolic links in them mean, and the last part of a path that is created,
    replaced, renamed or removed is never followed. Raises `OSError`: EXDEV for a path that leaves the root, ELOOP for a
    symbolic link that is refused.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def at(cls, path: str | os.PathLike[str], *, create: bool = False) -> Self:
        """The directory at a path that is trusted: no container can change what is on the way to it."""
        if create:
            os.makedirs(path, exist_ok=True)
        return cls(os.open(path, _DIRECTORY))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.fd)

    def open(self, path: str, flags: int, mode: int = 0o600, *, links: Links = "refuse") -> int:
        """A descriptor of what is at the path."""
        return open_beneath(self.fd, path_parts(path, links), flags, mode, links)

    def open_file(self, path: str) -> int:
        """A descriptor to read a regular file; a pipe or a device that somebody put there is an error."""
        return _regular(self.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))

    def open_directory(self, path: str, *, create: int | None = None, links: Links = "refuse") -> ConfinedDirectory:
        """The directory at the path; with `create` those that are missing on the way are made with that mode."""
        if create is not None:
            self.make_directories(path, create, links=links)
        return ConfinedDirectory(self.open(path, _DIRECTORY, links=links))

    def make_directories(self, path: str, mode: int, *, links: Links = "refuse") -> None:
        """Makes the directory and those above it that are missing, whatever the umask. A link to nowhere is an error."""
        parts = path_parts(path, links)
        reached = os.dup(self.fd)
        try:
            for end in range(1, len(parts) + 1):
                below = self._open_next(reached, parts, end, mode, links)
                os.close(reached)
                reached = below
        finally:
            os.close(reached)

    def _open_next(self, above: int, parts: list[str], end: int, mode: int, links: Links) -> int:
        """The directory at the first `end` parts, the last of which is in the directory `above`."""
        try:
            return self._step(above, parts, end, links)
        except FileNotFoundError:
            _make_directory(above, parts[end - 1], mode)
        return self._step(above, parts, end, links)

    def _step(self, above: int, parts: list[str], end: int, links: Links) -> int:
        """Most steps begin where the last one ended: a path of many parts is not resolved anew for each of them. A link or
        `..` may lead anywhere beneath the root, so the way to it is resolved from there.
        """
        try:
            return open_beneath(above, [parts[end - 1]], _ON_THE_WAY, 0, "refuse")
        except OSError as error:
            if links == "refuse" or error.errno not in {errno.ELOOP, errno.EXDEV}:
                raise
        return open_beneath(self.fd, parts[:end], _ON_THE_WAY, 0, links)

    def list(self, path: str = ".") -> list[str]:
        """The names in a directory."""
        fd = self.open(path, _DIRECTORY)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def stat(self, path: str) -> os.stat_result:
        """What the path itself is; a symbolic link at its end is not followed."""
        fd = self.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        """Whether there is anything at the path, a link to nowhere included."""
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def leads_to(self, path: str, *, links: Links) -> bool:
        """Whether the path leads to something; a link to nowhere does not."""
        try:
            os.close(self.open(path, os.O_PATH, links=links))
        except FileNotFoundError:
            return False
        return True

    def read(self, path: str, limit: int, *, from_end: bool = False) -> bytes:
        """The first bytes of a regular file, or the last."""
        fd = self.open_file(path)
        try:
            start = max(os.fstat(fd).st_size - limit, 0) if from_end else 0
            return os.pread(fd, limit, start)
        finally:
            os.close(fd)

    def create(self, path: str, data: bytes, mode: int, owner: int = -1, group: int = -1) -> None:
        """A new file; FileExistsError if there is anything of that name, a link included."""
        fd = self.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            _write(fd, data)
            if (owner, group) != (-1, -1):
                os.fchown(fd, owner, group)
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        """Changes a file in place, since it may be mounted; who reads meanwhile never finds it empty."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = _regular(self.open(path, flags, 0o600))
        try:
            _write(fd, data)
            os.ftruncate(fd, len(data))
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def symlink(self, target: str, path: str) -> None:
        """A symbolic link."""
        with _Parent(self, path) as (above, name):
            os.symlink(target, name, dir_fd=above)

    def link_target(self, path: str) -> str | None:
        """Where a symbolic link leads; None if there is none."""
        with _Parent(self, path) as (above, name):
            try:
                return os.readlink(name, dir_fd=above)
            except OSError as error:
                if error.errno in {errno.EINVAL, errno.ENOENT}:
                    return None
                raise

    def move(self, old: str, new: str) -> None:
        """Renames, in the place of what had the new name."""
        with _Parent(self, old) as (above, name), _Parent(self, new) as (below, other):
            os.rename(name, other, src_dir_fd=above, dst_dir_fd=below)

    def remove_all(self, path: str) -> None:
        """Removes what is at the path with all that is in it, on this file system alone; nothing there is no error."""
        try:
            with _Parent(self, path) as (above, name):
                _Removal(above).remove(name)
        except FileNotFoundError:
            return

    def give_to_group(self, group: int) -> None:
        """Gives the directory and all that is in it to a group. Not what a link leads to, nor a file with more names than
        one: another name may be elsewhere.
        """
        waiting: list[list[str]] = [[]]
        while waiting:
            parts = waiting.pop()
            try:
                fd = open_beneath(self.fd, parts, _DIRECTORY, 0, "refuse")
            except OSError as error:
                if parts and error.errno in _REPLACED:
                    continue
                raise
            try:
                os.fchown(fd, -1, group)
                waiting += [[*parts, name] for name in os.listdir(fd) if _give_entry(fd, name, group)]
            finally:
                os.close(fd)


class _Parent:
    """The directory that a path is in, open while the block lasts, and the last part of the path."""

    def __init__(self, root: ConfinedDirectory, path: str) -> None:
        *above, self._name = path_parts(path, "refuse") or [""]
        if self._name in {"", ".."}:
            raise OSError(errno.EINVAL, f"expected the name of an entry, got {path!r}")
        self._fd = open_beneath(root.fd, above, _DIRECTORY, 0, "refuse")

    def __enter__(self) -> tuple[int, str]:
        return self._fd, self._name

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


class _Removal:
    """Removes one entry of a directory with all that is in it, without following links or entering other mounts.

    What can be removed is, before the first error is raised.
    """

    def __init__(self, above: int) -> None:
        self._above = above
        self._device = os.fstat(above).st_dev
        self._waiting: list[str] = []
        self._fault: OSError | None = None

    def remove(self, name: str) -> None:
        self._waiting.append(name)
        while self._waiting:
            self._remove(self._above, self._waiting.pop(), 0)
        if self._fault is not None:
            raise self._fault

    def _remove(self, above: int, name: str, depth: int) -> None:
        try:
            try:
                os.unlink(name, dir_fd=above)
            except (IsADirectoryError, PermissionError):
                self._remove_directory(above, name, depth)
        except FileNotFoundError:
            return
        except OSError as error:
            self._fault = self._fault or error

    def _remove_directory(self, above: int, name: str, depth: int) -> None:
        if depth == _MOST_DEPTH:
            moved = f"..removed-{os.urandom(8).hex()}"
            os.rename(name, moved, src_dir_fd=above, dst_dir_fd=self._above)
            self._waiting.append(moved)
            return
        fd = self._opened(above, name)
        try:
            for inner in os.listdir(fd):
                self._remove(fd, inner, depth + 1)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=above)

    def _opened(self, above: int, name: str) -> int:
        """The directory, which its owner may have closed even to himself."""
        fd = os.open(name, _ON_THE_WAY | os.O_NOFOLLOW, dir_fd=above)
        try:
            found = os.fstat(fd)
            if found.st_dev != self._device:
                raise OSError(errno.EXDEV, "another file system is mounted here", name)
            if found.st_mode & 0o700 != 0o700:
                os.chmod(f"/proc/self/fd/{fd}", 0o700)
            return os.open(".", _DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)


def _make_directory(above: int, name: str, mode: int) -> None:
    try:
        os.mkdir(name, mode, dir_fd=above)
    except FileExistsError:  # somebody else was first, or it is a link to nowhere, which the next step finds
        return
    made = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        os.fchmod(made, mode)
    finally:
        os.close(made)


def _regular(fd: int) -> int:
    """The descriptor, if it is of a regular file; closes it otherwise."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "expected a regular file, got something else")


def _write(fd: int, data: bytes) -> None:
    """Writes all of it at the beginning."""
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done:], done)


def _give_entry(above: int, name: str, group: int) -> bool:
    """Gives one entry to a group, unless it is a directory; returns whether it is."""
    try:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except FileNotFoundError:
        return False
    try:
        found = os.fstat(fd)
        if found.st_nlink == 1 and not stat.S_ISLNK(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            os.chown(f"/proc/self/fd/{fd}", -1, group)
        return stat.S_ISDIR(found.st_mode)
    finally:
        os.close(fd)
