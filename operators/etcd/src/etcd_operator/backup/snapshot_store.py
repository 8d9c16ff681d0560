"""What is asked of a store of snapshots, what its refusals mean, and buckets and folders through obstore."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import obstore
from obstore import exceptions
from obstore.store import ObjectStore

from navarch.errors import NavarchError

LONGEST_REASON: Final = 1000
"""In characters; an event takes hardly more."""


class BackupError(NavarchError):
    """No backup could be made or read; says why."""


class DamagedSnapshotError(BackupError):
    """A snapshot that is not what etcd wrote."""


class DestinationError(BackupError):
    """Nowhere to put it, or nothing to take it from: the spec or a Secret has to change."""


class StoreError(BackupError):
    """The store refused, or could not be reached."""


PARTIAL: Final = ".partial"
"""How the name of what does not count yet ends."""
MAX_NAMES: Final = 10_000
"""So many objects may begin with one name: retention reads a manifest of each."""
_MAX_LISTED: Final = 10 * MAX_NAMES
"""So many may be in one folder of a bucket, which is listed to find those."""
_PANIC: Final = "RustPanic"
"""What obstore raises where its client gave up; the class cannot be imported."""
_MEANING: Final[tuple[tuple[type[Exception], str], ...]] = (
    (FileNotFoundError, "there is no such object, bucket or folder"),
    (exceptions.PermissionDeniedError, "the store refuses: these credentials may not do that"),
    (exceptions.UnauthenticatedError, "the store refuses: the credentials are wrong"),
    (exceptions.InvalidPathError, "the store does not take that name"),
    (OSError, "the store cannot be written or read; it may be full"),
    (exceptions.BaseError, "the store failed, is full or cannot be reached"),
)


class SnapshotStore(Protocol):
    """Snapshots by name. Raises what `store_errors` knows."""

    async def put(self, name: str, content: Path | bytes) -> None:
        """Under a name that ends with `PARTIAL`: if it is cut off, half of it may be there."""
        ...

    def read(self, name: str) -> AsyncIterator[bytes]:
        """All of it, in pieces."""
        ...

    async def rename(self, old: str, new: str) -> int:
        """Gives it its name; says how many bytes are there under it then. The old name may stay."""
        ...

    async def delete(self, name: str) -> None:
        """Where there is none, a store may say so."""
        ...

    async def names(self, start: str) -> list[str]:
        """Those that begin so; raises `StoreError` if there are more than `MAX_NAMES`."""
        ...


class Bucket:
    """A `SnapshotStore` that obstore knows."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def put(self, name: str, content: Path | bytes) -> None:
        await obstore.put_async(self._store, name, content)

    async def read(self, name: str) -> AsyncIterator[bytes]:
        async for piece in (await obstore.get_async(self._store, name)).stream():
            yield bytes(piece)

    async def rename(self, old: str, new: str) -> int:
        """A store may say that it copies, and do it later: the old one stays until it was seen that the copy is whole."""
        await obstore.copy_async(self._store, old, new)
        return int((await obstore.head_async(self._store, new))["size"])

    async def delete(self, name: str) -> None:
        await obstore.delete_async(self._store, name)

    async def names(self, start: str) -> list[str]:
        folder, _, _ = start.rpartition("/")
        found: list[str] = []
        listed = 0
        async for page in obstore.list(self._store, prefix=folder or None):
            listed += len(page)
            found += [each["path"] for each in page if each["path"].startswith(start)]
            require_at_most(listed, _MAX_LISTED)
            require_at_most(len(found), MAX_NAMES)
        return found


def require_at_most(found: int, most: int) -> None:
    """Raises `StoreError` where too many objects are beside each other to be looked through."""
    if found > most:
        raise StoreError(f"more than {most} objects are there: give the backup a folder of its own, or delete some")


@contextmanager
def store_errors(doing: str) -> Iterator[None]:
    """What a store raises in the block becomes a `StoreError` in words of ours: its own may quote keys and signatures."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{doing}: {error}") from None
    except (exceptions.BaseError, OSError) as error:
        message = next(message for kind, message in _MEANING if isinstance(error, kind))
        raise StoreError(f"{doing}: {message}") from None
    except Exception as error:
        if type(error).__name__ != _PANIC:
            raise
        raise StoreError(f"{doing}: the store answered what its client cannot read") from None
