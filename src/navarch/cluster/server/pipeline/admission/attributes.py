"""The attributes of a request that admission decides about."""

from __future__ import annotations

from typing import Protocol

import msgspec

from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.request import Json, User

Warnings = list[str]


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """One request that wants to change something.

    `operation` is CREATE, UPDATE, DELETE or CONNECT. `value` is the object as it would be stored (None for DELETE), `old`
    as it is (None for CREATE). `options` are the request's CreateOptions, UpdateOptions, PatchOptions or DeleteOptions.
    `annotations` are those of the request's audit record, to which admission may add.
    """

    operation: str
    resource: ResourceType
    subresource: str
    namespace: str
    name: str
    value: Json | None
    old: Json | None
    options: Json
    dry_run: bool
    user: User
    annotations: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def told_name(self) -> str:
        """By what a refusal calls the object: what its name begins with, if that was not made up yet, or nothing known."""
        metadata = (self.value or {}).get("metadata") or {}
        return self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"


class Admission(Protocol):
    """Everything between authorization and storage that may change or refuse a request. Raises `StatusError`."""

    async def mutate(self, attributes: Attributes, warnings: Warnings) -> Json | None:
        """The object as admission wants it: the same if it has nothing to say. Adds to `warnings`."""
        ...

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """Refuses what must not be."""
        ...
