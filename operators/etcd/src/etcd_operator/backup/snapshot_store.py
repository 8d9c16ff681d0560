"""`SnapshotStore`: the interface of stores, their errors, and `Bucket`, a store through obstore."""

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
    """A backup could not be made or read. Messages go into statuses and events, and never quote a store."""


class DamagedSnapshotError(BackupError):
    """The snapshot is corrupt or incomplete."""


class DestinationError(BackupError):
    """The destination is invalid: the spec or a Secret has to change."""


class StoreError(BackupError):
    """The store refused, or is unreachable."""


PARTIAL: Final = ".partial"
"""The suffix of objects that are not complete yet."""
MAX_NAMES: Final = 10_000
"""The limit of objects with one prefix: retention reads the manifest of each."""
_MAX_LISTED: Final = 10 * MAX_NAMES
"""The limit of objects in one folder of a bucket, which is listed to find them."""
_PANIC: Final = "RustPanic"
"""The exception of obstore for a crash of its client; the class cannot be imported."""
_MEANING: Final[tuple[tuple[type[Exception], str], ...]] = (
    (FileNotFoundError, "the object, bucket or folder does not exist"),
    (exceptions.PermissionDeniedError, "the store refused: the credentials lack permission"),
    (exceptions.UnauthenticatedError, "the store refused: the credentials are wrong"),
    (exceptions.InvalidPathError, "the store refused the name"),
    (OSError, "the store cannot be read or written; it may be full"),
    (exceptions.BaseError, "the store failed, is full or is unreachable"),
)


class SnapshotStore(Protocol):
    """Stores snapshots by name. Raises the exceptions that `store_errors` translates."""

    async def put(self, name: str, content: Path | bytes) -> None:
        """Writes an object whose name ends with `PARTIAL`; an interrupted write may leave a part of it."""
        ...

    def read(self, name: str) -> AsyncIterator[bytes]:
        """Reads an object in chunks."""
        ...

    async def rename(self, old: str, new: str) -> int:
        """Renames an object; returns its size under the new name. The old name may remain."""
        ...

    async def delete(self, name: str) -> None:
        """Deletes an object; a store may raise for a missing one."""
        ...

    async def names(self, start: str) -> list[str]:
        """Lists the names with that prefix; raises `StoreError` if there are more than `MAX_NAMES`."""
        ...


class Bucket:
    """A `SnapshotStore` in a bucket or folder, through obstore."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def put(self, name: str, content: Path | bytes) -> None:
        await obstore.put_async(self._store, name, content)

    async def read(self, name: str) -> AsyncIterator[bytes]:
        async for piece in (await obstore.get_async(self._store, name)).stream():
            yield bytes(piece)

    async def rename(self, old: str, new: str) -> int:
        """Copies the object and returns the size of the copy; a store may copy late, so the caller checks before it deletes."""
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
    """Raises `StoreError` if there are more objects than the operator lists."""
    if found > most:
        raise StoreError(f"the folder has more than {most} objects: give the backup its own folder, or delete some")


@contextmanager
def store_errors(doing: str) -> Iterator[None]:
    """Translates a store's exceptions in the block to `StoreError`; the store's own messages may quote credentials."""
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
        raise StoreError(f"{doing}: the store sent an invalid response") from None
