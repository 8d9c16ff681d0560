"""`FileTree`: the files of an image in memory, as layers and packages add to them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from navarch.errors import ImageError

Kind = Literal["file", "directory", "link"]
_MOST_LINKS: Final = 40
_LONGEST_PATH: Final = 4096
_FILE_MODE: Final = 0o777  # no set-uid programs beside those of the machine
_DIRECTORY_MODE: Final = 0o1777


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file, a directory or a symbolic link."""

    kind: Kind
    mode: int
    content: bytes = b""
    target: str = ""
    """Where a link points to, as it was written."""
    user: int = 0
    group: int = 0


class FileTree:
    """Files by their paths: relative, normal, in the order of their names. No path leads through a link.

    What is added below a link lands where the link points to inside the tree, as in a container. A path that leaves
    the tree is refused with `ImageError`.

    >>> tree = FileTree()
    >>> tree.add_link("lib", "usr/lib")
    >>> tree.add_file("lib/libc.so.6", b"...", mode=0o755)
    >>> [path for path, _ in tree]
    ['lib', 'usr', 'usr/lib', 'usr/lib/libc.so.6']
    """

    def __init__(self) -> None:
        self._entries: dict[str, FileEntry] = {}

    def __iter__(self) -> Iterator[tuple[str, FileEntry]]:
        """Yields paths and entries, a directory before what is in it."""
        return iter(self._sorted())

    def _sorted(self) -> list[tuple[str, FileEntry]]:
        return sorted(self._entries.items())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: str) -> bool:
        return self.find(path) is not None

    @property
    def size(self) -> int:
        """Returns the bytes of all files."""
        return sum(len(entry.content) for entry in self._entries.values())

    def add_file(self, path: str, content: bytes, *, mode: int = 0o644, user: int = 0, group: int = 0) -> None:
        """Adds a file, in place of what has its path."""
        self.add(path, FileEntry(kind="file", mode=mode, content=content, user=user, group=group))

    def add_directory(self, path: str, *, mode: int = 0o755, user: int = 0, group: int = 0) -> None:
        """Adds a directory; one that is there gets the mode and the owner."""
        self.add(path, FileEntry(kind="directory", mode=mode, user=user, group=group))

    def add_link(self, path: str, target: str) -> None:
        """Adds a symbolic link, in place of what has its path."""
        self.add(path, FileEntry(kind="link", mode=0o777, target=target))

    def add(self, path: str, entry: FileEntry) -> None:
        """Adds the entry, and the directories above it."""
        place = self._place(path)
        if not place:  # the root itself
            return
        there = self._entries.get(place)
        if there is not None and there.kind == "directory" and entry.kind != "directory":
            self.remove(place)
        if there is not None and there.kind == "link" and entry.kind == "directory":
            linked = self.resolve(place)
            if linked is not None and self._is_directory(linked):
                return  # a package may have a directory where the distribution has a link to one
        self._entries[place] = entry

    def add_hard_link(self, path: str, target: str) -> None:
        """Adds another name of a file that is in the tree."""
        found = self.find(target)
        if found is None or found.kind == "directory":
            raise ImageError(f"{path}: expected a hard link to a file of the image, got {target!r}, which is none")
        self.add(path, found)

    def find(self, path: str) -> FileEntry | None:
        """Returns the entry of that path, which may lead through links; a link at its end is not followed."""
        return self._entries.get(self._place(path, create=False))

    def read(self, path: str) -> bytes | None:
        """Returns the content of a file; links are followed. None if there is no such file."""
        found = self.resolve(path)
        entry = self._entries.get(found) if found is not None else None
        return entry.content if entry is not None and entry.kind == "file" else None

    def resolve(self, path: str) -> str | None:
        """Returns the path with every link followed, inside the tree; None if it has too many links."""
        place = self._place(path, create=False)
        for _ in range(_MOST_LINKS):
            entry = self._entries.get(place)
            if entry is None or entry.kind != "link":
                return place
            place = self._place(_joined(place, entry.target), create=False)
        return None

    def remove(self, path: str) -> None:
        """Removes the entry and, of a directory, everything in it; an absent one is no fault."""
        place = self._place(path, create=False)
        self._entries.pop(place, None)
        self.clear(place)

    def clear(self, path: str) -> None:
        """Removes everything in the directory."""
        within = f"{path}/" if path else ""
        for each in [each for each in self._entries if each.startswith(within)]:
            del self._entries[each]

    def update(self, other: FileTree) -> None:
        """Adds every entry of the other tree."""
        for path, entry in other:
            self.add(path, entry)

    def write_to(self, folder: Path) -> None:
        """Writes the files into an empty folder, without set-uid bits; only root gives them their owners.

        Absolute links become relative ones that end at the folder, so that they lead to no file of this machine.
        """
        for path, entry in self:
            target = folder / path
            if entry.kind == "directory":
                target.mkdir()
            elif entry.kind == "link":
                target.symlink_to(_relative(path, entry.target))
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
                    file.write(entry.content)
        for path, entry in reversed(self._sorted()):  # a directory last: its mode may forbid to write into it
            target = folder / path
            if os.geteuid() == 0 and (entry.user or entry.group):
                os.chown(target, entry.user, entry.group, follow_symlinks=False)
            if entry.kind != "link":
                kept, own = (_DIRECTORY_MODE, stat.S_IRWXU) if entry.kind == "directory" else (_FILE_MODE, stat.S_IRUSR)
                target.chmod(stat.S_IMODE(entry.mode) & kept | own)

    def _is_directory(self, place: str) -> bool:
        entry = self._entries.get(place)
        return entry is not None and entry.kind == "directory"

    def _place(self, path: str, *, create: bool = True) -> str:
        """Returns the path with the links above its last part followed; adds the directories that are missing there."""
        *above, last = _parts(path) or [""]
        place = ""
        followed = 0
        while above:
            place = f"{place}/{above.pop(0)}" if place else above.pop(0)
            entry = self._entries.get(place)
            if entry is None:
                if create:
                    self._entries[place] = FileEntry(kind="directory", mode=0o755)
            elif entry.kind == "link":
                followed += 1
                if followed > _MOST_LINKS:
                    raise ImageError(f"{path}: expected at most {_MOST_LINKS} links on the way, got more")
                above = [*_parts(_joined(place, entry.target)), *above]
                place = ""
            elif entry.kind == "file":
                if create:
                    raise ImageError(f"{path}: expected a directory at {place}, got a file")
                return path
        return f"{place}/{last}" if place else last


def _parts(path: str) -> list[str]:
    """Splits a path of an archive; refuses those that leave the tree, and those that no file system takes."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts or "\0" in path or len(path) > _LONGEST_PATH:
        raise ImageError(f"{path[:200]!r}: expected a path inside the archive, got one that leaves it or is too long")
    return parts


def _joined(place: str, target: str) -> str:
    """Returns where a link at that place points to; `..` ends at the root, as the kernel has it."""
    parts = [] if target.startswith("/") else place.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def _relative(place: str, target: str) -> str:
    """Returns the target of a link at that place as a relative path that stays in the tree."""
    if not target.startswith("/") and ".." not in target.split("/"):
        return target
    above = place.split("/")[:-1]
    return "/".join([*[".."] * len(above), *filter(None, [_joined(place, target)])]) or "."
