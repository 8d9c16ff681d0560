"""Stored objects as they are seen: with their resource version, and in the version of the API that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from navarch.cluster.server.registry import decoded, with_version
from navarch.cluster.server.request import Json
from navarch.cluster.server.types import ResourceType
from navarch.cluster.storage import Stored

__all__ = ["seen", "seen_all", "stored_form", "value_of"]


async def seen(resource: ResourceType, stored: Stored) -> bytes:
    """One object as JSON."""
    return (await seen_all(resource, (stored,)))[0]


async def seen_all(resource: ResourceType, found: Sequence[Stored]) -> list[bytes]:
    """Objects as JSON. Those of kinds with one form are not even decoded."""
    if resource.convert is None:
        return [with_version(stored.value, stored.revision) for stored in found]
    values = await _converted(resource, [decoded(stored) for stored in found], resource.api_version)
    return [msgspec.json.encode(value) for value in values]


async def value_of(resource: ResourceType, stored: Stored) -> Json:
    """One object as a value."""
    value = decoded(stored)
    if resource.convert is None:
        return value
    return (await _converted(resource, [value], resource.api_version))[0]


async def stored_form(resource: ResourceType, value: Json) -> Json:
    """The value in the version that is stored."""
    if resource.convert is None or resource.storage_version in {"", resource.version}:
        return value
    group = f"{resource.group}/" if resource.group else ""
    return (await _converted(resource, [value], f"{group}{resource.storage_version}"))[0]


async def _converted(resource: ResourceType, values: list[Json], api_version: str) -> list[Json]:
    """Those that are in another version are converted together."""
    others = [value for value in values if value["apiVersion"] != api_version]
    if not others:
        return values
    assert resource.convert is not None
    converted = iter(await resource.convert(others, api_version))
    return [value if value["apiVersion"] == api_version else next(converted) for value in values]
