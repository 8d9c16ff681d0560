"""The rules of each built-in kind."""

from __future__ import annotations

from navarch.cluster.server.builtin.rules import Rules

__all__ = ["rules_of"]

_PLAIN = Rules()
_RULES: dict[tuple[str, str], Rules] = {}


def rules_of(group: str, plural: str) -> Rules:
    """The rules of a kind; those that most kinds share if there are none of its own."""
    return _RULES.get((group, plural), _PLAIN)
