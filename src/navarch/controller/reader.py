"""Reading from the cache where it knows, else from the server; and telling the cache what was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from navarch.api import Dynamic, Key, Kind, Object
from navarch.cache import Collection, Entry, entry_of
from navarch.client import ALL, MetadataOnly
from navarch.client.core import FieldSelector, LabelSelector
from navarch.client.target import Readable, kind_of, required_object
from navarch.controller.cache_reader import matching, selector_of
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
    """Which objects are asked for; `index` is the name of an index and a value in it."""

    namespace: str | None
    labels: LabelSelector = None
    fields: FieldSelector = None
    index: tuple[str, str] | None = None


async def read_one(deps: ControllerDeps, what: Readable[T], key: Key) -> T | None:
    """The object, from the cache if it is kept there; None if there is none.

    A selection in the cache makes nothing invisible: what it does not have is asked of the server.
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
    """The objects, from the cache if they are kept there. One that does not fit its model is logged and left out."""
    collection = None if query.fields else _kept(deps, what, query.namespace)
    if collection is None:
        _refuse_index(what, query)
        return await _listed(deps, what, query)
    return _readable(deps, collection, what, matching(collection, query.namespace, query.labels, query.index))


def read_owned(deps: ControllerDeps, what: Readable[T], uid: str, namespace: str) -> list[T]:
    """What the object of that uid controls; raises `InvalidValueError` for a kind that was not declared by `owns`.

    An owner in a namespace has children there alone: anybody may write its uid on an object of his own namespace.
    """
    collection = _owned(deps, what)
    children = collection.controlled_by(uid)
    own = [entry for entry in children if entry.key.namespace == namespace] if namespace else children
    return _readable(deps, collection, what, own)


def read_orphans(deps: ControllerDeps, what: Readable[T], namespace: str, labels: LabelSelector) -> list[T]:
    """What nobody controls; raises `InvalidValueError` for a kind that was not declared by `owns`."""
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
    pages = deps.client.list(what, namespace=namespace, labels=query.labels, fields=query.fields).pages()
    found = []
    while (page := await pages.next()) is not None:
        for data in page:
            try:
                found.append(what.from_json(data))
            except DecodeError as error:
                entry = entry_of(data)
                deps.decode_errors.report(kind_of(what), entry.key, entry.version, error)
    return found


def _kept(deps: ControllerDeps, what: Readable[Any], namespace: str | None) -> Collection[Any] | None:
    """The collection that has the objects of that namespace, or of all (None), in the form that is asked for."""
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


async def kind_of_object(deps: ControllerDeps, target: Object | Dynamic) -> Kind:
    """The kind of an object; one without a class is found among those that were declared, else the server is asked."""
    if isinstance(required_object(target), Dynamic):
        for kind in deps.collections:
            if (kind.api_version, kind.kind) == (target.api_version, target.kind):
                return kind
    return await deps.client.discovery.kind_of(target)


def is_no_such_object(error: NotFound) -> bool:
    """Whether it is the object that is missing, and not its whole kind."""
    return error.reason == "NotFound"
