"""Reads a kubeconfig's YAML as kubectl does, field by field, and names each field in errors."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navarch.errors import ConfigError

if TYPE_CHECKING:
    import yaml

# libyaml's composer recurses on the C stack: a file of nothing but brackets would end the process.
_DEEPEST = 100
_TRUE = frozenset({"y", "yes", "true", "on"})
_SPECIAL = ("int", "float", "timestamp", "binary")


class YamlScalar(str):
    """A number or a date as it is written in the file, so that `token: 0123` does not lose its zero."""

    __slots__ = ()

    @property
    def value(self) -> int | float | str:
        """The number, or the text itself if JSON has no such number."""
        for number in (int, float):
            try:
                return _finite(number(self))
            except ValueError:
                continue
        return str(self)


def parse(data: bytes, where: str) -> Any:
    """Returns the one document in `data`, None if there is none. Raises ConfigError with the line and the column."""
    import yaml  # noqa: PLC0415 - costs as much as the rest of this package, and in a cluster it is never needed

    loader = _loader()
    try:
        _refuse_depth(data, loader, where)
        return yaml.load(data, Loader=loader)  # noqa: S506 - derived from the safe loader
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: expected YAML, got {_describe(error)}") from None


def _finite(number: float) -> int | float:
    if number != number or number in {float("inf"), float("-inf")}:  # noqa: PLR0124 - only NaN differs from itself
        raise ValueError("JSON has no such number")
    return number


_loader_class: Any = None


def _loader() -> Any:
    global _loader_class  # noqa: PLW0603 - the class can only be made once PyYAML has been imported
    if _loader_class is None:
        _loader_class = _make_loader()
    return _loader_class


def _make_loader() -> Any:
    import yaml  # noqa: PLC0415 - see parse

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("KubeconfigLoader", (base,), {})
    for kind in _SPECIAL:
        loader.add_constructor(f"tag:yaml.org,2002:{kind}", lambda self, node: YamlScalar(self.construct_scalar(node)))
    loader.add_constructor("tag:yaml.org,2002:bool", lambda self, node: self.construct_scalar(node).lower() in _TRUE)
    return loader


def _refuse_depth(data: bytes, loader: Any, where: str) -> None:
    import yaml  # noqa: PLC0415 - see parse

    depth = 0
    for event in yaml.parse(data, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            line = getattr(event.start_mark, "line", 0) + 1  # stubs differ in whether an event has a mark
            raise ConfigError(f"{where}: expected a kubeconfig, got more than {_DEEPEST} nested levels at line {line}")


def _describe(error: yaml.YAMLError) -> str:
    """Returns the problem and its position; the parser's own words only if they cannot quote the file."""
    from yaml.parser import ParserError  # noqa: PLC0415 - see parse
    from yaml.scanner import ScannerError  # noqa: PLC0415 - see parse

    problem = getattr(error, "problem", None) if isinstance(error, ParserError | ScannerError) else None
    mark = getattr(error, "problem_mark", None)
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    if mark is None:
        return "bytes that are no text (is it a kubeconfig at all?)"
    return f"something else{place}: {problem or 'a value that is no plain data, or a second document'}"


def kind_of(value: object) -> str:
    """Returns the type of a value in words; never the value."""
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", YamlScalar: "a number or date"}
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")


class ConfigEntry:
    """One mapping of a kubeconfig. `where` names it in errors, `folder` is the base of its relative paths."""

    def __init__(self, value: object, where: str, folder: Path) -> None:
        self.where = where
        self.folder = folder
        if value is not None and not isinstance(value, dict):
            raise ConfigError(f"{where}: expected a mapping, got {kind_of(value)}")
        self._fields: dict[Any, Any] = value or {}

    def has(self, key: str) -> bool:
        """Returns True if the field is set and not null."""
        return self._fields.get(key) is not None

    def raw(self, key: str) -> Any:
        """Returns the field as it is, None if it is missing."""
        return self._fields.get(key)

    def text(self, key: str) -> str:
        """Returns the field's text; empty if it is missing."""
        value = self._fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            remedy = ". Put it in quotes." if isinstance(value, bool) else ""
            raise ConfigError(f"{self.where}: expected {key} to be text, got {kind_of(value)}{remedy}")
        return str(value)

    def flag(self, key: str) -> bool:
        """Returns a boolean field; False if it is missing."""
        value = self._fields.get(key)
        if value is not None and not isinstance(value, bool):
            raise ConfigError(f"{self.where}: expected {key} to be true or false, got {kind_of(value)}")
        return bool(value)

    def items(self, key: str) -> list[Any]:
        """Returns the elements of a list; none if it is missing."""
        value = self._fields.get(key)
        if value is not None and not isinstance(value, list):
            raise ConfigError(f"{self.where}: expected {key} to be a list, got {kind_of(value)}")
        return value or []

    def texts(self, key: str) -> tuple[str, ...]:
        """Returns a list of texts."""
        values = self.items(key)
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise ConfigError(f"{self.where}: expected {key}[{number}] to be text, got {kind_of(value)}")
        return tuple(str(value) for value in values)

    def keys(self) -> tuple[str, ...]:
        """Returns the names of the fields. Raises ConfigError if one is not text."""
        for key in self._fields:
            if not isinstance(key, str):
                raise ConfigError(f"{self.where}: expected names of fields to be text, got {kind_of(key)}")
        return tuple(str(key) for key in self._fields)

    def child(self, key: str) -> ConfigEntry:
        """Returns a mapping inside this one; empty if it is missing."""
        return ConfigEntry(self._fields.get(key), f"{key} of {self.where}", self.folder)

    def children(self, key: str) -> list[ConfigEntry]:
        """Returns a list of mappings."""
        return [
            ConfigEntry(value, f"{key}[{i}] of {self.where}", self.folder) for i, value in enumerate(self.items(key))
        ]

    def path(self, key: str) -> str:
        """Returns a path, relative to the folder of its file; empty if it is missing."""
        value = self.text(key)
        if "\0" in value:
            raise ConfigError(f"{self.where}: expected {key} to be a path, got text with a NUL character")
        return os.path.join(self.folder, value) if value else ""  # noqa: PTH118 - keeps '..' and symbolic links as written

    def decoded(self, key: str) -> bytes:
        """Returns the bytes of a base64 field; empty if it is missing."""
        value = "".join(self.text(key).split())
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(
                f"{self.where}: expected {key} to be base64, got something else. "
                f"Encode the PEM file (base64 -w0 FILE), or name the file with {key.removesuffix('-data')}."
            ) from None


def named(root: ConfigEntry, key: str, inner: str) -> dict[str, ConfigEntry]:
    """Returns the entries of `clusters`, `contexts` or `users` by their names. Raises ConfigError for a
    repeated name.
    """
    found: dict[str, ConfigEntry] = {}
    for item in root.children(key):
        name = item.text("name")
        if not name:
            raise ConfigError(f"{item.where}: expected a name, got none")
        if name in found:
            raise ConfigError(f"{root.where}: expected each name in {key} once, got {name!r} twice. Remove one.")
        found[name] = ConfigEntry(item.raw(inner), f"{inner} {name!r} in {root.where}", root.folder)
    return found
