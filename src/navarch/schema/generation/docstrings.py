"""Descriptions from docstrings: that of the class, and the string that follows a field.

Python keeps the first, unless it runs with -OO, and drops the second, so fields are read from the source, in a folder
or an archive. Without a source (a frozen program, a class made by `exec`) there are no descriptions; the schema is
complete otherwise.
"""

from __future__ import annotations

import ast
import gc
import inspect
import linecache
import sys
from functools import lru_cache


def class_description(cls: type) -> str:
    """Returns the docstring of the class itself, not that of a base class."""
    text = vars(cls).get("__doc__")
    definition = _definition(cls) if text is None else None
    text = ast.get_docstring(definition) if definition is not None else text
    return inspect.cleandoc(text or "")


def field_descriptions(cls: type) -> dict[str, str]:
    """Returns descriptions by Python name, with those of base classes."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= _own_fields(base)
    return found


def shortened(description: str, limit: int | None) -> str:
    """Returns at most `limit` characters of `description`, cut between words.

    >>> shortened("How many pods to run.", 12)
    'How many…'
    """
    if limit is None or len(description) <= limit:
        return description
    if limit == 0:
        return ""
    words = description[:limit].rpartition(" ")[0] or description[: limit - 1]
    return words.rstrip(" ,;:.\n") + "…"


def _own_fields(cls: type) -> dict[str, str]:
    definition = _definition(cls)
    return {} if definition is None else _documented(definition)


def _definition(cls: type) -> ast.ClassDef | None:
    try:
        file = inspect.getsourcefile(cls)
    except (TypeError, OSError):  # a class typed at a prompt has no source
        return None
    if not file:
        return None
    names = vars(sys.modules.get(cls.__module__, object))  # they know how to read a file in an archive
    return _definitions(file, "".join(linecache.getlines(file, dict(names)))).get(cls.__qualname__)


@lru_cache(maxsize=32)
def _definitions(file: str, source: str) -> dict[str, ast.ClassDef]:
    """Every class of a file by its qualified name; `file` only says which cached answer is meant."""
    try:
        tree = _parsed(source, file)
    except SyntaxError:
        return {}
    found: dict[str, ast.ClassDef] = {}
    _collect(tree, "", found)
    return found


def _parsed(source: str, file: str) -> ast.Module:
    """The tree of the source, whatever finalizers run meanwhile.

    Before 3.11.8 and 3.12.2, `ast.parse` raises SystemError if a garbage collection inside of it runs a finalizer that
    parses, too (gh-106905): a warning of an unclosed socket suffices, since a traceback parses the lines that it shows.
    So there is no collection during the parse. Another thread may turn it on again in between: one more attempt.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        try:
            return ast.parse(source, filename=file)
        except SystemError:
            return ast.parse(source, filename=file)
    finally:
        if was_enabled:
            gc.enable()


def _collect(node: ast.AST, prefix: str, found: dict[str, ast.ClassDef]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            found[prefix + child.name] = child
            _collect(child, f"{prefix}{child.name}.", found)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            _collect(child, f"{prefix}{child.name}.<locals>.", found)
        else:
            _collect(child, prefix, found)


def _documented(definition: ast.ClassDef) -> dict[str, str]:
    found = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = _text_of(following)
            if text is not None:
                found[statement.target.id] = inspect.cleandoc(text)
    return found


def _text_of(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return value if isinstance(value, str) else None
    return None
