"""What can go wrong with a backup. The words go into statuses and events: they never carry what a store said."""

from __future__ import annotations

from typing import Final

from navarch.errors import NavarchError

__all__ = ["LONGEST_REASON", "BackupError", "DamagedError", "PlaceError", "StoreError"]

LONGEST_REASON: Final = 1000
"""In characters; an event takes hardly more."""


class BackupError(NavarchError):
    """No backup could be made or read; says why."""


class DamagedError(BackupError):
    """A snapshot that is not what etcd wrote."""


class PlaceError(BackupError):
    """Nowhere to put it, or nothing to take it from: the spec or a Secret has to change."""


class StoreError(BackupError):
    """The store refused, or could not be reached."""
