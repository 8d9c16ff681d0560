"""`ApplyCache`: remembers what was applied, so that an apply that would change nothing is not sent."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from navarch.api import Dynamic, Key, Kind, Object
from navarch.cache import Entry, only_status_differs
from navarch.client.bodies import applied_body

__all__ = ["ApplyCache", "Child", "annotations_of", "digest_of"]

_LIMIT = 50_000


class Child(NamedTuple):
    """An object that the reconciler writes for its owner."""

    kind: Kind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.resource} {self.key}"


class _Known(NamedTuple):
    """The digest of the desired object, and the newest version that is known to satisfy it."""

    digest: bytes
    entry: Entry


def annotations_of(desired: Object | Dynamic) -> frozenset[str]:
    """Returns the names of the annotations of the desired object."""
    given = desired.annotations if isinstance(desired, Object) else desired.metadata.get("annotations")
    return frozenset(given or ())


def digest_of(desired: Object | Dynamic, kind: Kind, owner_uid: str) -> bytes:
    """Returns the digest of a desired object; the same object desired by another owner has another digest."""
    return hashlib.blake2b(owner_uid.encode() + applied_body(desired, kind, None), digest_size=16).digest()


class ApplyCache:
    """What this process applied for each owner, with the resulting versions.

    An apply is skipped if the same object was applied before and nothing has changed since but its status or annotations that
    were not applied. At most `limit` objects are remembered; beyond that, the owners that were reconciled longest ago are
    dropped, and their objects are sent once more.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._owners: OrderedDict[Key, dict[Child, _Known]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def is_done(
        self, owner: Key, child: Child, digest: bytes, now: Entry, annotations: Collection[str] | None = None
    ) -> bool:
        """Returns whether applying the object of that digest would change nothing, the stored object being `now`.

        With the names of the applied `annotations`, changes of other annotations do not count; entries are whole then.
        """
        known = self._owners.get(owner, {}).get(child)
        if known is None or known.digest != digest:
            return False
        if known.entry.version != now.version and not _is_as_good(known.entry, now, child.kind, annotations):
            return False
        self.remember(owner, child, digest, now)
        return True

    def remember(self, owner: Key, child: Child, digest: bytes, result: Entry) -> None:
        """Records that the object of that digest was applied, with the resulting entry."""
        children = self._owners.setdefault(owner, {})
        self._owners.move_to_end(owner)
        self._count += child not in children
        children[child] = _Known(digest, result)
        while self._count > self._limit:
            self.forget(next(iter(self._owners)))

    def forget(self, owner: Key, child: Child | None = None) -> None:
        """Drops an owner that is deleted, or one object of it."""
        if child is None:
            self._count -= len(self._owners.pop(owner, {}))
        elif self._owners.get(owner, {}).pop(child, None) is not None:
            self._count -= 1


def _is_as_good(old: Entry, new: Entry, kind: Kind, annotations: Collection[str] | None) -> bool:
    """Returns whether only the status or foreign annotations differ, such as the revision that every Deployment gets."""
    if only_status_differs(old, new):
        return True
    if annotations is None or not kind.has_status:
        return False
    return _applied_part(old, annotations) == _applied_part(new, annotations)


def _applied_part(entry: Entry, annotations: Collection[str]) -> dict[str, Any]:
    """Returns the object without its status, resourceVersion and generation, and with these annotations alone."""
    found: dict[str, Any] = msgspec.json.decode(entry.data)
    found.pop("status", None)
    metadata = found["metadata"]
    given = metadata.pop("annotations", None) or {}
    for counter in ("resourceVersion", "generation"):
        metadata.pop(counter, None)
    return {**found, "annotations": {name: text for name, text in given.items() if name in annotations}}
