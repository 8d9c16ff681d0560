"""Loads the operator of a package: its modules declare controllers and webhooks when they are imported."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from typing import Final

from navarch.errors import DefinitionError
from navarch.operator.operator import Operator

__all__ = ["load_operator"]

_DECLARING: Final = ("controllers", "webhooks")
"""The packages whose modules declare something on the operator."""


def load_operator(package: str) -> Operator:
    """Imports the package and all modules of its `controllers` and `webhooks`, and returns its `operator`.

    Raises `DefinitionError` if the package has no `operator`; an error inside a module of the package propagates.
    """
    root = importlib.import_module(package)
    operator = getattr(root, "operator", None)
    if not isinstance(operator, Operator):
        raise DefinitionError(
            f"{package}: expected an Operator named `operator` in {package}/__init__.py, got "
            f'{"none" if operator is None else type(operator).__name__}; write operator = Operator("my-operator")'
        )
    for name in _declaring_modules(package):
        importlib.import_module(name)
    return operator


def _declaring_modules(package: str) -> Iterator[str]:
    """Yields the modules below `controllers` and `webhooks`, packages before their modules, by name."""
    for name in _DECLARING:
        whole = f"{package}.{name}"
        if importlib.util.find_spec(whole) is None:
            continue
        found = importlib.import_module(whole)
        yield from (each.name for each in pkgutil.walk_packages(found.__path__, f"{whole}."))
