"""`Storage`: the interface between the server and its storage, with keys and revisions as in etcd.

A storage has one revision, which grows by one with each write. A value is opaque bytes. Keys are those of Kubernetes:
`/registry/pods/default/web`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

EVENTS_PREFIX: Final = "/registry/events/"
EVENT_SECONDS: Final = 3600
"""How long Event objects are kept after their last change, as in Kubernetes."""


class StorageError(Exception):
    """The storage failed; the server answers 500 or 503."""


class WriteError(StorageError):
    """The write could not be made durable, for example because the disk is full; the server answers 500. Reads go on."""


class TooLargeError(StorageError):
    """The value is larger than the storage accepts; the server answers 413."""


class CompactedError(StorageError):
    """The revision was compacted; `oldest` is the first one that was not."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"revisions before {oldest} are no longer kept")
        self.oldest = oldest


class ChangedError(StorageError):
    """The key is not at the expected revision; `current` is its value now, None if it has none."""

    def __init__(self, current: Stored | None) -> None:
        super().__init__("the key has changed")
        self.current = current


class Stored(NamedTuple):
    """A value, and the revision of its write."""

    key: str
    value: bytes
    revision: int


class StoragePage(NamedTuple):
    """Some of the keys under a prefix, in order, as of one revision. `remaining` counts those after it."""

    items: list[Stored]
    revision: int
    remaining: int


class Event(NamedTuple):
    """A write: `value` is None for a deletion. `previous` is the value before, None if there was none."""

    key: str
    value: bytes | None
    revision: int
    previous: Stored | None


class Watcher(Protocol):
    """One watch. `wait` and `ready` are separate, so that `wake` can end the wait for another reason."""

    @property
    def seen(self) -> int:
        """The revision up to which `ready` has returned every write; it also grows without writes under the prefix."""
        ...

    def ready(self) -> Sequence[Event]:
        """Returns the events since the last call, in order, each once; empty if there are none yet.

        Raises `CompactedError` if some were compacted meanwhile, `StorageError` if the storage failed.
        """
        ...

    async def wait(self) -> None:
        """Returns when there may be events, or after `wake`. Cancelling it loses no event."""
        ...

    def wake(self) -> None:
        """Ends the current or next `wait`."""
        ...


class Storage(Protocol):
    """A storage. Acknowledged writes survive a restart, as far as the kind of storage promises it."""

    async def revision(self) -> int:
        """Returns the revision of the last write."""
        ...

    async def get(self, key: str) -> Stored | None:
        """Returns the current value of the key."""
        ...

    async def page(self, prefix: str, *, revision: int = 0, limit: int = 0, after: str = "") -> StoragePage:
        """Returns the keys under `prefix` that come after `after`, as of `revision` (0: now), at most `limit` (0: all).

        Raises `CompactedError`, and `StorageError` for a future revision.
        """
        ...

    async def put(self, key: str, value: bytes, *, expected: int) -> int:
        """Writes if the key is at revision `expected` (0: if it has no value); returns the new revision.

        Raises `ChangedError`. When it returns, the write is as durable as this storage makes it.
        """
        ...

    async def delete(self, key: str, *, expected: int) -> int:
        """Deletes if the key is at revision `expected`; returns the revision of the deletion. Raises `ChangedError`."""
        ...

    def watch(self, prefix: str, *, after: int) -> AbstractAsyncContextManager[Watcher]:
        """Watches every write under `prefix` after that revision, in order, each once. Raises `CompactedError` on entry.

        A consumer that falls behind does not slow down writers.
        """
        ...

    async def compact(self, revision: int) -> None:
        """Drops the history before that revision; current values, and those at that revision, stay."""
        ...

    @property
    def fault(self) -> str | None:
        """The reason why the last write or connection failed; None after one that succeeded."""
        ...

    async def probe(self) -> None:
        """Tests whether writes succeed, and repairs files; changes no key.

        Raises `StorageError`, which is then the `fault`.
        """
        ...

    async def close(self) -> None:
        """Closes files and connections; may be called twice."""
        ...
