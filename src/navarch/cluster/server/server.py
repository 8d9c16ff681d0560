"""`ApiServer`: from a request to a reply."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from navarch.cluster.server.endpoints import read, removal, write
from navarch.cluster.server.endpoints.call import Call, Kernel
from navarch.cluster.server.endpoints.patch import patch
from navarch.cluster.server.refusal import Refusal, forbidden, method_not_allowed, unauthorized
from navarch.cluster.server.request import ApiRequest, Reply, RequestInfo, User, request_info
from navarch.cluster.storage import StorageError

__all__ = ["ApiServer", "Endpoint", "Page", "Parts"]

_log = logging.getLogger("navarch.cluster.server")

Endpoint = Callable[[Call], Awaitable[Reply]]
"""Serves a subresource that is more than a part of its object: scale, eviction, token."""

Page = Callable[[ApiRequest], Reply]
"""Serves a path that is no resource: discovery, OpenAPI, version, health."""


class Authenticator(Protocol):
    """Who asks."""

    async def authenticate(self, request: ApiRequest) -> User | None:
        """The user; None if a credential was given that nobody knows."""
        ...

    async def impersonated(self, request: ApiRequest, user: User) -> User:
        """The user as whom the request is to be taken; refuses with 403 whoever may not."""
        ...


class Authorizer(Protocol):
    """Who may what."""

    def why_not(self, user: User, info: RequestInfo) -> str | None:
        """None if it is allowed, else why it is not, in Kubernetes' words."""
        ...


class Audit(Protocol):
    """Who did what."""

    def completed(self, request: ApiRequest, info: RequestInfo, user: User | None, code: int, seconds: float) -> None:
        """A request was answered."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a server is put together from. `endpoints` are by group, resource and subresource."""

    kernel: Kernel
    authenticator: Authenticator
    authorizer: Authorizer
    audit: Audit
    endpoints: Mapping[tuple[str, str, str], Endpoint]
    pages: Page


_VERBS: dict[str, Endpoint] = {
    "get": read.get,
    "list": read.list_all,
    "watch": read.watch,
    "create": write.create,
    "update": write.update,
    "patch": patch,
    "delete": removal.delete,
    "deletecollection": removal.delete_all,
}


class ApiServer:
    """Kubernetes' API. `handle` never raises but for cancellation."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._clock = parts.kernel.clock

    async def handle(self, request: ApiRequest) -> Reply:
        """The answer to a request. What goes wrong is an answer too."""
        started, info, user = self._clock.monotonic(), request_info(request), None
        try:
            user = await self._who(request)
            reply = await self._answer(request, info, user)
        except Refusal as refusal:
            reply = _refused(refusal)
        except StorageError as error:
            reply = _refused(Refusal(503, "ServiceUnavailable", f"the storage failed: {error}"))
        except Exception:  # noqa: BLE001 - whatever was overlooked must not end the server
            _log.exception("%s %s failed", request.method, request.path)
            reply = _refused(Refusal(500, "InternalError", "an error on the server has prevented the request"))
        self._parts.audit.completed(request, info, user, reply.status, self._clock.monotonic() - started)
        return reply

    async def _who(self, request: ApiRequest) -> User:
        user = await self._parts.authenticator.authenticate(request)
        if user is None:
            raise unauthorized()
        return await self._parts.authenticator.impersonated(request, user)

    async def _answer(self, request: ApiRequest, info: RequestInfo, user: User) -> Reply:
        why_not = self._parts.authorizer.why_not(user, info)
        if why_not is not None:
            raise _forbidden(info, why_not)
        resource = self._parts.kernel.catalog.find(info.group, info.version, info.resource)
        if resource is None:
            return self._parts.pages(request)
        call = Call(self._parts.kernel, request, _placed(info, resource.namespaced), resource, user)
        return await self._endpoint(call)(call)

    def _endpoint(self, call: Call) -> Endpoint:
        """By verb; a subresource is served by an endpoint of its own, or as a part of its object."""
        info, resource = call.info, call.resource
        if not info.subresource:
            if info.verb not in resource.verbs:
                raise method_not_allowed()
            return _VERBS[info.verb]
        subresource = resource.subresources.get(info.subresource)
        if subresource is None:
            raise Refusal(404, "NotFound", "the server could not find the requested resource", details={})
        if info.verb not in subresource.verbs:
            raise method_not_allowed()
        own = self._parts.endpoints.get((resource.group, resource.plural, info.subresource))
        own = own or self._parts.endpoints.get(("*", "*", info.subresource))
        return own or _VERBS[info.verb]


def _placed(info: RequestInfo, namespaced: bool) -> RequestInfo:
    """`/api/v1/namespaces/a` is about the namespace a, which itself is in none."""
    if namespaced or not info.namespace:
        return info
    return replace(info, namespace="")


def _forbidden(info: RequestInfo, why: str) -> Refusal:
    if info.is_resource:
        return forbidden(info.group, info.resource, info.name, why)
    return Refusal(403, "Forbidden", f"forbidden: {why}", details={})


def _refused(refusal: Refusal) -> Reply:
    return Reply(refusal.code, msgspec.json.encode(refusal.status()), headers=refusal.headers)
