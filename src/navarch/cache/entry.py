"""An object as the cache keeps it: its bytes, and the metadata that identifies it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from navarch.api import Key
from navarch.client.list_body import ObjectHead, head_of
from navarch.errors import DecodeError

UNKNOWN = -1
"""A version that no object has."""

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
    """Decodes labels and owners; cached, since indexes, controllers and their mappings read the same version
    in turn.
    """
    return _decode_related(data).metadata


class Entry(msgspec.Struct, gc=False, eq=False):
    """One version of one object. `previous` is the version that the watch showed just before it, 0 if none.

    After a list it is `UNKNOWN`: other versions may lie between.

    Uid, labels and owners are decoded from the bytes on access: they would take more memory than everything else beside
    the bytes, and an index has the frequent ones.
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
        """The object's uid."""
        return _related(self.data).uid

    @property
    def labels(self) -> Mapping[str, str]:
        """The object's labels."""
        return _related(self.data).labels or _NONE

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The object's owners."""
        return _related(self.data).owner_references or ()

    @property
    def controller(self) -> Owner | None:
        """The owner that controls the object; None if there is none."""
        return next((owner for owner in self.owners if owner.controller), None)


def is_related_alike(old: Entry, new: Entry) -> bool:
    """Returns True if two versions of an object have the same labels and owners."""
    return bool(_related(old.data) == _related(new.data))


_KEY_OF_MANAGED_FIELDS = b'"managedFields":'


def entry_of(data: bytes, head: ObjectHead | None = None) -> Entry:
    """Returns the entry for an object's JSON; `head` is its decoded metadata, if it is known already.

    Raises `DecodeError` if it is no Kubernetes object.
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
    """Returns `data` without its `managedFields`: cut out, since encoding it again would cost ten times as much."""
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


class _DesiredFields(msgspec.Struct, rename="camel"):
    """The fields of an object that express its owner's intent."""

    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[dict[str, Any]] | None = None


class _WantedHead(msgspec.Struct):
    metadata: _DesiredFields


_wanted = msgspec.json.Decoder(_WantedHead)


def only_status_differs(old: Entry, new: Entry) -> bool:
    """Returns True if the spec, and the fields of the metadata that users set, are equal in both versions.

    Only kinds with a generation allow it; for all others every version counts as changed.
    """
    if old.generation != new.generation or not new.generation or old.deleting != new.deleting:
        return False
    return bool(_wanted.decode(old.data) == _wanted.decode(new.data))
