"""Files of a volume that change all at once, as Kubernetes writes them.

The files are in a folder of their own, `..data` is a link to it, and what containers see are links through that. A new
version is a new folder, and the link is replaced in one step.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["File", "write_payload"]

_DATA: Final = "..data"
_FRESH: Final = "..data_tmp"


class File(NamedTuple):
    """What a file holds, and who may read it. It belongs to whoever runs the node, unless it says otherwise."""

    content: bytes
    mode: int = 0o644
    owner: int = -1
    group: int = -1


def write_payload(folder: Path, files: Mapping[str, File]) -> bool:
    """Lets the folder hold these files and no others; returns whether anything changed."""
    if _held(folder / _DATA) == {name: (file.content, file.mode) for name, file in files.items()}:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    version = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    version.chmod(0o755)
    for name, file in files.items():
        _write(version / name, file)
    old = folder / (folder / _DATA).readlink() if (folder / _DATA).is_symlink() else None
    fresh = folder / _FRESH
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(version.name)
    fresh.replace(folder / _DATA)
    _show(folder, {name.split("/")[0] for name in files})
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _held(data: Path) -> dict[str, tuple[bytes, int]] | None:
    """Contents and modes; whom files belong to does not change while a pod lives."""
    if not data.exists():
        return None
    root = data.resolve()
    found = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o777) for path in found}


def _write(path: Path, file: File) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    path.chmod(file.mode)
    if os.geteuid() == 0:
        os.chown(path, file.owner, file.group)


def _show(folder: Path, names: set[str]) -> None:
    """Links to what is there; those to what is gone go too."""
    for path in folder.iterdir():
        if not path.name.startswith("..") and path.name not in names:
            path.unlink()
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{_DATA}/{name}")
