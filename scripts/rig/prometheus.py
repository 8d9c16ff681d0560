"""Prometheus from Debian's package, unpacked into the cache: no root is needed, and nothing of it is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from rig import folders
from rig.errors import MissingToolError, RigError
from rig.locking import turn

_REMEDY = "apt-get install prometheus"


def prometheus() -> Path:
    """Returns the program; fetches its package the first time. Raises MissingToolError where there is no apt."""
    if found := shutil.which("prometheus"):
        return Path(found)
    folder = folders.cache() / "prometheus"
    program = folder / "usr" / "bin" / "prometheus"
    with turn(folders.cache() / ".prometheus.lock", lambda: None):
        if not program.exists():
            _unpack(folder)
    return program


def _unpack(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MissingToolError("prometheus", "was not found on PATH, and there is no apt to fetch it", _REMEDY)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        place = Path(unfinished)
        _run(["apt-get", "download", "prometheus"], place)
        package = next(place.glob("prometheus_*.deb"))
        _run(["dpkg-deb", "--extract", package.name, "files"], place)
        shutil.rmtree(folder, ignore_errors=True)
        (place / "files").rename(folder)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RigError(
            f"{' '.join(command)} failed; {_REMEDY}, or update the lists of packages:\n{done.stderr[-1000:]}"
        )
