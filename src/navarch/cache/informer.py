"""List and watch as a state machine that only cancellation ends.

```
LISTING ──── the list is complete ────► WATCHING
  ▲    │                                 │    ▲
  │    └────────── error ──► WAITING ◄───┘    │
  │                           │    │          │
  └── the revision is gone ───┘    └─ it goes on where it ended
```
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from enum import Enum
from typing import Any, TypeVar, cast

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock
from navarch._base.tasks import one_ahead
from navarch.api import Fields, Key, Kind, Labels
from navarch.cache.collection import Collection
from navarch.client import ALL, Client, Listing, Watch, WatchEvent, WatchOptions
from navarch.client.list_body import ObjectHead
from navarch.client.reads import may_come_in_pages
from navarch.errors import ApiError, ConfigError, Gone, NavarchError, NotFound, TransportError

T = TypeVar("T")

_log = logging.getLogger("navarch.cache")
_BACKOFF = Backoff(initial=0.1, maximum=30.0, jitter=0.5)


class State(Enum):
    """The state of an informer."""

    LISTING = "listing"
    WATCHING = "watching"
    WAITING = "waiting"


class Informer:
    """Keeps a collection up to date for one namespace, or for all (None).

    Only cancellation ends `run`: it logs every error, waits and starts again. A watch resumes where it ended if the
    server allows it; otherwise the informer lists again and compares the list with the collection. It warns of a
    repeated error once. For a kind that `may_go`, a missing resource is no error.
    """

    def __init__(
        self,
        client: Client,
        collection: Collection[Any],
        namespace: str | None,
        clock: Clock,
        rng: random.Random,
        *,
        may_go: bool = False,
    ) -> None:
        self._client = client
        self._collection = collection
        self._namespace = namespace
        self._clock = clock.liveness
        self._delays = BackoffDelays(_BACKOFF, rng)
        self._may_go = may_go
        self._in_pages = False
        self._resume_from = ""
        self._watch: Watch[Any] | None = None
        self._synced = asyncio.Event()
        self._began_at = self._clock.monotonic()
        self.state = State.LISTING
        self.error = ""
        """Why it waits; empty while all is well."""

    @property
    def kind(self) -> Kind:
        """The watched kind."""
        return self._collection.kind

    @property
    def scope(self) -> str:
        """The namespace and selectors; empty if all objects are watched."""
        return " ".join(filter(None, (self._namespace, self._collection.cached.scope)))

    @property
    def name(self) -> str:
        """The watched objects, for people."""
        return f"{self.kind.resource} in {self._namespace}" if self._namespace else self.kind.resource

    @property
    def synced(self) -> bool:
        """True once everything was listed."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Returns once everything was listed."""
        await self._synced.wait()

    def staleness(self) -> float:
        """Returns the seconds since the server last sent data on this watch."""
        alive_at = self._watch.alive_at if self._watch else self._began_at
        return self._clock.monotonic() - max(alive_at, self._began_at)

    async def run(self) -> None:
        """Lists and watches until cancelled."""
        while True:
            try:
                await self._list_and_watch()
            except NavarchError as error:
                self._note(error)
            except Exception as error:  # noqa: BLE001 - a watch must not end, whatever was overlooked
                _log.exception("watch of %s: failed for a reason that was not foreseen", self.name)
                self._note(error)
            await self._clock.sleep(self._delays.next_delay())

    def _note(self, error: Exception) -> None:
        """Records why the watch ended, and whether it can resume."""
        if isinstance(error, (Gone, NotFound)) or not isinstance(error, (ApiError, TransportError, ConfigError)):
            self._resume_from = ""
        is_known = str(error) == self.error or (self._may_go and isinstance(error, NotFound))
        self.state, self.error = State.WAITING, str(error)
        level = logging.DEBUG if is_known else logging.WARNING
        _log.log(level, "watch of %s: %s; it %s", self.name, error, "goes on" if self._resume_from else "begins anew")

    async def _list_and_watch(self) -> None:
        if self._resume_from:
            watch = self._open(self._resume_from)
        else:
            self.state = State.LISTING
            watch = self._open(await self._list())
        async with watch:
            self._watch = watch
            await self._follow(watch)

    async def _list(self) -> str:
        """Lists everything and returns the revision of the list.

        One answer comes from the server's cache, always; pages come from etcd where it keeps no snapshot of the first one's
        revision, which takes ten times as long. An answer that is cut short is asked for in pages the next time.
        """
        listing = self._listing()
        if self._in_pages or listing.page_size is not None:
            version = await self._list_pages(listing)
            self._in_pages = False
            return version
        try:
            return await self._list_whole(listing)
        except NavarchError as error:
            self._in_pages = may_come_in_pages(error)
            raise

    async def _follow(self, watch: Watch[Any]) -> None:
        self.state, self.error = State.WATCHING, ""
        async for event in watch:
            self._take(event)
            self._resume_from = watch.resource_version
            self._delays.reset()

    def _take(self, event: WatchEvent[Any]) -> None:
        if event.type == "BOOKMARK":
            return
        entry = self._collection.cached.entry(event.data, event.head)
        if event.type == "DELETED":
            self._collection.saw_deleted(entry)
        else:
            self._collection.saw(entry)

    async def _list_whole(self, listing: Listing[Any]) -> str:
        """Each object is taken as it arrives, so that no second copy of all of them is held."""
        missing = self._collection.keys(self._namespace)
        async with listing.body(long_lived=True) as body:
            while (listed := await body.next()) is not None:
                for each in _handed_over(listed):
                    missing.discard(self._take_listed(each.data, each.head))
                await self._clock.sleep(0)  # others run between two parts, also if all of them have arrived
            assert body.metadata is not None
        return self._list_is_complete(missing, body.metadata.resource_version)

    async def _list_pages(self, listing: Listing[Any]) -> str:
        missing, pages = self._collection.keys(self._namespace), listing.pages()
        async with one_ahead(pages.next) as next_page:
            while (page := await next_page()) is not None:
                for data in _handed_over(page):
                    missing.discard(self._take_listed(data))
        return self._list_is_complete(missing, pages.resource_version)

    def _take_listed(self, data: bytes, head: ObjectHead | None = None) -> Key:
        entry = self._collection.cached.entry(data, head)
        self._collection.saw(entry, initial=not self.synced, listed=True)
        return entry.key

    def _list_is_complete(self, missing: set[Key], version: str) -> str:
        # What was written while the list came is in it, or newer than it, or was deleted by somebody else before it.
        self._collection.missed(missing | self._collection.unshown(self._namespace), int(version))
        self._collection.listed(self._namespace, int(version))
        self._resume_from = version
        self._synced.set()
        return version

    def _open(self, version: str) -> Watch[Any]:
        cached = self._collection.cached
        return self._client.watch(
            cached.readable,
            namespace=self._namespace or ALL,
            labels=cast(Labels, cached.labels),
            fields=cast(Fields, cached.fields),
            resource_version=version,
            options=WatchOptions(bookmarks=True),
        )

    def _listing(self) -> Listing[Any]:
        cached = self._collection.cached
        return self._client.list(
            cached.readable,
            namespace=self._namespace or ALL,
            labels=cast(Labels, cached.labels),
            fields=cast(Fields, cached.fields),
        )


def _handed_over(page: list[T]) -> Iterator[T]:
    """Yields the objects in order and removes each from the page, which must not stay in memory beside the
    cached copy.
    """
    page.reverse()
    while page:
        yield page.pop()
