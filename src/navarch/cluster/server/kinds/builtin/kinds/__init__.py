"""The rules of each built-in kind."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.kinds.builtin.kinds.core import CORE
from navarch.cluster.server.kinds.builtin.kinds.others import OTHERS
from navarch.cluster.server.kinds.builtin.kinds.workloads import WORKLOADS
from navarch.cluster.server.kinds.builtin.rules import Rules

__all__ = ["rules_of"]

_PLAIN: Final = Rules()
_RULES: Final = {**CORE, **WORKLOADS, **OTHERS}


def rules_of(api_version: str, plural: str) -> Rules:
    """The rules of a kind in a version; those that most kinds share if there are none of its own."""
    return _RULES.get((api_version, plural), _PLAIN)
