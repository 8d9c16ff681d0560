"""The built-in kinds: everything that depends on them, behind the contracts of `server/types.py`."""

from __future__ import annotations

from navarch.cluster.server.kinds.builtin.catalog import builtin_types

__all__ = ["builtin_types"]
