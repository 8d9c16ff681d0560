"""`ApiServer`: answers requests; refresh, authentication, authorization, then the endpoint."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

import msgspec
from msgspec.structs import replace

from navarch._base.clock import Clock
from navarch.cluster.server.pipeline.authorization.authorizer import attributes_of
from navarch.cluster.server.pipeline.endpoints import delete, read, write
from navarch.cluster.server.pipeline.endpoints.call import Kernel, ResourceCall, random_uuid
from navarch.cluster.server.pipeline.endpoints.options import refuse_malformed_timeout
from navarch.cluster.server.pipeline.endpoints.patch import patch
from navarch.cluster.server.pipeline.nonresource.pages import laid_out
from navarch.cluster.server.pipeline.routing import check_route, has_route, refuse_unknown_part
from navarch.cluster.server.wire.budget import RequestBudget, close_budget, open_budget
from navarch.cluster.server.wire.request import (
    ApiRequest,
    Reply,
    RequestInfo,
    Socket,
    User,
    as_watch,
    bounded_warnings,
    request_info,
)
from navarch.cluster.server.wire.status_errors import UNEXPECTED, StatusError, forbidden, unauthorized
from navarch.cluster.storage import StorageError, TooLargeError, WriteError

_log = logging.getLogger("navarch.cluster.server")

Endpoint = Callable[[ResourceCall], Awaitable[Reply]]
"""Serves a subresource that is more than a part of its object: scale, eviction, token."""

Page = Callable[[ApiRequest], Awaitable[Reply]]
"""Serves a path that is no resource: discovery, OpenAPI, version, health."""
_VERBS: dict[str, Endpoint] = {
    "get": read.get,
    "list": read.list_all,
    "watch": read.watch,
    "create": write.create,
    "update": write.update,
    "patch": patch,
    "delete": delete.delete,
    "deletecollection": delete.delete_all,
}


class RequestAuthenticator(Protocol):
    """Finds the user of a request."""

    async def authenticate(self, request: ApiRequest) -> User | None:
        """The user; None if a credential was given that nobody knows."""
        ...


class RequestImpersonator(Protocol):
    """Finds the user that a request acts as."""

    def acting_user(self, request: ApiRequest, user: User) -> User:
        """Returns `user`, or the user that the request impersonates; raises a 403 StatusError if it may not."""
        ...


class Audit(Protocol):
    """Who did what."""

    def started(
        self,
        request: ApiRequest,
        info: RequestInfo,
        user: User | None,
        code: int,
        seconds: float,
        *,
        impersonated: User | None,
        audit_id: str,
    ) -> None:
        """The answer to a long request began; `completed` follows."""
        ...

    def completed(
        self,
        request: ApiRequest,
        info: RequestInfo,
        user: User | None,
        code: int,
        seconds: float,
        *,
        impersonated: User | None,
        reason: str,
        audit_id: str,
        annotations: Mapping[str, str],
    ) -> None:
        """A request was answered. `user` is who asked, even as somebody else."""
        ...


class ServerParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a server. `endpoints` are by group, resource and subresource: those of subresources, and, with an
    empty one, those of resources that are never stored.

    `refresh` is the first step of every request: it brings the roles, namespaces and webhooks that the server keeps in
    memory up to date with the storage.
    """

    kernel: Kernel
    authenticator: RequestAuthenticator
    impersonator: RequestImpersonator
    audit: Audit
    endpoints: Mapping[tuple[str, str, str], Endpoint]
    pages: Page
    refresh: Callable[[], Awaitable[None]]


class ApiServer:
    """Kubernetes' API. `handle` never raises but for cancellation."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self._clock = parts.kernel.clock
        self._turns = asyncio.Lock()
        # Of their own, so that the uids of objects do not depend on who looked at something before.
        self._audit_ids = random.Random(parts.kernel.rng.getrandbits(64))  # noqa: S311 - ids, no secrets

    async def handle(self, request: ApiRequest) -> Reply:
        """The answer to a request. What goes wrong is an answer too. Whoever takes a stream must close it."""
        try:
            return await self._handled(as_watch(request))
        except Exception:  # noqa: BLE001 - not even an answer that cannot be written may end the server
            _log.exception("%s %r was not answered", request.method, request.path)
            return Reply(UNEXPECTED.code, msgspec.json.encode(UNEXPECTED.status()))

    async def _handled(self, request: ApiRequest) -> Reply:
        exchange = _Exchange(request, request_info(request), self._parts.audit, self._clock, self._audit_id(request))
        budget = RequestBudget(turns=self._turns)
        before = open_budget(budget)
        try:
            reply = await self._answer(exchange)
        except StatusError as refusal:
            reply = exchange.refused(refusal)
        except TooLargeError as error:
            reply = exchange.refused(StatusError(413, "RequestEntityTooLarge", str(error)))
        except WriteError as error:
            reply = exchange.refused(StatusError(500, "InternalError", str(error)))
        except StorageError as error:
            reply = exchange.refused(StatusError(503, "ServiceUnavailable", f"the storage failed: {error}"))
        except Exception:  # noqa: BLE001 - whatever was overlooked must not end the server
            _log.exception("%s %r failed", request.method, request.path)
            reply = exchange.refused(UNEXPECTED)
        finally:
            close_budget(before)
        return exchange.recorded(laid_out(request, reply))

    def _audit_id(self, request: ApiRequest) -> str:
        """What the answer and the records of the request have in common; a client may choose it."""
        given = request.headers.get("audit-id", "")
        return given or random_uuid(self._audit_ids)

    async def _answer(self, exchange: _Exchange) -> Reply:
        request, info, authenticator = exchange.request, exchange.info, self._parts.authenticator
        await self._parts.refresh()
        refuse_malformed_timeout(request, info)
        asker = exchange.asker = await authenticator.authenticate(request)
        if asker is None:
            raise unauthorized()
        user = exchange.user = self._parts.impersonator.acting_user(request, asker)
        why_not = self._parts.kernel.authorizer.why_not(user, attributes_of(request, info))
        if why_not is not None:
            raise _forbidden(info, why_not)
        resource = self._parts.kernel.catalog.find(info.group, info.version, info.resource)
        if resource is not None:
            exchange.warnings += [resource.deprecation] if resource.deprecation else []
            refuse_unknown_part(info, resource)
        if resource is None or not has_route(request, info, resource):
            return await self._parts.pages(request)
        check_route(request, info, resource)
        placed = _placed(info, resource.namespaced)
        call = ResourceCall(self._parts.kernel, request, placed, resource, user, exchange.warnings)
        call.annotations = exchange.annotations
        return await self._endpoint(call)(call)

    def _endpoint(self, call: ResourceCall) -> Endpoint:
        """By verb; what is not stored as it is written has an endpoint of its own."""
        group, plural, subresource = call.resource.group, call.resource.plural, call.info.subresource
        own = self._parts.endpoints.get((group, plural, subresource))
        if own is None and subresource:
            own = self._parts.endpoints.get(("*", "*", subresource))
        return own or _VERBS[call.info.verb]


def _placed(info: RequestInfo, namespaced: bool) -> RequestInfo:
    """`/api/v1/namespaces/a` is about the namespace a, which itself is in none."""
    if namespaced or not info.namespace:
        return info
    return replace(info, namespace="")


def _forbidden(info: RequestInfo, why: str) -> StatusError:
    if info.is_resource:
        return forbidden(info.group, info.resource, info.name, why)
    return StatusError(403, "Forbidden", f"forbidden: {why}", details={})


class _Exchange:
    """One request, who makes it, and its records in the audit log."""

    __slots__ = (
        "_audit",
        "_audit_id",
        "_began",
        "_clock",
        "_reason",
        "annotations",
        "asker",
        "info",
        "request",
        "user",
        "warnings",
    )

    def __init__(self, request: ApiRequest, info: RequestInfo, audit: Audit, clock: Clock, audit_id: str) -> None:
        self.request = request
        self.info = info
        self.asker: User | None = None
        self.user: User | None = None
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}
        self._audit = audit
        self._audit_id = audit_id
        self._clock = clock
        self._began = clock.monotonic()
        self._reason = ""

    def refused(self, refusal: StatusError) -> Reply:
        """The refusal as an answer; what the client should know goes with it."""
        self._reason = refusal.reason
        body = msgspec.json.encode(refusal.status())
        return Reply(refusal.code, body, headers=refusal.headers, warnings=self.warnings)

    def recorded(self, reply: Reply) -> Reply:
        """The reply, on record, with its warnings bounded; a stream is complete when it is closed."""
        if reply.warnings:
            reply.warnings = bounded_warnings(reply.warnings)
        reply.headers["Audit-Id"] = self._audit_id
        if reply.stream is None and reply.upgrade is None:
            self.complete(reply.status)
            return reply
        seconds, acting = self._clock.monotonic() - self._began, self._impersonated()
        self._audit.started(
            self.request, self.info, self.asker, reply.status, seconds, impersonated=acting, audit_id=self._audit_id
        )
        if reply.stream is not None:
            reply.stream = RecordedStream(reply.stream, self, reply.status)
        if reply.upgrade is not None:
            reply.upgrade.serve = partial(self._conversation, reply.upgrade.serve)
        return reply

    async def _conversation(self, serve: Callable[[Socket], Awaitable[None]], socket: Socket) -> None:
        """To its end, which is recorded. That the client leaves is no failure."""
        try:
            await serve(socket)
        except* ConnectionError:
            _log.debug("the client of %s left", self.request.path)
        except* Exception:  # noqa: BLE001 - whatever was overlooked must not end the server
            _log.exception("%s %s failed", self.request.method, self.request.path)
        finally:
            self.complete(101)

    def complete(self, code: int) -> None:
        """The answer has ended."""
        seconds, acting = self._clock.monotonic() - self._began, self._impersonated()
        self._audit.completed(
            self.request,
            self.info,
            self.asker,
            code,
            seconds,
            impersonated=acting,
            reason=self._reason,
            audit_id=self._audit_id,
            annotations=self.annotations,
        )

    def _impersonated(self) -> User | None:
        return None if self.user is self.asker else self.user


class RecordedStream:
    """A stream whose end is recorded: what `ApiServer.handle` gives for every stream."""

    def __init__(self, stream: AsyncIterator[bytes], exchange: _Exchange, code: int) -> None:
        self._stream = stream
        self._exchange: _Exchange | None = exchange
        self._code = code

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        return self._stream.__anext__()

    async def aclose(self) -> None:
        """Ends the stream; may be called twice."""
        if isinstance(self._stream, AsyncGenerator):
            await self._stream.aclose()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.complete(self._code)
