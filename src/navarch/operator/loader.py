"""Loads the operator of a package: its modules declare controllers and webhooks when they are imported."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from navarch.errors import DefinitionError
from navarch.operator.operator import Operator

__all__ = ["load_operator", "load_trouble"]

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


def load_trouble(error: BaseException, package: str) -> str:
    """Returns in one line why the package could not be loaded: the user's file and line, and the exception.

    The line is the last one of the user's own code: of the package, or else of code outside of navarch.
    """
    if isinstance(error, ModuleNotFoundError) and error.name == package:
        return f"{package}: expected a package of that name, got none; install the project: pip install -e ."
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: expected Python, got a {type(error).__name__}: {error.msg}"
    message = " ".join(str(error).split())
    what = message if isinstance(error, DefinitionError) else f"{type(error).__name__}: {message}".rstrip(": ")
    place = _place(error, package)
    return f"{place}: {what}" if place else what


def _place(error: BaseException, package: str) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    outside = [
        each for each in frames if not each.filename.startswith("<") and _ROOM not in Path(each.filename).parents
    ]
    own = [each for each in outside if package in Path(each.filename).parts]
    return next((f"{each.filename}:{each.lineno}" for each in reversed(own or outside)), "")


_ROOM: Final = Path(__file__).resolve().parents[1]
"""The folder of navarch itself."""
