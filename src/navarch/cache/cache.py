"""`Cache`: every collection of a process, each kept once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from navarch._base.clock import Clock
from navarch.api import Kind
from navarch.cache.cached import Cached, as_cached
from navarch.cache.collection import Collection
from navarch.cache.feed import Feed
from navarch.cache.informer import Informer
from navarch.cache.namespaces import Namespaces
from navarch.client import Client
from navarch.client.target import Readable

__all__ = ["Cache"]

T = TypeVar("T")

_NAMESPACES = Cached(Kind("", "v1", "Namespace", plural="namespaces", namespaced=False), metadata_only=True)
_EVERYWHERE = Namespaces()


class Cache:
    """Keeps collections of objects as the server has them. `run` it; `wait_synced` before reading.

    Whoever asks for the same kind, selection and namespaces shares one collection and one watch. Should one of them mean
    other namespaces later, the collection has what any of them means.
    """

    def __init__(self, client: Client, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._feeds: dict[tuple[Cached[Any], tuple[str, ...]], Feed] = {}
        self._waiting: list[Feed] = []
        self._wake = asyncio.Event()

    def collection(self, what: Readable[T] | Cached[T], namespaces: Namespaces = _EVERYWHERE) -> Collection[T]:
        """The collection of those objects: kept while `run` is under way, from the moment it is first asked for."""
        cached = as_cached(what)
        own = None if cached.namespaces is None else Namespaces(*cached.namespaces)
        collection = self._feed(cached, own or namespaces).collection
        for name, function in cached.indexes.items():
            collection.add_index(name, function)
        collection.allow_views(cached.views)
        return cast(Collection[T], collection)

    def _feed(self, cached: Cached[Any], namespaces: Namespaces) -> Feed:
        key = (cached, namespaces.patterns if cached.kind.namespaced else ())
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(Collection(cached), namespaces, self._informer, self._namespaces)
            self._waiting.append(feed)
            self._wake.set()
        else:
            feed.join(namespaces)
        return feed

    def _informer(self, collection: Collection[Any], namespace: str | None) -> Informer:
        return Informer(self._client, collection, namespace, self._clock, self._rng)

    def _namespaces(self) -> Feed:
        return self._feed(_NAMESPACES, _EVERYWHERE)

    async def run(self) -> None:
        """Keeps every collection until it is cancelled; those asked for later as soon as they are. May be run again."""
        self._waiting = list(self._feeds.values())
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                for feed in self._waiting:
                    group.create_task(feed.run(), name=f"feed of {feed.collection.kind.resource}")
                self._waiting.clear()
                await self._wake.wait()

    async def wait_synced(self) -> None:
        """Returns when everything that was asked for was listed once."""
        for feed in tuple(self._feeds.values()):
            await feed.wait_synced()

    def informers(self) -> Iterator[Informer]:
        """Every watch there is right now."""
        for feed in self._feeds.values():
            yield from feed.informers

    def collections(self) -> Iterator[Collection[Any]]:
        """Everything that is kept."""
        for feed in self._feeds.values():
            yield feed.collection
