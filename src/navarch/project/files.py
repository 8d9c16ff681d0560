"""Writes the files of a project: each file is replaced as a whole, so an interruption leaves no half-written one."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from navarch.errors import ConfigError

__all__ = ["check_path", "read_text", "remove_files", "write_files"]

_UNFINISHED: Final = ".unfinished"


def write_files(root: Path, files: Mapping[str, str]) -> list[str]:
    """Writes each file below `root` and returns the paths that changed, sorted.

    A path is relative, with `/`. A file that has this content already is left alone. Files are written in the order of
    the mapping: put last what records that the others are there. Raises `ConfigError` for a path that leaves `root`, or
    that leads through a file.
    """
    for path in files:
        check_path(root, path)
    return sorted(path for path, content in files.items() if _write(root / path, content))


def remove_files(root: Path, paths: list[str]) -> None:
    """Removes these files, and the folders below `root` that become empty."""
    for path in paths:
        target = root / path
        check_path(root, path)
        target.unlink(missing_ok=True)
        for folder in target.parents:
            if folder == root or (folder.exists() and any(folder.iterdir())):
                break
            if folder.exists():  # else removed before this process began
                folder.rmdir()


def read_text(file: Path) -> str | None:
    """Returns the content of the file; None if there is none. Raises `ConfigError` for a folder or for bytes that are no text."""
    try:
        return file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise ConfigError(f"expected a file, got a folder: {file}; move it away") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"expected text in UTF-8, got other bytes: {file}, at byte {error.start}") from None


def check_path(root: Path, path: str) -> None:
    """Raises `ConfigError` for a path outside of `root`, also through a symbolic link."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise ConfigError(f"expected a path below {root}, got {path!r}")
    whole = root.resolve()
    parent = (root / path).parent.resolve()
    if parent != whole and whole not in parent.parents:
        raise ConfigError(f"expected {path} below {root}, but a symbolic link leads to {parent}; remove the link")


def _write(file: Path, content: str) -> bool:
    """Replaces the file, and returns whether its content differed. Its permissions stay."""
    if read_text(file) == content:
        return False
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"expected a folder, got a file: {file.parent}; move it away") from None
    replaces = file.exists()
    mode = file.stat().st_mode & 0o777 if replaces else 0o666 & ~_umask()
    for leftover in file.parent.glob(f".{glob.escape(file.name)}.*{_UNFINISHED}"):  # of a process that was killed
        leftover.unlink(missing_ok=True)
    descriptor, unfinished = tempfile.mkstemp(prefix=f".{file.name}.", suffix=_UNFINISHED, dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(content)
            if replaces:  # a power failure must not take what was there; a new file can be written again
                stream.flush()
                os.fsync(stream.fileno())
        Path(unfinished).chmod(mode)
        Path(unfinished).replace(file)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    return True


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
