"""Stored objects that admission looks at while it judges a request."""

from __future__ import annotations

from navarch.cluster.server.objects.registry import Registry, value_of
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.wire.request import Json

__all__ = ["Objects"]


class Objects:
    """Objects of any resource that is served."""

    def __init__(self, registry: Registry, catalog: Catalog) -> None:
        self._registry = registry
        self.catalog = catalog

    async def get(self, resource: ResourceType, namespace: str, name: str) -> Json | None:
        """The object; None if there is none."""
        stored = await self._registry.storage.get(resource.key(namespace, name))
        return None if stored is None else await value_of(resource, stored)

    async def list(self, resource: ResourceType, namespace: str = "") -> list[Json]:
        """Every object of a namespace, or of all if it is empty, by their keys."""
        page = await self._registry.storage.page(resource.prefix(namespace))
        return [await value_of(resource, stored) for stored in page.items]

    def resource(self, group: str, version: str, plural: str) -> ResourceType:
        """A resource that is always served."""
        found = self.catalog.find(group, version, plural)
        assert found is not None, plural
        return found
