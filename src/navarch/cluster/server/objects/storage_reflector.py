"""`StorageReflector`: reports the objects under some prefixes of the storage to the parts of the server that keep them
in memory (roles, namespaces, webhooks).
"""

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

_log = logging.getLogger("navarch.cluster.server")

Changed = Callable[[Json | None, Json | None], None]
"""Called with an object as it was and as it is; None where it does not exist."""


class StorageReflector:
    """Reports every object under some prefixes: first those that exist, then each change.

    It has no task: `catch_up` reports the changes since its last call, so a caller that decides afterwards knows every
    write that the storage shows. One watch serves all prefixes, since most requests find no change.
    """

    def __init__(self, storage: Storage, followed: Mapping[str, Changed]) -> None:
        self._storage = storage
        self._followed = [_Followed(prefix, changed) for prefix, changed in followed.items()]
        self._prefix = f"{commonpath(list(followed))}/"
        self._watching = AsyncExitStack()
        self._watcher: Watcher | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Reports the objects that exist."""
        await self._watching.aclose()
        for followed in self._followed:
            await followed.read(self._storage)
        begin = min(followed.revision for followed in self._followed)
        self._watcher = await self._watching.enter_async_context(self._storage.watch(self._prefix, after=begin))

    async def catch_up(self) -> None:
        """Reports the changes since the last call. Raises `StorageError`; the next call that reaches the storage reads all."""
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
        """Closes the watch; may be called twice."""
        self._watcher = None
        await self._watching.aclose()


class _Followed:
    """One prefix. `revision` is the one that it was read at: older writes are known."""

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
        except Exception as error:  # noqa: BLE001 - a fault in one object must not hide the others
            _log.error("the server did not apply the change of %s: %s", key, cause_of(error))
