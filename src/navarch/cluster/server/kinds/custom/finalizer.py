"""The finalizer of CustomResourceDefinitions: deletes the custom objects before the definition."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from navarch._base.clock import Clock
from navarch.api import format_time, truncate_to_seconds
from navarch.cluster.server.kinds.custom.definitions import FINALIZER
from navarch.cluster.server.kinds.custom.status import TERMINATING, condition, with_condition
from navarch.cluster.server.objects.registry import decoded
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.cluster.storage import Storage, StorageError

_log = logging.getLogger("navarch.cluster.server")
_AGAIN_SECONDS: Final = 1.0
_IN_PROGRESS: Final = condition(
    TERMINATING, True, "InstanceDeletionInProgress", "CustomResource deletion is in progress"
)
_COMPLETED: Final = condition(TERMINATING, False, "InstanceDeletionCompleted", "removed all instances")


class DefinitionWriter(Protocol):
    """Writes CRDs and deletes custom objects as the server's own user."""

    async def write(self, definition: Json, status: Json) -> Json:
        """Returns the CRD with a new status; raises a 409 StatusError if it has changed since it was read."""
        ...

    async def delete_objects(self, resource: ResourceType) -> None:
        """Deletes all objects of a resource; some may wait for their finalizers."""
        ...


class DefinitionFinalizer:
    """Deletes the objects of a CRD, waits for those that have finalizers, and removes the finalizer of the CRD.

    `served` holds one of the resource types that the CRD was served as; it is empty for a CRD that never was.
    """

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        writer: DefinitionWriter,
        definition: Json,
        served: Sequence[ResourceType],
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._writer = writer
        self._name = definition["metadata"]["name"]
        self._uid = definition["metadata"]["uid"]
        self._key = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{self._name}"
        self._resource = served[0] if served else None

    async def run(self) -> None:
        """Returns when the CRD has lost its finalizer, or is gone. What fails is tried again."""
        while True:
            try:
                if await self._is_done():
                    return
            except StorageError as error:
                _log.warning(
                    "the finalizer of CustomResourceDefinition %s failed on the storage: %s; retried in 1 s",
                    self._name,
                    error,
                )
            await self._clock.sleep(_AGAIN_SECONDS)

    async def _is_done(self) -> bool:
        definition = await self._current()
        if definition is None:
            return True
        try:
            if self._resource is not None:
                await self._set(definition, _IN_PROGRESS)
                await self._writer.delete_objects(self._resource)
                await self._none_left(self._resource)
            return await self._released()
        except StatusError as refusal:
            if refusal.reason != "Conflict":
                await self._failed(refusal)
            return False

    async def _current(self) -> Json | None:
        """The CRD, as long as it still waits for this."""
        stored = await self._storage.get(self._key)
        if stored is None:
            return None
        metadata = (definition := decoded(stored))["metadata"]
        return definition if metadata["uid"] == self._uid and FINALIZER in metadata.get("finalizers", ()) else None

    async def _set(self, definition: Json, wanted: Json) -> Json:
        status = with_condition(definition["status"], wanted, self._now())
        return definition if status == definition["status"] else await self._writer.write(definition, status)

    async def _none_left(self, resource: ResourceType) -> None:
        """Returns when no object is left."""
        storage = self._storage
        page = await storage.page(resource.prefix(), limit=1)
        async with storage.watch(resource.prefix(), after=page.revision) as watcher:
            while page.items:
                await watcher.wait()
                watcher.ready()
                page = await storage.page(resource.prefix(), limit=1)

    async def _released(self) -> bool:
        """Takes the finalizer away: with the last one, the CRD goes."""
        definition = await self._current()
        if definition is None:
            return True
        metadata = definition["metadata"]
        left = [name for name in metadata["finalizers"] if name != FINALIZER]
        await self._set({**definition, "metadata": {**metadata, "finalizers": left}}, _COMPLETED)
        return True

    async def _failed(self, refusal: StatusError) -> None:
        definition = await self._current()
        if definition is not None:
            said = f"could not delete all CustomResources: {refusal.message}"
            await self._set(definition, condition(TERMINATING, True, "InstanceDeletionFailed", said))

    def _now(self) -> str:
        return format_time(truncate_to_seconds(self._clock.now()))
