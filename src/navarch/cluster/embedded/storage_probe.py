"""`StorageProbe`: tries a storage that has failed, until it works again."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from navarch._base.clock import Clock
from navarch.cluster.storage import Storage, StorageError

__all__ = ["StorageProbe"]

_SECONDS: Final = 2.0


class StorageProbe:
    """Without it the health of a cluster to which nobody writes would stay as the last failed write left it."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    async def run(self) -> None:
        """Looks every two seconds until it is cancelled; a storage that works is left alone."""
        while True:
            await self._clock.liveness.sleep(_SECONDS)
            if self._storage.fault is not None:
                with suppress(StorageError):
                    await self._storage.probe()
