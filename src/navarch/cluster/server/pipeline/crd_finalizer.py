"""Finalizes a CustomResourceDefinition: deletes its objects, then removes its finalizer."""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from navarch.api import format_time, truncate_to_seconds
from navarch.cluster.server.kinds.custom.definitions import FINALIZER
from navarch.cluster.server.kinds.custom.status import TERMINATING, condition, with_condition
from navarch.cluster.server.objects.registry import decoded
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.endpoints.call import Kernel, ResourceCall
from navarch.cluster.server.pipeline.endpoints.delete import delete_all
from navarch.cluster.server.pipeline.endpoints.write import update
from navarch.cluster.server.wire.request import ApiRequest, Json, RequestInfo, User
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.cluster.storage import StorageError

_SERVER: Final = User("system:apiserver", groups=("system:masters", "system:authenticated"))
_HEADERS: Final = {"user-agent": "kube-apiserver", "content-type": "application/json"}
_AGAIN_SECONDS: Final = 1.0
_IN_PROGRESS: Final = condition(
    TERMINATING, True, "InstanceDeletionInProgress", "CustomResource deletion is in progress"
)
_COMPLETED: Final = condition(TERMINATING, False, "InstanceDeletionCompleted", "removed all instances")


class Statuses:
    """Writes the statuses of CRDs, and deletes their objects, as the server's own user."""

    def __init__(self, kernel: Kernel, definitions: ResourceType) -> None:
        self._kernel = kernel
        self._definitions = definitions

    async def write(self, definition: Json, status: Json) -> Json:
        """The CRD with a new status; refuses with 409 if it has changed since it was read."""
        body = msgspec.json.encode({**definition, "status": status})
        reply = await update(self._call("PUT", self._definitions, definition["metadata"]["name"], "status", body))
        written: Json = msgspec.json.decode(reply.body)
        return written

    async def delete_objects(self, resource: ResourceType) -> None:
        """Deletes all objects of a resource; some may wait for their finalizers."""
        await delete_all(self._call("DELETE", resource, "", "", b""))

    def _call(self, method: str, resource: ResourceType, name: str, subresource: str, body: bytes) -> ResourceCall:
        verb = "update" if method == "PUT" else "deletecollection"
        path = f"/apis/{resource.api_version}/{resource.plural}"
        request = ApiRequest(method=method, path=path, headers=_HEADERS, body=body)
        info = RequestInfo(verb, path, resource.group, resource.version, "", resource.plural, subresource, name)
        return ResourceCall(self._kernel, request, info, resource, _SERVER)


_log = logging.getLogger("navarch.cluster.server")


class Cleanup:
    """Deletes the objects of a CRD, waits for those that have finalizers, and lets the CRD go.

    `resource` is one of those it was served as; None if it never was.
    """

    def __init__(self, kernel: Kernel, statuses: Statuses, definition: Json, resource: ResourceType | None) -> None:
        self._kernel = kernel
        self._statuses = statuses
        self._name = definition["metadata"]["name"]
        self._uid = definition["metadata"]["uid"]
        self._key = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{self._name}"
        self._resource = resource

    async def run(self) -> None:
        """Returns when the CRD has lost its finalizer, or is gone. What fails is tried again."""
        while True:
            try:
                if await self._is_done():
                    return
            except StorageError as error:
                _log.warning("the end of %s waits for the storage: %s", self._name, error)
            await self._kernel.clock.sleep(_AGAIN_SECONDS)

    async def _is_done(self) -> bool:
        definition = await self._current()
        if definition is None:
            return True
        try:
            if self._resource is not None:
                await self._set(definition, _IN_PROGRESS)
                await self._statuses.delete_objects(self._resource)
                await self._none_left(self._resource)
            return await self._released()
        except StatusError as refusal:
            if refusal.reason != "Conflict":
                await self._failed(refusal)
            return False

    async def _current(self) -> Json | None:
        """The CRD, as long as it still waits for this."""
        stored = await self._kernel.registry.storage.get(self._key)
        if stored is None:
            return None
        metadata = (definition := decoded(stored))["metadata"]
        return definition if metadata["uid"] == self._uid and FINALIZER in metadata.get("finalizers", ()) else None

    async def _set(self, definition: Json, wanted: Json) -> Json:
        status = with_condition(definition["status"], wanted, self._now())
        return definition if status == definition["status"] else await self._statuses.write(definition, status)

    async def _none_left(self, resource: ResourceType) -> None:
        """Returns when no object is left."""
        storage = self._kernel.registry.storage
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
        return format_time(truncate_to_seconds(self._kernel.clock.now()))
