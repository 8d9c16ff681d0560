"""Reading from the cache where it knows, else from the server; and telling the cache what was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from navarch.api import Dynamic, Key, Kind, Object, encode
from navarch.cache import Collection, Entry, entry_of
from navarch.client import ALL, MetadataOnly
from navarch.client.core import FieldSelector, LabelSelector
from navarch.client.target import Readable, kind_of, required_object
from navarch.controller.lookup import matching, selector_of
from navarch.controller.reach import Reach, Version, Writer
from navarch.errors import DecodeError, InvalidValueError, NotFound

__all__ = [
    "Query",
    "is_last",
    "is_no_such_object",
    "kind_of_object",
    "namespace_for",
    "namespaces_for",
    "read_many",
    "read_one",
    "read_orphans",
    "read_owned",
    "tell",
    "view",
    "wire_of",
    "written_to",
]

T = TypeVar("T")

_UNKNOWN = -1  # no object has it: a write that was made on top of it is never taken for the one that directly follows


@dataclass(frozen=True, slots=True)
class Query:
    """Which objects are asked for; `index` is the name of an index and a value in it."""

    namespace: str | None
    labels: LabelSelector = None
    fields: FieldSelector = None
    index: tuple[str, str] | None = None


async def read_one(reach: Reach, what: Readable[T], key: Key) -> T | None:
    """The object, from the cache if it is kept there; None if there is none.

    A selection in the cache makes nothing invisible: what it does not have is asked of the server.
    """
    collection = _kept(reach, what, key.namespace)
    if collection is not None:
        entry = collection.entry(key)
        if entry is not None:
            return view(collection, what, entry)
        if not collection.cached.labels and not collection.cached.fields:
            return None
    try:
        return await reach.client.get(what, key.name, namespace=key.namespace or None)
    except NotFound as error:
        if not is_no_such_object(error):
            raise
        return None


async def read_many(reach: Reach, what: Readable[T], query: Query) -> list[T]:
    """The objects, from the cache if they are kept there. One that does not fit its model is logged and left out."""
    collection = None if query.fields else _kept(reach, what, query.namespace)
    if collection is None:
        _refuse_index(what, query)
        return await _listed(reach, what, query)
    return _readable(reach, collection, what, matching(collection, query.namespace, query.labels, query.index))


def read_owned(reach: Reach, what: Readable[T], uid: str, namespace: str) -> list[T]:
    """What the object of that uid controls; raises `InvalidValueError` for a kind that was not declared by `owns`.

    An owner in a namespace has children there alone: anybody may write its uid on an object of his own namespace.
    """
    collection = _owned(reach, what)
    children = collection.controlled_by(uid)
    own = [entry for entry in children if entry.key.namespace == namespace] if namespace else children
    return _readable(reach, collection, what, own)


def read_orphans(reach: Reach, what: Readable[T], namespace: str, labels: LabelSelector) -> list[T]:
    """What nobody controls; raises `InvalidValueError` for a kind that was not declared by `owns`."""
    collection, wanted = _owned(reach, what), selector_of(labels)
    orphans = [entry for entry in collection.orphans(namespace) if wanted.matches(entry.labels)]
    return _readable(reach, collection, what, orphans)


def _owned(reach: Reach, what: Readable[Any]) -> Collection[Any]:
    kind = kind_of(what)
    if kind not in reach.owned:
        raise InvalidValueError(f"expected a kind that the controller owns, got {kind}; declare owns=({kind.kind},)")
    return reach.collections[kind]


def _readable(reach: Reach, collection: Collection[Any], what: Readable[T], entries: Iterable[Entry]) -> list[T]:
    found: list[T] = []
    read = collection.view if what == collection.cached.readable else partial(view, collection, what)
    for entry in entries:
        try:
            found.append(read(entry))
        except DecodeError as error:
            reach.unreadable.tell(collection.kind, entry.key, entry.version, error)
    return found


async def _listed(reach: Reach, what: Readable[T], query: Query) -> list[T]:
    namespace = ALL if query.namespace is None else query.namespace
    pages = reach.client.list(what, namespace=namespace, labels=query.labels, fields=query.fields).pages()
    found = []
    while (page := await pages.next()) is not None:
        for data in page:
            try:
                found.append(what.from_json(data))
            except DecodeError as error:
                entry = entry_of(data)
                reach.unreadable.tell(kind_of(what), entry.key, entry.version, error)
    return found


def _kept(reach: Reach, what: Readable[Any], namespace: str | None) -> Collection[Any] | None:
    """The collection that has the objects of that namespace, or of all (None), in the form that is asked for."""
    collection = reach.collections.get(kind_of(what))
    if collection is None or isinstance(what, MetadataOnly) != collection.cached.metadata_only:
        return None
    kept = collection.namespaces is None if namespace is None else collection.keeps(namespace)
    return collection if kept else None


def _refuse_index(what: Readable[Any], query: Query) -> None:
    if query.index is not None:
        kind = kind_of(what)
        where = "all namespaces" if query.namespace is None else f"namespace {query.namespace!r}"
        raise InvalidValueError(
            f"expected {kind.resource} of {where} to be in the cache for index={query.index!r}, got a kind or a namespace "
            f"that was not declared, or fields=...; declare reads=(Cached({kind.kind}, indexes=...),)"
        )


def view(collection: Collection[Any], what: Readable[T], entry: Entry) -> T:
    """The object as `what` reads it: shared where the collection reads it likewise. Raises `DecodeError`."""
    return cast(T, collection.view(entry)) if what == collection.cached.readable else what.from_json(entry.data)


def namespace_for(kind: Kind, given: str | None, owner: str) -> str:
    """The namespace of one object: the one that was given, else the owner's; empty for kinds that have none."""
    if not kind.namespaced:
        if given:
            raise InvalidValueError(f"{kind.resource} is cluster-scoped: expected no namespace, got {given!r}")
        return ""
    if given == ALL or not (given or owner):
        raise InvalidValueError(
            f"expected one namespace for an object of {kind.resource}, got {'ALL' if given else 'none'}: "
            f"the object that is reconciled is in {owner or 'none'!r}; name the namespace"
        )
    return given or owner


def namespaces_for(kind: Kind, given: str | None, owner: str) -> str | None:
    """The namespace that is listed, None for all: the one that was given, else the owner's, else all."""
    if given == ALL or not kind.namespaced:
        return None
    return given or owner or None


async def kind_of_object(reach: Reach, target: Object | Dynamic) -> Kind:
    """The kind of an object; one without a class is found among those that were declared, else the server is asked."""
    if isinstance(required_object(target), Dynamic):
        for kind in reach.collections:
            if (kind.api_version, kind.kind) == (target.api_version, target.kind):
                return kind
    return await reach.client.discovery.kind_of(target)


def is_no_such_object(error: NotFound) -> bool:
    """Whether it is the object that is missing, and not its whole kind."""
    return error.reason == "NotFound"


class _Hold(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None
    deletion_grace_period_seconds: int | None = None


class _HeldHead(msgspec.Struct):
    metadata: _Hold


def is_last(data: bytes) -> bool:
    """Whether what was written is an object that nothing keeps: the server has deleted it with its last finalizer."""
    held = msgspec.json.decode(data, type=_HeldHead).metadata
    return bool(held.deletion_timestamp) and not held.finalizers and not held.deletion_grace_period_seconds


def written_to(reach: Reach, kind: Kind, namespace: str) -> Collection[Any] | None:
    """The collection that is to know of a write; none if the kind or the namespace is not kept, or nothing is written."""
    collection = reach.collections.get(kind)
    known = collection is not None and collection.keeps(namespace) and not reach.client.options.dry_run
    return collection if known else None


def wire_of(written: Object | Dynamic) -> bytes:
    """The bytes that the server answered with."""
    return written.__wire__ if isinstance(written, Object) else encode(written)


def tell(
    reach: Reach, key: Key, collection: Collection[Any], data: bytes, *, before: Entry | None, exact: bool = True
) -> Entry:
    """Every write passes here: the cache shows it from now on, and its echo does not trigger `key`, which wrote it.

    `before` is what the cache had when the request was sent. `exact` says that the server took the write only because
    that was the newest version, or because there was none: without that, the version that it answers with may be
    somebody else's, and its echo triggers everybody.
    """
    written = collection.cached.written(data)
    read = before.version if before else 0
    writer, version = Writer(reach.controller, key), Version(collection.kind, written.key, written.version)
    if collection.wrote(data, writer=writer, read=read if exact else _UNKNOWN):
        reach.retract(key, version)
    if reach.on_write is not None and written.version != read:
        reach.on_write(writer, version, before, written)
    held = collection.entry(written.key)
    return held if held is not None and held.version == written.version else written
