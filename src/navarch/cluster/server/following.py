"""Objects that the server itself keeps in mind: namespaces, roles, bindings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec

from navarch.cluster.server.request import Json
from navarch.cluster.storage import CompactedError, Storage, Watcher

__all__ = ["Changed", "Follower"]

Changed = Callable[[Json | None, Json | None], None]
"""Told of an object as it was and as it is: None if it was not, or is not, there."""


class Follower:
    """Tells of every object under a prefix: first of those that are there, then of each change.

    It does not run by itself: `catch_up` tells what has happened since, so that whoever calls it before a decision
    decides by what was written before, as far as the store shows it.
    """

    def __init__(self, storage: Storage, prefix: str, changed: Changed) -> None:
        self._storage = storage
        self._prefix = prefix
        self._changed = changed
        self._known: dict[str, Json] = {}
        self._watching = AsyncExitStack()
        self._watcher: Watcher | None = None

    async def start(self) -> None:
        """Tells of what is there."""
        page = await self._storage.page(self._prefix)
        found: dict[str, Json] = {item.key: msgspec.json.decode(item.value) for item in page.items}
        for key in [key for key in self._known if key not in found]:
            self._tell(key, None)
        for key, value in found.items():
            self._tell(key, value)
        await self._watching.aclose()
        self._watcher = await self._watching.enter_async_context(self._storage.watch(self._prefix, after=page.revision))

    async def catch_up(self) -> None:
        """Tells of what has happened since. Raises `StorageError`."""
        if self._watcher is None:
            return
        try:
            events = self._watcher.ready()
        except CompactedError:
            await self.start()
            return
        for event in events:
            self._tell(event.key, None if event.value is None else msgspec.json.decode(event.value))

    async def stop(self) -> None:
        """Follows no more; may be called twice."""
        self._watcher = None
        await self._watching.aclose()

    def _tell(self, key: str, new: Json | None) -> None:
        old = self._known.pop(key, None)
        if new is not None:
            self._known[key] = new
        if old is not None or new is not None:
            self._changed(old, new)
