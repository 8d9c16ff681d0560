"""Stored objects as they are seen: with their resource version, and in the version of the API that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from navarch.cluster.server.objects.registry import Found, Registry, decoded, with_version
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.wire.request import Json
from navarch.cluster.storage import Stored

__all__ = ["seen", "seen_all", "seen_value", "stored_form", "value_of"]


async def seen(resource: ResourceType, stored: Stored) -> bytes:
    """One object as JSON."""
    return (await seen_all(resource, (stored,)))[0]


async def seen_all(resource: ResourceType, found: Sequence[Stored]) -> list[bytes]:
    """Objects as JSON. Those that are stored as they are seen are not even decoded."""
    head = b'{"apiVersion":"%b",' % resource.api_version.encode()
    convert, since = resource.convert, resource.shaped_at
    data: list[bytes | None] = [
        with_version(stored.value, stored.revision)
        if stored.revision >= since and (convert is None or stored.value.startswith(head))
        else None
        for stored in found
    ]
    if None not in data:
        return [each for each in data if each is not None]
    others = [_shaped(resource, stored) for stored, each in zip(found, data, strict=True) if each is None]
    made = iter(await _converted(resource, others, resource.api_version))
    return [msgspec.json.encode(next(made)) if each is None else each for each in data]


async def seen_value(resource: ResourceType, found: Found) -> Json:
    """What was found, as it is seen: the value that was found itself, where it is stored as it is seen."""
    if resource.convert is None and found.stored.revision >= resource.shaped_at:
        return found.value
    return await value_of(resource, found.stored)


async def value_of(resource: ResourceType, stored: Stored) -> Json:
    """One object as a value of its own."""
    value = _shaped(resource, stored)
    if resource.convert is None:
        return value
    return (await _converted(resource, [value], resource.api_version))[0]


def _shaped(resource: ResourceType, stored: Stored) -> Json:
    """The value, in today's shape even if it was stored before the schema changed."""
    value = decoded(stored)
    if stored.revision < resource.shaped_at and resource.reshape is not None:
        resource.reshape(value)
    return value


async def stored_form(resource: ResourceType, value: Json) -> Json:
    """The value in the version that is stored."""
    if resource.convert is None or resource.storage_version in {"", resource.version}:
        return value
    group = f"{resource.group}/" if resource.group else ""
    return (await _converted(resource, [value], f"{group}{resource.storage_version}"))[0]


async def _converted(resource: ResourceType, values: list[Json], api_version: str) -> list[Json]:
    """Those that are in another version are converted together."""
    others = [value for value in values if value["apiVersion"] != api_version]
    if not others or resource.convert is None:
        return values
    converted = iter(await resource.convert(others, api_version))
    return [value if value["apiVersion"] == api_version else next(converted) for value in values]


class ObjectReader:
    """ObjectReader of any resource that is served."""

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
