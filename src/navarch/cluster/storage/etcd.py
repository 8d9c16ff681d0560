"""`EtcdStorage`: a storage in a real etcd, with unchanged keys: `etcdctl get --prefix /registry` shows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from navarch._base.clock import Clock, SystemClock
from navarch._base.tasks import TaskSet
from navarch.cluster.storage.etcd_watch import EtcdWatcher, SharedEtcdWatch, decoded, encoded
from navarch.cluster.storage.protocol import (
    EVENT_SECONDS,
    EVENTS_PREFIX,
    ChangedError,
    CompactedError,
    StorageError,
    StoragePage,
    Stored,
    TooLargeError,
    Watcher,
    WriteError,
)
from navarch.errors import EtcdCompactedError, EtcdExhaustedError, EtcdRefusedError, NavarchError
from navarch.etcd import (
    DeleteRequest,
    EtcdClient,
    EtcdOptions,
    PutRequest,
    RangeRequest,
    RangeResponse,
    WatchRequest,
    mod_revision_is,
    prefix_end,
)
from navarch.etcd.leases import Leases

_SHARED_SECONDS: Final = 60
_SHARED_KEYS: Final = 1000


class EventLeases:
    """Leases of Event objects, which etcd deletes after an hour, as in Kubernetes.

    Up to a thousand keys written within one minute share a lease, which lasts a minute longer.
    """

    def __init__(self, leases: Leases, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._id = 0
        self._until = 0.0
        self._left = 0

    async def lease_of(self, key: str) -> int:
        """Returns the lease for a write to the key now; 0 if the key does not expire."""
        if not key.startswith(EVENTS_PREFIX):
            return 0
        if self._left <= 0 or self._clock.monotonic() >= self._until:
            self._id = (await self._leases.grant(EVENT_SECONDS + _SHARED_SECONDS)).id
            self._until, self._left = self._clock.monotonic() + _SHARED_SECONDS, _SHARED_KEYS
        self._left -= 1
        return self._id


_FIRST_KEY = b"\0"
_AT_ONCE = 1000
_NEVER = 2**62
"""A revision that no key has."""
_REGISTRY = "/registry/"
"""The prefix of all objects."""


class EtcdStorage:
    """A `Storage` in etcd. Acknowledged writes are as durable as etcd's cluster makes them.

    A write without an answer raises `StorageError`; etcd may have executed it. Event objects expire after an hour.
    """

    def __init__(self, options: EtcdOptions, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self._client = EtcdClient(options, clock=clock)
        self._leases = EventLeases(self._client.leases, clock)
        self._feed: SharedEtcdWatch | None = None
        self._background = TaskSet()
        self._fault: str | None = None

    async def revision(self) -> int:
        """See `Storage.revision`."""
        with self._errors():
            return (await self._client.kv.range(RangeRequest(key=_FIRST_KEY, count_only=True))).header.revision

    async def get(self, key: str) -> Stored | None:
        """See `Storage.get`."""
        with self._errors():
            found = await self._client.kv.get(encoded(key))
        return decoded(found) if found else None

    async def page(self, prefix: str, *, revision: int = 0, limit: int = 0, after: str = "") -> StoragePage:
        """See `Storage.page`."""
        begin, end = _bounds(prefix, after)
        if begin >= end != _FIRST_KEY:
            return StoragePage([], revision or await self.revision(), 0)
        items: list[Stored] = []
        while True:
            answer = await self._range(
                RangeRequest(key=begin, range_end=end, limit=limit or _AT_ONCE, revision=revision)
            )
            revision = revision or answer.header.revision
            items.extend(map(decoded, answer.kvs))
            if limit or not answer.more:
                return StoragePage(items, revision, answer.count - len(answer.kvs))
            begin = answer.kvs[-1].key + b"\0"

    async def put(self, key: str, value: bytes, *, expected: int) -> int:
        """See `Storage.put`."""
        with self._errors():
            lease = await self._leases.lease_of(key)
        return await self._write(PutRequest(key=encoded(key), value=value, lease=lease), expected)

    async def delete(self, key: str, *, expected: int) -> int:
        """See `Storage.delete`."""
        if expected == 0:  # etcd would take that for a condition which holds
            raise ChangedError(await self.get(key))
        return await self._write(DeleteRequest(key=encoded(key)), expected)

    @asynccontextmanager
    async def watch(self, prefix: str, *, after: int) -> AsyncIterator[Watcher]:
        """See `Storage.watch`. All watches share one of etcd, except those that start far in the past."""
        if await self._has_come(after) and prefix.startswith(_REGISTRY):
            self._feed_from(after)
        feed = self._feed
        if feed is not None and feed.serves(prefix, after):
            with feed.watch(prefix, after) as watcher:
                yield watcher
        else:
            async with self._watch_alone(prefix, after) as watcher:
                yield watcher

    def _feed_from(self, revision: int) -> None:
        """Starts the shared watch, unless it runs."""
        if self._feed is None or self._feed.has_failed:
            self._feed = SharedEtcdWatch(self._watch_alone, _REGISTRY, revision)
            self._background.start(self._feed.run(), "etcd feed")

    @asynccontextmanager
    async def _watch_alone(self, prefix: str, after: int) -> AsyncIterator[Watcher]:
        begin, end = _bounds(prefix, "")
        request = WatchRequest(key=begin, range_end=end, start_revision=after + 1, prev_kv=True, progress_notify=True)
        watcher = EtcdWatcher(self._client, request)
        background = TaskSet()
        background.start(watcher.run(), "etcd watch")
        try:
            yield watcher
        finally:
            await background.stop()

    async def compact(self, revision: int) -> None:
        """See `Storage.compact`."""
        with self._errors():
            await self._client.kv.compact(revision)

    async def close(self) -> None:
        """See `Storage.close`. Watches end with a `StorageError`."""
        await self._background.stop()
        await self._client.close()

    @property
    def fault(self) -> str | None:
        """See `Storage.fault`."""
        return self._fault

    async def probe(self) -> None:
        """See `Storage.probe`: sends a transaction whose condition does not hold."""
        write = PutRequest(key=_FIRST_KEY, value=b"")
        with self._errors():
            await self._client.kv.txn([mod_revision_is(write.key, _NEVER)], [write], [])
        self._fault = None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Converts etcd's errors to those of a `Storage`; records the fault."""
        try:
            yield
        except EtcdCompactedError as error:
            raise CompactedError(error.revision) from error
        except (EtcdRefusedError, EtcdExhaustedError) as error:
            refused = _refused(str(error))
            self._fault = str(refused) if isinstance(refused, WriteError) else self._fault
            raise refused from error
        except NavarchError as error:
            self._fault = str(error)
            raise StorageError(str(error)) from error

    async def _range(self, request: RangeRequest) -> RangeResponse:
        """Raises `CompactedError` with the oldest revision, which etcd reports only to a watch."""
        try:
            with self._errors():
                return await self._client.kv.range(request)
        except CompactedError:
            with self._errors():
                async with self._client.watch(WatchRequest(key=_FIRST_KEY, start_revision=1)) as answers:
                    async for _ in answers:
                        pass
            raise

    async def _write(self, write: PutRequest | DeleteRequest, expected: int) -> int:
        with self._errors():
            answer = await self._client.kv.txn(
                [mod_revision_is(write.key, expected)], [write], [RangeRequest(key=write.key)]
            )
        self._fault = None
        if answer.succeeded:
            return answer.header.revision
        found = answer.responses[0].response_range
        raise ChangedError(decoded(found.kvs[0]) if found and found.kvs else None)

    async def _has_come(self, revision: int) -> bool:
        """Returns False for a future revision, which may be watched too. Raises `CompactedError` for a compacted one."""
        try:
            await self._range(RangeRequest(key=_FIRST_KEY, count_only=True, revision=max(revision, 1)))
        except _FutureError:
            return False
        return True


class _FutureError(StorageError):
    """The revision is in the future."""


def _refused(why: str) -> StorageError:
    if "request is too large" in why or "message larger than max" in why:
        return TooLargeError("etcdserver: request is too large")
    if "database space exceeded" in why:
        return WriteError(why)
    return (_FutureError if "future revision" in why else StorageError)(why)


def _bounds(prefix: str, after: str) -> tuple[bytes, bytes]:
    """Returns the range of keys under a prefix that come after a key; an end of one zero byte means no end."""
    begin, end = encoded(prefix) or _FIRST_KEY, prefix_end(encoded(prefix))
    return (max(begin, encoded(after) + b"\0") if after else begin), end
