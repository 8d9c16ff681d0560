"""Lazy imports: a package imports a submodule when one of its names is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(package: str, parts: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a package; `parts` maps a submodule to the names that it exports.

    Define it outside of `TYPE_CHECKING`, and import the names inside of it: then type checkers still find a name that
    does not exist.
    """
    modules = {name: f"{package}.{part}" for part, names in parts.items() for name in names}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
