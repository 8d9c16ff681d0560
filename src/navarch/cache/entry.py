"""An object as the cache keeps it: bytes, and as much of its metadata as is needed to find it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from navarch.api import Key
from navarch.client.heads import Head, head_of
from navarch.errors import DecodeError

__all__ = ["UNKNOWN", "Entry", "Owner", "entry_of", "is_related_alike", "only_status_differs"]

UNKNOWN = -1
"""A version that nothing can have."""

_NONE: Mapping[str, str] = {}


class Owner(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """One owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _Related(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None


class _RelatedHead(msgspec.Struct, gc=False):
    metadata: _Related = msgspec.field(default_factory=_Related)


_decode_related = msgspec.json.Decoder(_RelatedHead).decode


@lru_cache(maxsize=256)
def _related(data: bytes) -> _Related:
    """Many ask for these of one version, one after the other: indexes, controllers, and what they map."""
    return _decode_related(data).metadata


class Entry(msgspec.Struct, gc=False, eq=False):
    """One version of one object. `previous` is the version that the watch showed just before it, 0 if none.

    After a list that is `UNKNOWN`: others may lie between.

    Uid, labels and owners are looked up in the bytes when they are asked for: they would take more memory than all the
    rest beside the bytes, and an index has what is asked for often.
    """

    key: Key
    version: int
    generation: int
    deleting: bool
    data: bytes
    previous: int = 0

    def __repr__(self) -> str:
        return f"<Entry {self.key} at {self.version}, {len(self.data)} bytes>"

    @property
    def uid(self) -> str:
        """What tells the object from others that had its name."""
        return _related(self.data).uid

    @property
    def labels(self) -> Mapping[str, str]:
        """The object's labels."""
        return _related(self.data).labels or _NONE

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Whom the object belongs to."""
        return _related(self.data).owner_references or ()

    @property
    def controller(self) -> Owner | None:
        """The owner that controls the object, if it has one."""
        return next((owner for owner in self.owners if owner.controller), None)


def is_related_alike(old: Entry, new: Entry) -> bool:
    """Whether two versions of an object have the same labels and owners."""
    return bool(_related(old.data) == _related(new.data))


_KEY_OF_MANAGED_FIELDS = b'"managedFields":'


def entry_of(data: bytes, head: Head | None = None) -> Entry:
    """The entry for an object's JSON, of which the head may be known already.

    Raises `DecodeError` if it is no object of Kubernetes.
    """
    try:
        found = head or head_of(data)
        version = int(found.resource_version or 0)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise DecodeError(f"expected an object with metadata, got {len(data)} bytes: {error}") from None
    return Entry(
        # Few namespaces hold many objects: one text for all of them.
        key=Key(sys.intern(found.namespace), found.name),
        version=version,
        generation=found.generation or 0,
        deleting=found.deletion_timestamp is not None,
        data=_without(data, bytes(found.managed_fields)) if found.managed_fields else data,
    )


def _without(data: bytes, managed_fields: bytes) -> bytes:
    """`data` without its `managedFields`: cut out, since writing it anew would cost ten times as much."""
    start = data.find(_KEY_OF_MANAGED_FIELDS)
    inner = start + len(_KEY_OF_MANAGED_FIELDS)
    end = inner + len(managed_fields)
    is_there = start >= 0 and data.startswith(managed_fields, inner)
    if not is_there or data.find(_KEY_OF_MANAGED_FIELDS, end) >= 0:  # laid out otherwise, or others have the key too
        return _without_by_decoding(data)
    if data[end : end + 1] == b",":
        return data[:start] + data[end + 1 :]
    return data[: start - (data[start - 1 : start] == b",")] + data[end:]


def _without_by_decoding(data: bytes) -> bytes:
    found = msgspec.json.decode(data)
    found["metadata"].pop("managedFields", None)
    return msgspec.json.encode(found)


class _Wanted(msgspec.Struct, rename="camel"):
    """Which object it is, and what its owner can ask for beside the spec."""

    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[dict[str, Any]] | None = None


class _WantedHead(msgspec.Struct):
    metadata: _Wanted


_wanted = msgspec.json.Decoder(_WantedHead)


def only_status_differs(old: Entry, new: Entry) -> bool:
    """Whether nothing was asked of the object between the two: the spec, and what is set in the metadata, are the same.

    Only kinds that count generations tell; of all others every version is new.
    """
    if old.generation != new.generation or not new.generation or old.deleting != new.deleting:
        return False
    return bool(_wanted.decode(old.data) == _wanted.decode(new.data))
