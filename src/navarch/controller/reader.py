"""Reads of a reconciler: from the cache where it keeps the kind, else from the server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from navarch.api import Dynamic, Key, Kind, Object
from navarch.cache import Collection, Entry, entry_of
from navarch.cache.lookup import matching, selector_of
from navarch.client import ALL, MetadataOnly
from navarch.client.rest_client import FieldSelector, LabelSelector
from navarch.client.target import Readable, kind_of, required_object
from navarch.controller.deps import ControllerDeps
from navarch.controller.write_recorder import collection_for, is_last, record_write, wire_of
from navarch.errors import DecodeError, InvalidValueError, NotFound

__all__ = [
    "Query",
    "collection_for",
    "is_last",
    "is_no_such_object",
    "kind_of_object",
    "namespace_for",
    "namespaces_for",
    "read_many",
    "read_one",
    "read_orphans",
    "read_owned",
    "record_write",
    "view",
    "wire_of",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query:
    """The objects of a list; `index` is the name of an index and a value in it."""

    namespace: str | None
    labels: LabelSelector = None
    fields: FieldSelector = None
    index: tuple[str, str] | None = None


async def read_one(deps: ControllerDeps, what: Readable[T], key: Key) -> T | None:
    """Returns the object, from the cache if it keeps it; None if it does not exist.

    An object outside of the cache's selection is read from the server.
    """
    collection = _kept(deps, what, key.namespace)
    if collection is not None:
        entry = collection.entry(key)
        if entry is not None:
            return view(collection, what, entry)
        if not collection.cached.labels and not collection.cached.fields:
            return None
    try:
        return await deps.client.get(what, key.name, namespace=key.namespace or None)
    except NotFound as error:
        if not is_no_such_object(error):
            raise
        return None


async def read_many(deps: ControllerDeps, what: Readable[T], query: Query) -> list[T]:
    """Returns the objects, from the cache if it keeps them. An object that does not fit its model is logged and left out."""
    collection = None if query.fields else _kept(deps, what, query.namespace)
    if collection is None:
        _refuse_index(what, query)
        return await _listed(deps, what, query)
    return _readable(deps, collection, what, matching(collection, query.namespace, query.labels, query.index))


def read_owned(deps: ControllerDeps, what: Readable[T], uid: str, namespace: str) -> list[T]:
    """Returns what the object of that uid controls; raises `InvalidValueError` for a kind that is not in `owns`.

    The children of an owner with a namespace are in that namespace: anybody may write its uid on objects of another one.
    """
    collection = _owned(deps, what)
    children = collection.controlled_by(uid)
    own = [entry for entry in children if entry.key.namespace == namespace] if namespace else children
    return _readable(deps, collection, what, own)


def read_orphans(deps: ControllerDeps, what: Readable[T], namespace: str, labels: LabelSelector) -> list[T]:
    """Returns the objects without a controller; raises `InvalidValueError` for a kind that is not in `owns`."""
    collection, wanted = _owned(deps, what), selector_of(labels)
    orphans = [entry for entry in collection.orphans(namespace) if wanted.matches(entry.labels)]
    return _readable(deps, collection, what, orphans)


def _owned(deps: ControllerDeps, what: Readable[Any]) -> Collection[Any]:
    kind = kind_of(what)
    if kind not in deps.owned:
        raise InvalidValueError(f"expected a kind that the controller owns, got {kind}; declare owns=({kind.kind},)")
    return deps.collections[kind]


def _readable(
    deps: ControllerDeps, collection: Collection[Any], what: Readable[T], entries: Iterable[Entry]
) -> list[T]:
    found: list[T] = []
    read = collection.view if what == collection.cached.readable else partial(view, collection, what)
    for entry in entries:
        try:
            found.append(read(entry))
        except DecodeError as error:
            deps.decode_errors.report(collection.kind, entry.key, entry.version, error)
    return found


async def _listed(deps: ControllerDeps, what: Readable[T], query: Query) -> list[T]:
    namespace = ALL if query.namespace is None else query.namespace
    listed, _ = await deps.client.list(what, namespace=namespace, labels=query.labels, fields=query.fields).data()
    found = []
    for data in listed:
        try:
            found.append(what.from_json(data))
        except DecodeError as error:
            entry = entry_of(data)
            deps.decode_errors.report(kind_of(what), entry.key, entry.version, error)
    return found


def _kept(deps: ControllerDeps, what: Readable[Any], namespace: str | None) -> Collection[Any] | None:
    """Returns the collection of that namespace, or of all (None), if it keeps the kind in the requested form."""
    collection = deps.collections.get(kind_of(what))
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
    """Returns the object as `what` decodes it: shared if the collection decodes it alike. Raises `DecodeError`."""
    return cast(T, collection.view(entry)) if what == collection.cached.readable else what.from_json(entry.data)


def namespace_for(kind: Kind, given: str | None, owner: str) -> str:
    """Returns the namespace of one object: the given one, else the owner's; empty for cluster-scoped kinds."""
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
    """Returns the namespace to list, None for all: the given one, else the owner's, else all."""
    if given == ALL or not kind.namespaced:
        return None
    return given or owner or None


async def kind_of_object(deps: ControllerDeps, target: Object | Dynamic) -> Kind:
    """Returns the kind of an object; one without a class is looked up among the declared kinds, then on the server."""
    if isinstance(required_object(target), Dynamic):
        for kind in deps.collections:
            if (kind.api_version, kind.kind) == (target.api_version, target.kind):
                return kind
    return await deps.client.discovery.kind_of(target)


def is_no_such_object(error: NotFound) -> bool:
    """Returns whether the object is missing, and not its whole kind."""
    return error.reason == "NotFound"
