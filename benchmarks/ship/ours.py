"""Our image of examples/memcached: how its project is made, locked, built and pushed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ship.bases import PLATFORM

_ROOT: Final = Path(__file__).parents[2]
_EXAMPLE: Final = _ROOT / "examples" / "memcached"
_NAVARCH: Final = Path(sys.executable).with_name("navarch")
_CODE: Final = Path("src", "memcached_operator", "controllers", "memcached.py")
_LINE: Final = 'image="memcached:1.6'


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of the example, which is committed, with a lock."""

    folder: Path
    image: str
    environment: Mapping[str, str]
    """Names the cache of the builder, and the wheel of navarch."""

    def build(self) -> Any:
        """Builds the image, and returns what the command says about it."""
        return self._navarch("build", "--plain-http", "--output=json")

    def push(self, name: str = "") -> Any:
        """Pushes the image, under another name if there is one, and returns what the command says about it."""
        return self._navarch("push", *([name] if name else []), "--plain-http", "--output=json")

    def lock(self) -> None:
        """Writes image.lock, and commits it."""
        self._navarch("lock", "--plain-http")
        _git(self.folder, "add", "image.lock")
        _git(self.folder, "commit", "--quiet", "--message=lock the image")

    def change(self, number: int) -> None:
        """Changes one line of the reconciler."""
        file = self.folder / _CODE
        source = file.read_text()
        if _LINE not in source:
            raise RuntimeError(f"expected {_LINE!r} in {file}")
        head, tail = source.split(_LINE)
        file.write_text(f'{head}{_LINE}.{number}-alpine",{tail.partition(",")[2]}')

    def cloned(self, folder: Path) -> Project:
        """Returns a clone in another folder, with another cache."""
        _git(self.folder, "clone", "--quiet", str(self.folder), str(folder))
        return Project(
            folder=folder,
            image=self.image,
            environment={**self.environment, "XDG_CACHE_HOME": str(folder.parent / f"{folder.name}-cache")},
        )

    def without_cache(self) -> None:
        """Removes what earlier builds have kept: layers, wheels, packages, and the layout in the project."""
        shutil.rmtree(self.environment["XDG_CACHE_HOME"], ignore_errors=True)
        shutil.rmtree(self.folder / "dist" / "image", ignore_errors=True)

    def _navarch(self, *arguments: str) -> Any:
        said = run([_NAVARCH, "image", *arguments], self.folder, self.environment)
        return json.loads(said) if "--output=json" in arguments else None


def make_wheel(folder: Path) -> None:
    """Puts the wheel of this checkout's navarch into the folder: no index has it."""
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", _ROOT], folder.parent)


def make_project(folder: Path, image: str, base: str, wheels: Path) -> Project:
    """Copies the example into the folder, with its image on the base, for one platform, and locks it."""
    shutil.copytree(_EXAMPLE, folder, ignore=shutil.ignore_patterns("dist", "bin", "__pycache__", ".*_cache"))
    settings = folder / "pyproject.toml"
    build = f'[tool.navarch.build]\nbase = "{base}"\nplatforms = ["{PLATFORM}"]\n'
    settings.write_text(
        settings.read_text().replace('image = "controller:latest"', f'image = "{image}"') + f"\n{build}"
    )
    _git(folder, "init", "--quiet")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message=begin")
    cache = folder.parent / f"{folder.name}-cache"
    links = f"{os.environ.get('PIP_FIND_LINKS', '')} {wheels}".strip()
    made = Project(folder=folder, image=image, environment={"XDG_CACHE_HOME": str(cache), "PIP_FIND_LINKS": links})
    made.lock()
    return made


def run(command: list[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Runs a command in the folder and returns its output; raises with its own words if it fails."""
    words = [str(each) for each in command]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    run(["git", *identity, *arguments], folder)
