"""Writes of CRDs by the server itself, which go the way of all writes."""

from __future__ import annotations

from typing import Final

import msgspec

from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.endpoints.call import Call, Kernel
from navarch.cluster.server.pipeline.endpoints.removal import delete_all
from navarch.cluster.server.pipeline.endpoints.write import update
from navarch.cluster.server.wire.request import ApiRequest, Json, RequestInfo, User

__all__ = ["Statuses"]

_SERVER: Final = User("system:apiserver", groups=("system:masters", "system:authenticated"))
_HEADERS: Final = {"user-agent": "kube-apiserver", "content-type": "application/json"}


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

    def _call(self, method: str, resource: ResourceType, name: str, subresource: str, body: bytes) -> Call:
        verb = "update" if method == "PUT" else "deletecollection"
        path = f"/apis/{resource.api_version}/{resource.plural}"
        request = ApiRequest(method=method, path=path, headers=_HEADERS, body=body)
        info = RequestInfo(verb, path, resource.group, resource.version, "", resource.plural, subresource, name)
        return Call(self._kernel, request, info, resource, _SERVER)
