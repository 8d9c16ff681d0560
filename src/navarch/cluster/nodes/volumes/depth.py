"""How deep the paths may be that pods let a node make."""

from __future__ import annotations

from typing import Final

from navarch.errors import ContainerError

__all__ = ["check_depth"]

_MOST_PARTS: Final = 64
"""Each part is a directory that the node makes: a pod of a few bytes could keep it busy with thousands of them."""
_SHOWN: Final = 40


def check_depth(path: str, what: str) -> None:
    """Raises `ContainerError` for a path of too many parts; `what` names it.

    >>> check_depth("a/" * 65, "subPath")
    Traceback (most recent call last):
        ...
    navarch.errors.ContainerError: expected a subPath of at most 64 parts, got 65 in 'a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/'…; choose one with fewer directories
    """
    count = sum(part not in {"", "."} for part in path.split("/"))
    if count > _MOST_PARTS:
        raise ContainerError(
            f"expected a {what} of at most {_MOST_PARTS} parts, got {count} in {path[:_SHOWN]!r}…; "
            "choose one with fewer directories"
        )
