"""Reads manifests from files: each document with its file and line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from navarch.api import Dynamic
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.cluster.server.wire.yaml_bodies import read_yaml
from navarch.errors import ConfigError

_STDIN: Final = "-"
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_SEPARATOR: Final = re.compile(r"^---(?:\s.*)?$")
_NOTHING: Final = re.compile(r"^\s*(?:#.*|%.*)?$")
_LISTS: Final = "List"


@dataclass(frozen=True, slots=True)
class ManifestDocument:
    """One object, or the fault of a document that cannot be read; it begins at `file` and `line`.

    `parsed` documents are YAML or JSON, whether they are objects of Kubernetes or not.
    """

    file: str
    line: int
    object: Dynamic | None
    fault: str = ""
    parsed: bool = False


def documents(paths: Sequence[str]) -> list[ManifestDocument]:
    """Returns all documents of the files, of the files in the folders and, for `-`, of standard input.

    A document that cannot be parsed has a fault; the others are returned nonetheless. Raises `ConfigError` for a path
    that does not exist.
    """
    return [found for path in paths for name, text in _texts(path) for found in _in_text(name, text)]


def _texts(path: str) -> Iterator[tuple[str, str]]:
    if path == _STDIN:
        yield "standard input", sys.stdin.read()
        return
    place = Path(path)
    files = sorted(each for each in place.rglob("*") if each.suffix in _SUFFIXES) if place.is_dir() else [place]
    if not files:
        raise ConfigError(
            f"expected manifests in {path}, got a folder without any file of {', '.join(sorted(_SUFFIXES))}"
        )
    for file in files:
        try:
            yield str(file), file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read {file}: {error}") from None


def _in_text(file: str, text: str) -> Iterator[ManifestDocument]:
    if text.lstrip().startswith("{"):
        yield from _in_json(file, text)
        return
    for line, part in _parts(text):
        yield from _in_yaml(file, line, part)


def _in_json(file: str, text: str) -> Iterator[ManifestDocument]:
    """Yields JSON objects that follow each other with only white space between them."""
    decoder, place = json.JSONDecoder(), 0
    while (start := len(text) - len(text[place:].lstrip())) < len(text):
        line = text.count("\n", 0, start) + 1
        try:
            value, place = decoder.raw_decode(text, start)
        except ValueError as error:
            yield ManifestDocument(file, line, None, f"expected JSON, got something else: {error}")
            return
        yield from _objects(file, line, value)


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yields the text of each YAML document with the number of its first line that has content; skips empty documents."""
    lines: list[str] = []
    first = 0
    for number, line in enumerate([*text.splitlines(), "---"], start=1):
        if _SEPARATOR.match(line):
            if first:
                yield first, "\n".join(lines)
            lines, first = [], 0
        elif first or not _NOTHING.match(line):
            first = first or number
            lines.append(line)


def _in_yaml(file: str, line: int, text: str) -> Iterator[ManifestDocument]:
    try:
        value = read_yaml(text.encode())
    except StatusError as error:
        row, fault = _fault(text)
        yield ManifestDocument(file, line + row, None, fault or str(error))
    else:
        yield from _objects(file, line, value)


def _fault(text: str) -> tuple[int, str]:
    """Returns the line and the text of a fault in the syntax of YAML; nothing for YAML that is no JSON.

    Python's parser knows the line exactly, and takes a second for 5,000 of them: only faulty texts are given to it.
    """
    try:
        for _ in yaml.parse(text, Loader=yaml.SafeLoader):
            pass
    except yaml.MarkedYAMLError as error:
        row = error.problem_mark.line if error.problem_mark is not None else 0
        return row, f"expected YAML, got something else: {error.problem}"
    except yaml.YAMLError as error:
        return 0, f"expected YAML, got something else: {error}"
    return 0, ""


def _objects(file: str, line: int, value: Any) -> Iterator[ManifestDocument]:
    """Yields the object or, of a List, each of its items."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not value.get("apiVersion"):
        fault = f"expected an object with apiVersion and kind, got {_shown(value)}"
        yield ManifestDocument(file, line, None, fault, parsed=True)
    elif value["kind"] == _LISTS and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(file, line, item)
    else:
        yield ManifestDocument(file, line, Dynamic(value), parsed=True)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"one with {', '.join(map(str, value)) or 'nothing'}"
    return f"a {type(value).__name__}"
