"""The data files on disk: deterministic, and laid out so that a change is a small diff."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

WIDTH = 120


def render(value: Any) -> str:
    """`value` as JSON with sorted keys; what fits on a line stays on one.

    >>> print(render({"b": [1, 2], "a": None}), end="")
    {"a": null, "b": [1, 2]}
    """
    return "\n".join(_lines(value, 0)) + "\n"


def _lines(value: Any, depth: int) -> list[str]:
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(line) + depth < WIDTH or not isinstance(value, (dict, list)) or not value:
        return [" " * depth + line]
    if isinstance(value, list):
        parts = [("", item) for item in value]
        opening, closing = "[", "]"
    else:
        parts = [(json.dumps(key, ensure_ascii=False) + ": ", value[key]) for key in sorted(value)]
        opening, closing = "{", "}"
    lines = [" " * depth + opening]
    for index, (label, item) in enumerate(parts):
        inner = _lines(item, depth + 1)
        inner[0] = " " * (depth + 1) + label + inner[0].lstrip()
        inner[-1] += "," if index < len(parts) - 1 else ""
        lines += inner
    return [*lines, " " * depth + closing]


def write(folder: Path, files: dict[str, Any]) -> int:
    """Replaces the folder's content by these files; returns how many bytes they have."""
    shutil.rmtree(folder, ignore_errors=True)
    size = 0
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        size += path.write_text(render(value), encoding="utf-8")
    return size


def read(folder: Path) -> dict[str, Any]:
    """The files of a folder, by name."""
    return {str(path.relative_to(folder)): json.loads(path.read_bytes()) for path in sorted(folder.rglob("*.json"))}
