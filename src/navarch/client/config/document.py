"""A kubeconfig's mappings, read field by field, with the words to name each field in an error."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Any

from navarch.client.config.yamltext import Written
from navarch.errors import ConfigError


def kind_of(value: object) -> str:
    """What a value is, in words; never the value."""
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", Written: "a number or date"}
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")


class Entry:
    """One mapping of a kubeconfig. `where` names it in errors, `folder` is what its relative paths start from."""

    def __init__(self, value: object, where: str, folder: Path) -> None:
        self.where = where
        self.folder = folder
        if value is not None and not isinstance(value, dict):
            raise ConfigError(f"{where}: expected a mapping, got {kind_of(value)}")
        self._fields: dict[Any, Any] = value or {}

    def has(self, key: str) -> bool:
        """Whether the field is there and is not null."""
        return self._fields.get(key) is not None

    def raw(self, key: str) -> Any:
        """The field as it is, None if it is missing."""
        return self._fields.get(key)

    def text(self, key: str) -> str:
        """The field's text; empty if it is missing."""
        value = self._fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            remedy = ". Put it in quotes." if isinstance(value, bool) else ""
            raise ConfigError(f"{self.where}: expected {key} to be text, got {kind_of(value)}{remedy}")
        return str(value)

    def flag(self, key: str) -> bool:
        """True or false; false if it is missing."""
        value = self._fields.get(key)
        if value is not None and not isinstance(value, bool):
            raise ConfigError(f"{self.where}: expected {key} to be true or false, got {kind_of(value)}")
        return bool(value)

    def items(self, key: str) -> list[Any]:
        """The elements of a list; none if it is missing."""
        value = self._fields.get(key)
        if value is not None and not isinstance(value, list):
            raise ConfigError(f"{self.where}: expected {key} to be a list, got {kind_of(value)}")
        return value or []

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        values = self.items(key)
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise ConfigError(f"{self.where}: expected {key}[{number}] to be text, got {kind_of(value)}")
        return tuple(str(value) for value in values)

    def keys(self) -> tuple[str, ...]:
        """The names of the fields; ConfigError if one is not text."""
        for key in self._fields:
            if not isinstance(key, str):
                raise ConfigError(f"{self.where}: expected names of fields to be text, got {kind_of(key)}")
        return tuple(str(key) for key in self._fields)

    def child(self, key: str) -> Entry:
        """A mapping inside this one; empty if it is missing."""
        return Entry(self._fields.get(key), f"{key} of {self.where}", self.folder)

    def children(self, key: str) -> list[Entry]:
        """A list of mappings."""
        return [Entry(value, f"{key}[{i}] of {self.where}", self.folder) for i, value in enumerate(self.items(key))]

    def path(self, key: str) -> str:
        """A path, relative to the file it stands in; empty if it is missing."""
        value = self.text(key)
        if "\0" in value:
            raise ConfigError(f"{self.where}: expected {key} to be a path, got text with a NUL character")
        return os.path.join(self.folder, value) if value else ""  # noqa: PTH118 - keeps '..' and symbolic links as written

    def decoded(self, key: str) -> bytes:
        """Bytes that stand in the file as base64; empty if missing."""
        value = "".join(self.text(key).split())
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(
                f"{self.where}: expected {key} to be base64, got something else. "
                f"Encode the PEM file (base64 -w0 FILE), or name the file with {key.removesuffix('-data')}."
            ) from None


def named(root: Entry, key: str, inner: str) -> dict[str, Entry]:
    """The entries of `clusters`, `contexts` or `users` by their names; ConfigError if a name comes twice."""
    found: dict[str, Entry] = {}
    for item in root.children(key):
        name = item.text("name")
        if not name:
            raise ConfigError(f"{item.where}: expected a name, got none")
        if name in found:
            raise ConfigError(f"{root.where}: expected each name in {key} once, got {name!r} twice. Remove one.")
        found[name] = Entry(item.raw(inner), f"{inner} {name!r} in {root.where}", root.folder)
    return found
