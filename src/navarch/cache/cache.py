"""`Cache`: every collection of a process, each kept once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from navarch._base.clock import Clock
from navarch.api import Kind
from navarch.cache.collection import Collection
from navarch.cache.informer import Informer
from navarch.cache.informer_set import InformerSet
from navarch.cache.selection import Cached, Namespaces, as_cached
from navarch.client import Client
from navarch.client.target import Readable

T = TypeVar("T")

_NAMESPACES = Cached(Kind("", "v1", "Namespace", plural="namespaces", namespaced=False), metadata_only=True)
_EVERYWHERE = Namespaces()


class Cache:
    """Keeps collections of objects up to date. `run` it; call `wait_synced` before reading.

    Callers that request the same kind, selection and namespaces share one collection and one watch. If one of them
    changes its namespaces later, the collection has the union of all of them.
    """

    def __init__(self, client: Client, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._sets: dict[tuple[Cached[Any], tuple[str, ...]], InformerSet] = {}
        self._waiting: list[InformerSet] = []
        self._wake = asyncio.Event()

    def collection(self, what: Readable[T] | Cached[T], namespaces: Namespaces = _EVERYWHERE) -> Collection[T]:
        """Returns the collection of those objects, which is kept while `run` is running."""
        cached = as_cached(what)
        own = None if cached.namespaces is None else Namespaces(*cached.namespaces)
        collection = self._informers_of(cached, own or namespaces).collection
        for name, function in cached.indexes.items():
            collection.add_index(name, function)
        collection.allow_views(cached.views)
        return cast(Collection[T], collection)

    def _informers_of(self, cached: Cached[Any], namespaces: Namespaces) -> InformerSet:
        key = (cached, namespaces.patterns if cached.kind.namespaced else ())
        informers = self._sets.get(key)
        if informers is None:
            informers = self._sets[key] = InformerSet(Collection(cached), namespaces, self._informer, self._namespaces)
            self._waiting.append(informers)
            self._wake.set()
        else:
            informers.join(namespaces)
        return informers

    def _informer(self, collection: Collection[Any], namespace: str | None) -> Informer:
        return Informer(self._client, collection, namespace, self._clock, self._rng)

    def _namespaces(self) -> InformerSet:
        return self._informers_of(_NAMESPACES, _EVERYWHERE)

    async def run(self) -> None:
        """Keeps every collection until cancelled, also those that are requested later. May be run again."""
        self._waiting = list(self._sets.values())
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                for informers in self._waiting:
                    group.create_task(informers.run(), name=f"informers of {informers.collection.kind.resource}")
                self._waiting.clear()
                await self._wake.wait()

    async def wait_synced(self, *collections: Collection[Any]) -> None:
        """Returns when these collections, by default all of them, were listed once."""
        for informers in tuple(self._sets.values()):
            if not collections or informers.collection in collections:
                await informers.wait_synced()

    def informers(self) -> Iterator[Informer]:
        """Every running watch."""
        for informers in self._sets.values():
            yield from informers.informers

    def collections(self) -> Iterator[Collection[Any]]:
        """Every collection."""
        for informers in self._sets.values():
            yield informers.collection
