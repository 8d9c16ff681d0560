"""A finalizer: while an object has it, its deletion waits for the cleanup."""

from __future__ import annotations

from typing import NamedTuple

from navarch.api import Kind, Object
from navarch.api.names import LABEL_KEY
from navarch.client import Client, MergePatch
from navarch.errors import Conflict, NotFound

__all__ = ["Finalizer", "Written", "finalizer_name"]


def finalizer_name(operator: str, controller: str, kind: Kind) -> str:
    """A name that no other operator, and no other controller of this one, has.

    >>> finalizer_name("memcached-operator", "reconcile", Kind("cache.example.com", "v1", "Memcached", plural="memcacheds"))
    'cache.example.com/memcached-operator.reconcile'
    """
    return f"{kind.group or 'core'}/{operator}.{controller}"


class Written(NamedTuple):
    """An object after a write; `directly` if it surely is the version that follows the one that was read."""

    found: Object
    directly: bool


class Finalizer:
    """One finalizer of one controller. Adding what is there and removing what is not changes nothing.

    Raises `InvalidValueError` for a name that no server would take.
    """

    def __init__(self, name: str) -> None:
        self.name = LABEL_KEY.check(name, where="the name of a finalizer")

    def is_on(self, primary: Object) -> bool:
        """Whether the object has it."""
        return self.name in primary.metadata.finalizers

    async def add(self, client: Client, primary: Object) -> Written | None:
        """The object with the finalizer; None if it is gone, or on its way, so that nothing has to be finalized."""
        return await self._set(client, primary, present=True)

    async def remove(self, client: Client, primary: Object) -> Written | None:
        """The object without the finalizer; None if it is gone."""
        return await self._set(client, primary, present=False)

    async def _set(self, client: Client, primary: Object, *, present: bool) -> Written | None:
        """On the version that was read: whoever changed the object meanwhile is not overruled, but read first."""
        try:
            return Written(await self._patch(client, primary, present=present), directly=True)
        except NotFound:
            return None
        except Conflict:
            return await self._set_on_newer(client, primary, present=present)

    async def _set_on_newer(self, client: Client, primary: Object, *, present: bool) -> Written | None:
        """On the object as it is by now, if it still is the same one and still lacks the change."""
        try:
            newer = await client.get(type(primary), primary.name, namespace=primary.namespace or None)
            if newer.metadata.uid != primary.metadata.uid or (present and newer.metadata.deletion_timestamp):
                return None
            if self.is_on(newer) != present:
                newer = await self._patch(client, newer, present=present)
        except NotFound:
            return None
        return Written(newer, directly=False)

    async def _patch(self, client: Client, primary: Object, *, present: bool) -> Object:
        others = [name for name in primary.metadata.finalizers if name != self.name]
        finalizers = [*others, self.name] if present else others
        metadata = {"resourceVersion": primary.metadata.resource_version, "finalizers": finalizers or None}
        return await client.patch(
            type(primary), primary.name, MergePatch({"metadata": metadata}), namespace=primary.namespace or None
        )
