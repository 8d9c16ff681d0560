"""The stored objects that admission reads, and caches of what is compiled from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Generic, TypeVar

import msgspec

from navarch.cluster.server.objects.registry import Registry, value_of
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.wire.budget import WEIGHT_OF_EXPRESSIONS, current_budget, opened, unlimited_budget
from navarch.cluster.server.wire.request import Json

_T = TypeVar("_T")
_BYTES_OF_A_NODE: Final = 64
"""Stored objects are decoded much faster than a body is: no part of them is checked again."""


class ObjectReader:
    """Reads stored objects of any served resource."""

    def __init__(self, registry: Registry, catalog: Catalog) -> None:
        self._registry = registry
        self.catalog = catalog

    async def get(self, resource: ResourceType, namespace: str, name: str) -> Json | None:
        """Returns the object; None if there is none."""
        stored = await self._registry.storage.get(resource.key(namespace, name))
        return None if stored is None else await value_of(resource, stored)

    async def list(self, resource: ResourceType, namespace: str = "") -> list[Json]:
        """Returns every object of a namespace, or of all namespaces if it is empty, by their keys.

        Charges them to the request before they are decoded: whoever asks for a pod may have written very many.
        """
        page = await self._registry.storage.page(resource.prefix(namespace))
        current_budget().charge_nodes(sum(1 + len(stored.value) // _BYTES_OF_A_NODE for stored in page.items))
        return [await value_of(resource, stored) for stored in page.items]

    def resource(self, group: str, version: str, plural: str) -> ResourceType:
        """Returns a resource that is always served."""
        found = self.catalog.find(group, version, plural)
        assert found is not None, plural
        return found


class ObjectLister:
    """Lists every object of one cluster-scoped kind; a `StorageReflector` calls `changed`.

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
        """Returns the objects, sorted by name."""
        return [self._objects[name] for name in sorted(self._objects)]


class CompiledObjects(Generic[_T]):
    """Compiles each object once, as long as the object does not change."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[Json], _T]) -> None:
        self._make = make
        self._known: dict[int, tuple[Json, _T]] = {}

    def of(self, documents: Iterable[Json]) -> list[_T]:
        """One for each document; those of documents that are not given any more are dropped."""
        known = {id(each): self._known.get(id(each)) or (each, self._make(each)) for each in documents}
        self._known = known
        return [made for _, made in known.values()]


class LatestCompiled(Generic[_T]):
    """Compiles the objects of some listers once for each revision of the listers; `make` gets those of each, by name."""

    __slots__ = ("_kept", "_make", "_revision", "_value")

    def __init__(self, make: Callable[..., _T], *kept: ObjectLister) -> None:
        self._make = make
        self._kept = kept
        self._revision = -1
        self._value: _T

    async def current(self) -> _T:
        """Returns the compiled value of the current revision, at nobody's cost."""
        revision = 0
        for kept in self._kept:
            revision += kept.revision
        if revision != self._revision:
            documents = [kept.in_order() for kept in self._kept]
            size = WEIGHT_OF_EXPRESSIONS * len(msgspec.json.encode(documents))
            self._value = await current_budget().run(partial(self._compiled, documents), size=size)
            self._revision = revision
        return self._value

    def _compiled(self, documents: list[list[Json]]) -> _T:
        with opened(unlimited_budget()):
            return self._make(*documents)
