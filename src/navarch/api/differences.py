"""Where two documents differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["differing_paths"]

_PLAIN = re.compile(r"[\w$-]+\Z")


def differing_paths(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The deepest paths at which two JSON values differ, in order; never the values, which may be secrets.

    Lists of one length are compared item by item, others differ as a whole.

    >>> old = {"spec": {"size": 1, "ports": [80]}, "labels": {"example.com/a": "x"}}
    >>> new = {"spec": {"size": 2, "ports": [80, 81]}, "labels": {}}
    >>> list(differing_paths(old, new))
    ['labels["example.com/a"]', 'spec.ports', 'spec.size']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            if name in old and name in new:
                yield from differing_paths(old[name], new[name], _below(path, name))
            else:
                yield _below(path, name)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differing_paths(before, after, f"{path}[{index}]")
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield path


def _below(path: str, name: str) -> str:
    if not _PLAIN.match(name):
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name
