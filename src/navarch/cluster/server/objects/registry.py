"""Objects in storage: bytes there, JSON values here, and the resource version between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, already_exists, conflict, not_found
from navarch.cluster.storage import ChangedError, Storage, Stored, TooLargeError

T = TypeVar("T")
CHANGED = "the object has been modified; please apply your changes to the latest version and try again"
_METADATA = b'"metadata":{'
_FIRST = ("apiVersion", "kind", "metadata")
_TRIES: Final = 20
_LARGEST: Final = 1536 * 1024
"""Bytes of a stored object, as etcd has it."""


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


class WriteConflictError(StatusError):
    """409: somebody else wrote what was read before it could be written. Who does not insist on it may try again."""

    def __init__(self, resource: ResourceType, name: str) -> None:
        refused = conflict(resource.group, resource.plural, name, CHANGED)
        super().__init__(refused.code, refused.reason, refused.message, details=refused.details)


async def retry_on_conflict(step: Callable[[], Awaitable[T]]) -> T:
    """What the step gives; it is taken again, from its reading on, when it was overtaken. Others' faults it does not mend."""
    for _ in range(_TRIES - 1):
        try:
            return await step()
        except WriteConflictError:
            continue
    return await step()


def encoded(value: Json) -> bytes:
    """A value as it is stored: `apiVersion`, `kind` and `metadata` first, without its resource version.

    Raises TooLargeError, whatever the store: patch by patch an object could grow beyond what any request may be.
    """
    metadata = {key: item for key, item in value["metadata"].items() if key != "resourceVersion"}
    ordered = {"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": metadata}
    ordered.update((key, item) for key, item in value.items() if key not in _FIRST)
    data = msgspec.json.encode(ordered)
    if len(data) > _LARGEST:
        raise TooLargeError("etcdserver: request is too large")
    return data


def with_version(value: bytes, revision: int) -> bytes:
    """Stored bytes with the resource version in their metadata."""
    place = value.index(_METADATA) + len(_METADATA)
    comma = b"" if value[place : place + 1] == b"}" else b","
    return b'%b"resourceVersion":"%d"%b%b' % (value[:place], revision, comma, value[place:])


def decoded(stored: Stored) -> Json:
    """The value with its resource version."""
    value: Json = msgspec.json.decode(stored.value)
    value["metadata"]["resourceVersion"] = str(stored.revision)
    return value


class Found(NamedTuple):
    """An object: as a value, and as it is stored."""

    value: Json
    stored: Stored


class Registry(msgspec.Struct, frozen=True):
    """Reads and writes objects of any resource, in the version they are stored in."""

    storage: Storage

    async def find(self, resource: ResourceType, namespace: str, name: str) -> Found | None:
        """The object, if there is one."""
        stored = await self.storage.get(resource.key(namespace, name))
        return None if stored is None else Found(decoded(stored), stored)

    async def get(self, resource: ResourceType, namespace: str, name: str) -> Found:
        """The object; refuses with 404."""
        found = await self.find(resource, namespace, name)
        if found is None:
            raise not_found(resource.group, resource.plural, name)
        return found

    async def refuse_existing(self, resource: ResourceType, namespace: str, name: str) -> None:
        """409 if there is an object of that name."""
        stored = await self.storage.get(resource.key(namespace, name))
        if stored is not None:
            raise _existing(resource, name, stored)

    async def create(self, resource: ResourceType, value: Json) -> Stored:
        """Stores a new object; refuses with 409 if there is one of its name."""
        metadata = value["metadata"]
        key, data = resource.key(metadata.get("namespace", ""), metadata["name"]), encoded(value)
        try:
            revision = await self.storage.put(key, data, expected=0)
        except ChangedError as error:
            raise _existing(resource, metadata["name"], error.current) from None
        return Stored(key, data, revision)

    async def update(self, resource: ResourceType, value: Json, read: Stored) -> Stored:
        """Stores a new version of what was read; refuses with 409 if it has changed since."""
        data = encoded(value)
        if _is_same(data, read.value):
            return read
        try:
            revision = await self.storage.put(read.key, data, expected=read.revision)
        except ChangedError as error:
            raise self._changed(resource, value["metadata"]["name"], error) from None
        return Stored(read.key, data, revision)

    async def delete(self, resource: ResourceType, name: str, read: Stored) -> Stored:
        """Removes what was read; the last value at the revision of its deletion."""
        try:
            revision = await self.storage.delete(read.key, expected=read.revision)
        except ChangedError as error:
            raise self._changed(resource, name, error) from None
        return Stored(read.key, read.value, revision)

    def _changed(self, resource: ResourceType, name: str, error: ChangedError) -> StatusError:
        if error.current is None:
            return not_found(resource.group, resource.plural, name)
        return WriteConflictError(resource, name)


def _existing(resource: ResourceType, name: str, stored: Stored | None) -> StatusError:
    refusal = already_exists(resource.group, resource.plural, name)
    if stored is not None and "deletionTimestamp" in decoded(stored)["metadata"]:
        refusal.message = f"object is being deleted: {refusal.message}"
    return refusal


def _is_same(data: bytes, stored: bytes) -> bool:
    """Whether both say the same, in whatever order: what differs in nothing else is as long."""
    if len(data) != len(stored):
        return False
    return data == stored or bool(msgspec.json.decode(data) == msgspec.json.decode(stored))
