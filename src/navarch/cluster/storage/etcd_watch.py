"""Watches on etcd as `Watcher`s."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from navarch.cluster.storage.protocol import CompactedError, Event, StorageError, Stored
from navarch.errors import EtcdCompactedError, NavarchError
from navarch.etcd import EtcdClient, EtcdEvent, KeyValue, WatchRequest, WatchResponse

__all__ = ["EtcdWatcher", "Told", "decoded", "encoded"]

_FULL = 1000


def encoded(key: str) -> bytes:
    """The key as etcd has it."""
    return key.encode("utf-8", "surrogatepass")


def decoded(pair: KeyValue) -> Stored:
    """What etcd has, as the server knows it."""
    return Stored(pair.key.decode("utf-8", "surrogatepass"), pair.value, pair.mod_revision)


class Told:
    """A `Watcher` that is told what happens, by whoever takes it from etcd."""

    def __init__(self, after: int) -> None:
        self.seen = after
        self._heard = after
        self._events: list[Event] = []
        self._failure: StorageError | None = None
        self._is_woken = False
        self._hint = asyncio.Event()

    def ready(self) -> list[Event]:
        """See `Watcher.ready`."""
        events, self._events = self._events, []
        self.seen = self._heard
        if not events and self._failure:
            raise self._failure
        return events

    async def wait(self) -> None:
        """See `Watcher.wait`."""
        while not (self._is_woken or self._events or self._failure):
            self._hint.clear()
            await self._hint.wait()
        self._is_woken = False

    def wake(self) -> None:
        """See `Watcher.wake`."""
        self._is_woken = True
        self._hint.set()

    def tell(self, events: Iterable[Event], heard: int) -> None:
        """These have happened, and up to the revision `heard` nothing else."""
        self._events.extend(events)
        self._heard = max(self._heard, heard)
        if self._events:
            self._hint.set()

    def fail(self, error: StorageError) -> None:
        """Nothing more will be told."""
        self._failure = self._failure or error
        self._hint.set()


class EtcdWatcher(Told):
    """Takes events from etcd while `run` is under way, and keeps them until they are asked for.

    When nobody asks, it stops taking: they wait in etcd then, which slows no writer.
    """

    def __init__(self, client: EtcdClient, request: WatchRequest) -> None:
        super().__init__(request.start_revision - 1)
        self._client = client
        self._request = request
        self._room = asyncio.Event()

    async def run(self) -> None:
        """Returns when the watch has failed; `ready` says why, whatever it was."""
        try:
            await self._take_all()
        except EtcdCompactedError as error:
            self.fail(CompactedError(error.revision))
        except NavarchError as error:
            self.fail(StorageError(str(error)))
        except StorageError as error:
            self.fail(error)
        except Exception as error:
            self.fail(StorageError(f"the watch failed: {error}"))
            raise

    def ready(self) -> list[Event]:
        """See `Watcher.ready`."""
        self._room.set()
        return super().ready()

    async def _take_all(self) -> None:
        async with self._client.watch(self._request) as answers:
            async for answer in answers:
                self.tell(map(_event, answer.events), _reach(answer))
                while len(self._events) >= _FULL:
                    self._room.clear()
                    await self._room.wait()


def _reach(answer: WatchResponse) -> int:
    """The revision up to which nothing is still to come; how far etcd itself is says less to a watch that catches up."""
    if answer.created:
        return 0
    return answer.events[-1].kv.mod_revision if answer.events else answer.header.revision


def _event(event: EtcdEvent) -> Event:
    """Raises `CompactedError` if what was there before is already forgotten."""
    pair, previous = event.kv, event.prev_kv
    is_deletion = event.type == "DELETE"
    if previous is None and (is_deletion or pair.create_revision != pair.mod_revision):
        raise CompactedError(pair.mod_revision)
    key, value, revision = decoded(pair)
    return Event(key, None if is_deletion else value, revision, decoded(previous) if previous else None)
