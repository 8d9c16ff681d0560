"""`InformerSet`: one informer for all namespaces, or one for each selected namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from navarch._base.tasks import cancel_and_wait
from navarch.cache.collection import Change, Collection
from navarch.cache.informer import Informer
from navarch.cache.selection import Namespaces

Watcher = Callable[[Collection[Any], str | None], Informer]


class InformerSet:
    """Keeps a collection up to date in the selected namespaces.

    `watcher` creates the informer of a namespace. `cluster` returns the informers of the cluster's own namespaces; it is
    called only for patterns.
    """

    def __init__(
        self, collection: Collection[Any], namespaces: Namespaces, watcher: Watcher, cluster: Callable[[], InformerSet]
    ) -> None:
        self.collection = collection
        self._meant = [namespaces]
        self._watcher = watcher
        self._cluster = cluster
        self._existing: Collection[Any] | None = None
        self._informers: dict[str | None, Informer] = {}
        self._tasks: dict[str | None, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._begun = asyncio.Event()
        self._is_running = False
        collection.namespaces = set()

    def join(self, namespaces: Namespaces) -> None:
        """Adds another selection; the set keeps the union of all of them."""
        if not any(namespaces is known for known in self._meant):
            self._meant.append(namespaces)
            if self._is_running:
                namespaces.listen(self._wake.set)
            self._wake.set()

    @property
    def informers(self) -> Iterable[Informer]:
        """The running informers."""
        return tuple(self._informers.values())

    async def wait_synced(self) -> None:
        """Returns when every selected namespace was listed once."""
        await self._begun.wait()
        for informer in self.informers:
            await informer.wait_synced()

    async def run(self) -> None:
        """Starts and stops informers as the namespaces change, until cancelled."""
        self._is_running = True
        for namespaces in self._meant:
            namespaces.listen(self._wake.set)
        try:
            async with asyncio.TaskGroup() as group:
                await self._follow(group)
        finally:
            self._is_running = False
            self._informers.clear()
            self._tasks.clear()
            for namespaces in self._meant:
                namespaces.unlisten(self._wake.set)
            if self._existing is not None:
                self._existing.unsubscribe(self._namespace_changed)
                self._existing = None

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            wanted = await self._wanted()
            await self._stop(self._informers.keys() - wanted)
            for namespace in wanted - self._informers.keys():
                self._start(group, namespace)
            self._begun.set()
            await self._wake.wait()

    async def _wanted(self) -> set[str | None]:
        if not self.collection.kind.namespaced or any(namespaces.all for namespaces in self._meant):
            return {None}
        return {name for namespaces in self._meant for name in await self._names(namespaces)}

    async def _names(self, namespaces: Namespaces) -> Iterable[str]:
        if namespaces.names is not None:
            return namespaces.names
        existing = await self._resolved()
        return {entry.key.name for entry in existing.store if namespaces.match(entry.key.name)}

    async def _resolved(self) -> Collection[Any]:
        """Returns the existing namespaces; watches them from the first call on."""
        cluster = self._cluster()
        await cluster.wait_synced()
        if self._existing is None:
            self._existing = cluster.collection
            self._existing.subscribe(self._namespace_changed)
        return self._existing

    def _start(self, group: asyncio.TaskGroup, namespace: str | None) -> None:
        informer = self._watcher(self.collection, namespace)
        self._informers[namespace] = informer
        self._tasks[namespace] = group.create_task(informer.run(), name=f"watch of {informer.name}")
        self._tell_collection()

    async def _stop(self, namespaces: set[str | None]) -> None:
        await cancel_and_wait(*(self._tasks.pop(namespace) for namespace in namespaces))
        for namespace in namespaces:
            del self._informers[namespace]
            self.collection.forget(namespace)
        self._tell_collection()

    def _tell_collection(self) -> None:
        """Reports the selected namespaces to the collection. All namespaces count only once they were listed, which it
        notices itself.
        """
        if None not in self._informers:
            self.collection.namespaces = {namespace for namespace in self._informers if namespace is not None}

    def _namespace_changed(self, change: Change) -> None:
        if change.old is None or change.new is None:
            self._wake.set()
