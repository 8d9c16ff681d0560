"""Takes the weather into a process and all that it starts: Python imports `sitecustomize` when it begins.

A module is changed when it is imported, never before: tests look at what programs import. pytest has an import hook of its
own, which comes first: there, the module `plugin` changes all of them at once.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shake.weather import Weather

__all__ = ["AGAIN", "begin", "change_all", "environment", "folders"]

AGAIN: Final = "NAVARCH_SHAKE_AGAIN"
"""The variable with what is said when all tests were run."""
_SEED: Final = "NAVARCH_SHAKE_SEED"
_STRENGTH: Final = "NAVARCH_SHAKE_STRENGTH"
_HERE: Final = Path(__file__).parent


def environment(seed: str, strength: float, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that has this weather."""
    path = os.pathsep.join(filter(None, (*_folders(), inherited.get("PYTHONPATH"))))
    return {**inherited, _SEED: seed, _STRENGTH: str(strength), "PYTHONPATH": path}


def folders() -> tuple[str, ...]:
    """What whoever gives a process a PYTHONPATH of its own adds to it, so that the weather, if there is any, is there too."""
    return _folders() if _SEED in os.environ else ()


def begin() -> None:
    """Changes what this process imports from now on, if there is weather."""
    if _SEED in os.environ:
        sys.meta_path.insert(0, _Finder())


def change_all() -> None:
    """Imports what is to be changed, and changes it; raises `ShakeError` if something is missing."""
    from shake.points import POINTS  # noqa: PLC0415 - most processes need none of this

    for point in POINTS:
        point.apply(importlib.import_module(point.module), _weather())


def _folders() -> tuple[str, ...]:
    return str(_HERE / "site"), str(_HERE.parent)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds what Python finds, and changes it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("navarch."):
            return None
        changes = _changes(fullname)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if changes else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, changes)
        return spec


def _changes(module: str) -> list[Callable[[ModuleType], None]]:
    from shake.points import POINTS  # noqa: PLC0415 - see above

    return [partial(point.apply, weather=_weather()) for point in POINTS if point.module == module]


@cache
def _weather() -> Weather:
    from shake.weather import Weather  # noqa: PLC0415 - see above

    return Weather(os.environ[_SEED], float(os.environ[_STRENGTH]))


class _Loader(importlib.abc.Loader):
    """Loads as `inner` does, then makes the changes."""

    def __init__(self, inner: importlib.abc.Loader, changes: Sequence[Callable[[ModuleType], None]]) -> None:
        self._inner = inner
        self._changes = changes

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        for change in self._changes:
            change(module)
