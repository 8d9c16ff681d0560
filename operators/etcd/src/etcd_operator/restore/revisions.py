"""Which revision a cluster goes on from after a restore."""

from __future__ import annotations

from datetime import datetime
from typing import Final

__all__ = ["unseen"]

_AHEAD: Final = 1_000_000_000
"""What etcd itself advises to add."""


def unseen(now: datetime, *known: int) -> int:
    """A revision that nobody can have seen of the cluster, whatever became of it since those that are known.

    It is the time in microseconds: no etcd makes a million writes a second, so that a cluster which began at an earlier
    one has not come so far. This needs no memory of the cluster, which may have been deleted in between. Where a clock
    was set back, what is known counts.

    >>> unseen(datetime.fromisoformat("2026-01-01T00:00:00Z"), 1234)
    1767225600000000
    >>> unseen(datetime.fromisoformat("2026-01-01T00:00:00Z"), 1234, 1767225600000000)
    1767226600000000
    """
    return max(int(now.timestamp() * 1_000_000), max(known) + _AHEAD)
