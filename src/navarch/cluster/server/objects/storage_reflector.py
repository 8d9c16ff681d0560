"""Objects that the server itself keeps in mind: namespaces, roles, bindings, webhooks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from os.path import commonpath

import msgspec

from navarch._base.supervisor import cause_of
from navarch.cluster.server.wire.request import Json
from navarch.cluster.storage import Storage, StorageError, Watcher

__all__ = ["Changed", "Follower", "Followers"]

_log = logging.getLogger("navarch.cluster.server")

Changed = Callable[[Json | None, Json | None], None]
"""Told of an object as it was and as it is: None if it was not, or is not, there."""


class Followers:
    """Tells of every object under some prefixes: first of those that are there, then of each change.

    It does not run by itself: `catch_up` tells what has happened since, so that whoever calls it before a decision
    decides by what was written before, as far as the store shows it. One watch for all, since most requests find that
    nothing has happened.
    """

    def __init__(self, storage: Storage, followed: Mapping[str, Changed]) -> None:
        self._storage = storage
        self._followed = [_Followed(prefix, changed) for prefix, changed in followed.items()]
        self._prefix = f"{commonpath(list(followed))}/"
        self._watching = AsyncExitStack()
        self._watcher: Watcher | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Tells of what is there."""
        await self._watching.aclose()
        for followed in self._followed:
            await followed.read(self._storage)
        begin = min(followed.revision for followed in self._followed)
        self._watcher = await self._watching.enter_async_context(self._storage.watch(self._prefix, after=begin))

    async def catch_up(self) -> None:
        """Tells of what has happened since. Raises `StorageError`; if the store is back the next time, all is read anew."""
        watcher = self._watcher
        if watcher is None:
            return
        try:
            events = watcher.ready()
        except StorageError:
            async with self._starting:
                if self._watcher is watcher:
                    await self.start()
            return
        for event in events:
            for followed in self._followed:
                if event.key.startswith(followed.prefix) and event.revision > followed.revision:
                    followed.tell(event.key, event.value)

    async def stop(self) -> None:
        """Follows no more; may be called twice."""
        self._watcher = None
        await self._watching.aclose()


class Follower(Followers):
    """The same for one prefix."""

    def __init__(self, storage: Storage, prefix: str, changed: Changed) -> None:
        super().__init__(storage, {prefix: changed})


class _Followed:
    """One prefix. `revision` is the one it was read at: what was written before is known."""

    __slots__ = ("_changed", "_known", "prefix", "revision")

    def __init__(self, prefix: str, changed: Changed) -> None:
        self.prefix = prefix
        self.revision = 0
        self._changed = changed
        self._known: dict[str, Json] = {}

    async def read(self, storage: Storage) -> None:
        page = await storage.page(self.prefix)
        found = {item.key: item.value for item in page.items}
        for key in [key for key in self._known if key not in found]:
            self.tell(key, None)
        for key, value in found.items():
            self.tell(key, value)
        self.revision = page.revision

    def tell(self, key: str, value: bytes | None) -> None:
        old, new = self._known.pop(key, None), None
        if value is not None:
            new = self._known[key] = msgspec.json.decode(value)
        if old is None and new is None:
            return
        try:
            self._changed(old, new)
        except Exception as error:  # noqa: BLE001 - one object must not keep the server from hearing of the others
            _log.error("a change of %s was not taken over: %s", key, cause_of(error))
