"""Objects that admission goes by, as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from navarch.cluster.server.wire.request import Json

__all__ = ["Compiled", "Kept", "Made"]

_T = TypeVar("_T")


class Kept:
    """Every object of one kind that has no namespace, as far as it was told: `changed` is what a `StorageReflector` calls.

    `revision` grows with each change, so that what is made from the objects is made anew only then.
    """

    __slots__ = ("_objects", "revision")

    def __init__(self) -> None:
        self.revision = 0
        self._objects: dict[str, Json] = {}

    def changed(self, old: Json | None, new: Json | None) -> None:
        """An object was written (`old` is None if it is new) or deleted (`new` is None)."""
        if old is not None:
            self._objects.pop(old["metadata"]["name"], None)
        if new is not None:
            self._objects[new["metadata"]["name"]] = new
        self.revision += 1

    def in_order(self) -> list[Json]:
        """The objects, by name."""
        return [self._objects[name] for name in sorted(self._objects)]


class Made(Generic[_T]):
    """What is made of each of some objects: once, as long as the object does not change."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[Json], _T]) -> None:
        self._make = make
        self._known: dict[int, tuple[Json, _T]] = {}

    def of(self, documents: Iterable[Json]) -> list[_T]:
        """One for each document; those of documents that are not given any more are dropped."""
        known = {id(each): self._known.get(id(each)) or (each, self._make(each)) for each in documents}
        self._known = known
        return [made for _, made in known.values()]


class Compiled(Generic[_T]):
    """What is made of the objects of some kinds: once for each of their revisions."""

    __slots__ = ("_kept", "_make", "_revision", "_value")

    def __init__(self, make: Callable[[], _T], *kept: Kept) -> None:
        self._make = make
        self._kept = kept
        self._revision = -1
        self._value: _T

    def current(self) -> _T:
        """As of now."""
        revision = 0
        for kept in self._kept:
            revision += kept.revision
        if revision != self._revision:
            self._value = self._make()
            self._revision = revision
        return self._value
