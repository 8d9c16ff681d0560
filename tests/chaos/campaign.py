"""One campaign: a cache that is kept through a fault while somebody writes, and what must be true afterwards.

    async with campaign(direct, client, ConfigMap) as world:
        ...                                  # break something
        await world.survived(seconds=20)     # mends itself, or the test fails saying what differs

`direct` reaches the server without the fault; it writes, and says what the server has.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

from chaos.ledger import Holding, Ledger, Seen, difference, holding_of, running
from chaos.waiting import until, until_none
from navarch._base.clock import Clock, SystemClock
from navarch.api import Dynamic, Key, Kind
from navarch.cache import Cache, Cached, Collection
from navarch.client import Client, MergePatch
from navarch.errors import ApiError, TransportError

_PAUSE_SECONDS = 0.01
_NAMES = 12


class Writer:
    """Creates, changes and deletes objects in the client's namespace, without a pause to speak of, until it is told to
    stop. Whatever the server says, it goes on.
    """

    def __init__(self, client: Client, kind: Kind, seed: int = 1) -> None:
        self.made: set[int] = set()
        """Every version that the server said it had made."""
        self.deleted = 0
        self.rests = False
        """Whether its last write has ended."""
        self._client = client
        self._kind = kind
        self._random = random.Random(seed)
        self._stopped = False
        self._clock = SystemClock()

    async def run(self) -> None:
        count = 0
        while not self._stopped:
            count += 1
            with contextlib.suppress(ApiError, TransportError):
                await self._write(f"written-{self._random.randrange(_NAMES)}", count)
            await self._clock.sleep(_PAUSE_SECONDS)
        self.rests = True

    def stop(self) -> None:
        """After the write that is under way."""
        self._stopped = True

    async def create(self, name: str, count: int = 0) -> Dynamic:
        """A new object."""
        annotations = {"count": str(count)}
        new = {"apiVersion": self._kind.api_version, "kind": self._kind.kind}
        made = await self._client.create(
            Dynamic({**new, "metadata": {"name": name, "annotations": annotations}, **self._needed()})
        )
        self.made.add(int(made.metadata["resourceVersion"]))
        return made

    async def change(self, name: str, count: int) -> None:
        """Another version of an object that is there."""
        patch = MergePatch({"metadata": {"annotations": {"count": str(count)}}})
        changed = await self._client.patch(self._kind, name, patch)
        self.made.add(int(changed.metadata["resourceVersion"]))

    async def delete(self, name: str) -> None:
        """An object less."""
        await self._client.delete(self._kind, name)
        self.deleted += 1

    async def _write(self, name: str, count: int) -> None:
        act = self._random.randrange(4)
        if act == 0:
            await self.delete(name)
        elif act == 1:
            await self.create(name, count)
        else:
            await self.change(name, count)

    def _needed(self) -> dict[str, Any]:
        """An Event must say what it is about."""
        if self._kind.kind != "Event":
            return {}
        namespace = self._client.options.namespace
        return {"involvedObject": {"kind": "Namespace", "namespace": namespace, "name": namespace}}


class Campaign:
    """What is looked at while something is broken, and afterwards."""

    def __init__(self, direct: Client, cache: Cache, kind: Kind, *, metadata_only: bool) -> None:
        self.direct = direct
        self.cache = cache
        self.kind = kind
        self.writer = Writer(direct, kind)
        cached = Cached(kind, namespaces=(direct.options.namespace,), metadata_only=metadata_only)
        self.collection: Collection[Dynamic] = cache.collection(cached)
        self.ledger = Ledger()
        self.collection.subscribe(self.ledger)
        self._tasks = 0

    async def began(self) -> None:
        """Everything runs: the cache has seen a list, and changes after it."""
        await until(lambda: len(self.ledger.told) > _NAMES, "the watch to show the writer's first changes")
        self._tasks = len(asyncio.all_tasks())

    def error(self) -> str:
        """Why the cache waits; empty while all is well."""
        return "; ".join(informer.error for informer in self.cache.informers() if informer.error)

    async def until_error(self, text: str, *, seconds: float = 60.0, meanwhile: Callable[[], object] = bool) -> None:
        """Waits until the cache is waiting because of what says `text`; without that a fault has not been felt.

        `meanwhile` is done less and less often, so that what it disturbs gets its turn on a slow machine too.
        """
        clock, pause = SystemClock(), 0.05
        due = clock.monotonic()

        async def look() -> str | None:
            nonlocal pause, due
            if clock.monotonic() >= due:
                meanwhile()
                pause = min(2 * pause, 5.0)
                due = clock.monotonic() + pause
            return None if text in self.error() else f"expected the cache to feel {text!r}, got {self.error()!r}"

        await until_none(look, seconds=seconds)

    async def until_deleted(self, more: int, *, seconds: float = 60.0) -> None:
        """Waits until the writer has deleted that many more: what a watch that is down must find out by itself."""
        goal = self.writer.deleted + more
        await until(lambda: self.writer.deleted >= goal, f"{more} more deletions by the writer", seconds=seconds)

    async def until_told(self, more: int, *, seconds: float = 60.0) -> None:
        """Waits until that many more changes were told: the watch is alive, broken or not."""
        goal = len(self.ledger.told) + more
        await until(lambda: len(self.ledger.told) >= goal, f"{more} more changes to be told", seconds=seconds)

    async def survived(self, *, seconds: float = 60.0, resumed: bool = False) -> float:
        """Checks everything that a fault must leave intact; gives the seconds until all agreed.

        `resumed` is for faults after which a watch goes on where it ended: then every single version was told.
        """
        took = await self._agrees(seconds)
        await self._shows_what_is_new()
        assert not self.ledger.contradictions, self.ledger.contradictions[:3]
        if resumed:
            lost = self.writer.made - self.ledger.told
            assert not lost, f"expected every version to be told, got none of {sorted(lost)[:5]} ({len(lost)} in all)"
        await self._is_back_to_normal()
        return took

    async def _agrees(self, seconds: float) -> float:
        """The collection and its subscriber have what the server has, while the writer rests."""
        self.writer.stop()
        await until(lambda: self.writer.rests, "the writer's last write to end")
        began = SystemClock().monotonic()
        await until_none(self._complaint, seconds=seconds)
        return SystemClock().monotonic() - began

    async def _complaint(self) -> str | None:
        expected = await self._on_the_server()
        complaint = difference(expected, holding_of(self.collection.store), "the collection") or difference(
            expected, self.ledger.holds, "a subscriber"
        )
        return f"{complaint}; the cache says {self.error()!r}" if complaint else None

    async def _on_the_server(self) -> Holding:
        found = await self.direct.list(self.kind)
        return {
            each.metadata["uid"]: Seen(Key(each.namespace, each.name), int(each.metadata["resourceVersion"]))
            for each in found
        }

    async def _shows_what_is_new(self) -> None:
        """No watch is dead: a new object comes, and goes."""
        made = await self.writer.create("afterwards")
        uid = made.metadata["uid"]
        await until(lambda: uid in self.ledger.holds, "a new object to be told")
        await self.writer.delete("afterwards")
        await until(lambda: uid in self.ledger.deleted, "its deletion to be told")

    async def _is_back_to_normal(self) -> None:
        """As many tasks, watches and entries as before; nothing that is only waited for."""
        await until(lambda: not self.error(), "the cache to be well again")
        assert len(list(self.cache.informers())) == 1
        assert not self.collection._unconfirmed
        await until(
            lambda: len(asyncio.all_tasks()) <= self._tasks, f"no more than the {self._tasks} tasks from before"
        )


@contextlib.asynccontextmanager
async def campaign(
    direct: Client, client: Client, kind: Kind, *, clock: Clock | None = None, metadata_only: bool = False
) -> AsyncIterator[Campaign]:
    """A cache of a kind through `client`, and a writer beside it; both are at work when the block begins."""
    cache = Cache(client, clock or SystemClock(), random.Random(3))
    world = Campaign(direct, cache, kind, metadata_only=metadata_only)
    async with running(cache.run(), world.writer.run()):
        await world.began()
        yield world
