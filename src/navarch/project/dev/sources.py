"""Watches the sources of a project: polls names, times and sizes, which takes a millisecond for a hundred files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_SKIPPED: Final = frozenset({"__pycache__", "node_modules"})
_Stamp = tuple[int, int, int]


class SourceWatcher:
    """Compares the files below some folders with those of the last look.

    Hidden files, backups of editors (`x~`), caches and folders behind symbolic links do not count.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._seen = self._stamps()
        self._unsettled: set[Path] = set()

    @property
    def is_gone(self) -> bool:
        """Whether a folder was moved or deleted."""
        return not all(folder.is_dir() for folder in self._folders)

    def changes(self) -> list[Path]:
        """Returns the files that were added, changed or removed, once a look finds no further change.

        So several files that are saved together, or a file that is written piece by piece, are one change.
        """
        now = self._stamps()
        changed = {path for path in now.keys() | self._seen.keys() if now.get(path) != self._seen.get(path)}
        self._seen = now
        self._unsettled |= changed
        if changed or not self._unsettled:
            return []
        settled, self._unsettled = sorted(self._unsettled), set()
        return settled

    @property
    def is_unsettled(self) -> bool:
        """Whether the last look has found a change: look again soon."""
        return bool(self._unsettled)

    def _stamps(self) -> dict[Path, _Stamp]:
        return {path: stamp for folder in self._folders for path, stamp in _files(folder)}


def _files(folder: Path) -> Iterator[tuple[Path, _Stamp]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # removed meanwhile, or not readable
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith("~") or entry.name in _SKIPPED:
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            elif entry.is_file():
                status = entry.stat()
                yield Path(entry.path), (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            continue
