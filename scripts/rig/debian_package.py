"""Programs from Debian's packages, unpacked into the cache: no root is needed, and nothing of them is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from rig import folders
from rig.errors import MissingToolError, RigError
from rig.locking import turn


def program_of(package: str) -> Path:
    """Returns the program that is named as its package; fetches the package the first time.

    Raises MissingToolError where there is no apt.
    """
    if found := shutil.which(package):
        return Path(found)
    folder = folders.cache() / package
    program = folder / "usr" / "bin" / package
    with turn(folders.cache() / f".{package}.lock", lambda: None):
        if not program.exists():
            _unpack(package, folder)
    return program


def _unpack(package: str, folder: Path) -> None:
    remedy = f"apt-get install {package}"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MissingToolError(package, "was not found on PATH, and there is no apt to fetch it", remedy)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        place = Path(unfinished)
        _run(["apt-get", "download", package], place, remedy)
        file = next(place.glob(f"{package}_*.deb"))
        _run(["dpkg-deb", "--extract", file.name, "files"], place, remedy)
        shutil.rmtree(folder, ignore_errors=True)
        (place / "files").rename(folder)


def _run(command: list[str], folder: Path, remedy: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RigError(f"{' '.join(command)} failed; {remedy}, or update the lists of packages:\n{done.stderr[-1000:]}")
