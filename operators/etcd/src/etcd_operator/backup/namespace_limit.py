"""How many backups and restores of one namespace are at work at once: a slow store of one tenant does not hold up the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["WORKERS", "NamespaceLimit"]

WORKERS: Final = 32
"""Of backups, and of restores."""
_MOST: Final = 4


class NamespaceLimit:
    """Counts those that are at work. Nobody waits inside: who has no turn gives his worker back, and comes again."""

    def __init__(self) -> None:
        self._busy: Counter[str] = Counter()

    @contextmanager
    def turn(self, namespace: str) -> Iterator[str]:
        """Empty if there is a turn while the block lasts; else why not."""
        if self._busy[namespace] >= _MOST:
            yield f"{_MOST} others of this namespace are at work and go first"
            return
        self._busy[namespace] += 1
        try:
            yield ""
        finally:
            self._busy[namespace] -= 1
            self._busy += Counter()  # drops those at zero
