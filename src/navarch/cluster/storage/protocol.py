"""What the server asks of its storage: keys with revisions, as etcd has them.

There is one revision for the whole store; it grows by one with each write. A value is bytes; the store does not look
into it. Keys are Kubernetes' own: `/registry/pods/default/web`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol


class StorageError(Exception):
    """The store failed; the server answers 500 or 503."""


class WriteError(StorageError):
    """The write could not be made durable, for example because the disk is full; the server answers 500. Reads go on."""


class TooLargeError(StorageError):
    """The value is larger than the store takes; the server answers 413."""


class CompactedError(StorageError):
    """The revision is no longer kept; `oldest` is."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"revisions before {oldest} are no longer kept")
        self.oldest = oldest


class ChangedError(StorageError):
    """The key is not at the revision that was expected; `current` is what it has now, None if it has nothing."""

    def __init__(self, current: Stored | None) -> None:
        super().__init__("the key has changed")
        self.current = current


class Stored(NamedTuple):
    """A value, and the revision of the write that made it."""

    key: str
    value: bytes
    revision: int


class Page(NamedTuple):
    """Some of the keys under a prefix, in order, as of one revision. `remaining` counts those after it."""

    items: list[Stored]
    revision: int
    remaining: int


class Event(NamedTuple):
    """A write: `value` is None for a deletion. `previous` is what the key had before, None if nothing."""

    key: str
    value: bytes | None
    revision: int
    previous: Stored | None


class Watcher(Protocol):
    """One watch. Waiting and taking are two things, so that whoever waits can be woken for another reason."""

    @property
    def seen(self) -> int:
        """The revision up to which `ready` has given every write; it grows also while nothing happens under the prefix."""
        ...

    def ready(self) -> Sequence[Event]:
        """The events since the last call, in order, each once; empty if there are none yet.

        Raises `CompactedError` if it fell so far behind that some are no longer kept, `StorageError` if the store failed.
        """
        ...

    async def wait(self) -> None:
        """Returns when there may be something ready, or after `wake`; at once if there is. Cancelling it loses nothing."""
        ...

    def wake(self) -> None:
        """Lets `wait` return."""
        ...


class Storage(Protocol):
    """A store. Everything that was acknowledged is there after a restart, as far as the kind of store promises it."""

    async def revision(self) -> int:
        """The revision of the last write."""
        ...

    async def get(self, key: str) -> Stored | None:
        """What the key has now."""
        ...

    async def page(self, prefix: str, *, revision: int = 0, limit: int = 0, after: str = "") -> Page:
        """Keys under `prefix` that come after `after`, as of `revision` (0: now), at most `limit` (0: all).

        Raises `CompactedError`, and `StorageError` if that revision has not come yet.
        """
        ...

    async def put(self, key: str, value: bytes, *, expected: int) -> int:
        """Writes if the key is at revision `expected` (0: if it has nothing); the new revision.

        Raises `ChangedError`. When it returns, the write is as durable as this store makes it.
        """
        ...

    async def delete(self, key: str, *, expected: int) -> int:
        """Deletes if the key is at revision `expected`; the revision of the deletion. Raises `ChangedError`."""
        ...

    def watch(self, prefix: str, *, after: int) -> AbstractAsyncContextManager[Watcher]:
        """Every write under `prefix` after that revision, in order, each once. Raises `CompactedError` on entry.

        A consumer that falls behind does not slow down writers.
        """
        ...

    async def compact(self, revision: int) -> None:
        """Forgets what happened before that revision; what keys have now, and had at that revision, stays."""
        ...

    @property
    def fault(self) -> str | None:
        """Why the last write, or the last attempt to reach the store, failed; None once one has succeeded."""
        ...

    async def probe(self) -> None:
        """Tries whether writes are taken, and mends what it can; changes nothing that anybody could read.

        Raises `StorageError`, which is then the `fault`.
        """
        ...

    async def close(self) -> None:
        """Lets go of files and connections; may be called twice."""
        ...
