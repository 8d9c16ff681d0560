"""Packages that offer names of their parts, and import a part when one of its names is first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["names_of_parts"]


def names_of_parts(package: str, parts: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `parts` has the names by the module, inside of the package, that defines them.

    Define it where type checkers do not look, and import the names where only they do: then a name that is not there is
    still found out.
    """
    modules = {name: f"{package}.{part}" for part, names in parts.items() for name in names}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
