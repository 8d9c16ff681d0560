"""Contracts of built-in plug-ins, and the table that calls them by resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.listers import ObjectReader
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, forbidden

Resources = frozenset[tuple[str, str]]
"""Groups and plurals."""


class MutatingPlugin(Protocol):
    """A plug-in that changes objects of some resources, in place."""

    @property
    def resources(self) -> Resources:
        """The resources that the plug-in sees."""
        ...

    async def change(self, attributes: Attributes, value: Json) -> None:
        """Changes `value`, a private copy down to its `metadata` and `spec`, or raises StatusError."""
        ...


class ValidatingPlugin(Protocol):
    """A plug-in that refuses writes of some resources."""

    @property
    def resources(self) -> Resources:
        """The resources that the plug-in sees."""
        ...

    async def check(self, attributes: Attributes) -> None:
        """Raises StatusError."""
        ...


class ObjectReadingPlugin:
    """The base of plug-ins that read stored objects."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects


_Part = TypeVar("_Part", MutatingPlugin, ValidatingPlugin)


class PluginTable:
    """Calls the plug-ins of a request's resource, in their order; only for creations and updates."""

    def __init__(self, mutating: Sequence[MutatingPlugin], validating: Sequence[ValidatingPlugin]) -> None:
        self._mutating = _by_resource(mutating)
        self._validating = _by_resource(validating)

    async def mutate(self, attributes: Attributes) -> Json | None:
        """Returns the object after all changes; the same object if no plug-in looks at it."""
        resource = attributes.resource
        parts = self._mutating.get((resource.group, resource.plural))
        if not parts or attributes.value is None or attributes.subresource:
            return attributes.value
        value = _private(attributes.value)
        attributes = replace(attributes, value=value)
        for part in parts:
            await part.change(attributes, value)
        return value

    async def validate(self, attributes: Attributes) -> None:
        """Raises the StatusError of the first plug-in that refuses."""
        resource = attributes.resource
        for part in self._validating.get((resource.group, resource.plural), ()):
            if attributes.value is not None and not attributes.subresource:
                await part.check(attributes)


def _private(value: Json) -> Json:
    return {**value, "metadata": {**value["metadata"]}, "spec": {**(value.get("spec") or {})}}


def _by_resource(parts: Sequence[_Part]) -> dict[tuple[str, str], list[_Part]]:
    found: dict[tuple[str, str], list[_Part]] = {}
    for part in parts:
        for resource in part.resources:
            found.setdefault(resource, []).append(part)
    return found


PODS: Final = frozenset({("", "pods")})


def forbid(attributes: Attributes, why: str) -> StatusError:
    """403 for the object of the request."""
    return forbidden(attributes.resource.group, attributes.resource.plural, attributes.told_name, why)
