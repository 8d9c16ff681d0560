"""`Lookup`: reads from the cache without waiting, and the label selectors of such reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

from navarch.api import Key, Kind, Labels
from navarch.cache.collection import Collection
from navarch.cache.entry import Entry
from navarch.client.rest_client import LabelSelector
from navarch.client.target import Readable, kind_of
from navarch.errors import DecodeError, InvalidValueError

__all__ = ["Lookup", "matching", "selector_of"]

T = TypeVar("T")

_EVERYTHING = Labels()


class Lookup:
    """Reads the kinds that a controller declared from the cache. The objects are shared: do not change them."""

    def __init__(self, collections: Mapping[Kind, Collection[Any]]) -> None:
        self._collections = collections

    def collection(self, what: Readable[T]) -> Collection[T]:
        """Returns the objects of a declared kind; raises `InvalidValueError` for another kind."""
        kind = kind_of(what)
        found = self._collections.get(kind)
        if found is None:
            raise InvalidValueError(
                f"expected a kind that is cached, got {kind}; declare it: reads=({kind.kind},), owns or watches"
            )
        return cast(Collection[T], found)

    def get(self, what: Readable[T], name: str, *, namespace: str = "") -> T | None:
        """Returns the object of that name; None if there is none, or if it does not fit its model."""
        collection = self.collection(what)
        entry = collection.entry(Key(namespace, name))
        return next(_decoded(collection, [entry] if entry else []), None)

    def list(
        self,
        what: Readable[T],
        *,
        labels: LabelSelector = None,
        namespace: str | None = None,
        index: tuple[str, str] | None = None,
    ) -> list[T]:
        """Returns the objects that match, of one namespace or of all; `index` is the name and the value of a declared index."""
        collection = self.collection(what)
        return list(_decoded(collection, matching(collection, namespace, labels, index)))


def matching(
    collection: Collection[Any], namespace: str | None, labels: LabelSelector, index: tuple[str, str] | None
) -> list[Entry]:
    """Returns the entries of one namespace, or of all (None), with these labels and, if given, this value in an index."""
    wanted = selector_of(labels)
    if index is None:
        return collection.entries(namespace=namespace, labels=wanted)
    return [
        entry
        for entry in _indexed(collection, *index)
        if namespace in {None, entry.key.namespace} and wanted.matches(entry.labels)
    ]


def _indexed(collection: Collection[Any], name: str, value: str) -> list[Entry]:
    """Returns the entries with a value in an index; raises `InvalidValueError` if the index is not declared."""
    try:
        return collection.indexed(name, value)
    except KeyError:
        raise InvalidValueError(
            f"expected the name of an index of {collection.kind.resource}, got {name!r}; declare it: "
            f"Cached({collection.kind.kind}, indexes={{{name!r}: lambda found: [...]}})"
        ) from None


def _decoded(collection: Collection[T], entries: list[Entry]) -> Iterator[T]:
    for entry in entries:
        try:
            yield collection.view(entry)
        except DecodeError:
            continue


def selector_of(given: LabelSelector) -> Labels:
    """Returns the selector of a text, of equalities, of itself, or of None, which selects everything."""
    if not given:
        return _EVERYTHING
    if isinstance(given, Mapping):
        return Labels.of(given)
    return given if isinstance(given, Labels) else Labels(given)
