"""The endpoints of reviews and token requests: created like objects, answered at once, never stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from navarch.cluster.server.objects.fields import builtin_shape, updated
from navarch.cluster.server.pipeline.authentication.token_requests import request_token
from navarch.cluster.server.pipeline.authentication.tokens import ServiceAccountTokens
from navarch.cluster.server.pipeline.authorization.reviews import REVIEWS, Reviews
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.options import write_options
from navarch.cluster.server.pipeline.endpoints.write import metadata_of, own
from navarch.cluster.server.pipeline.subresources.bodies import sent
from navarch.cluster.server.wire.request import Json, Reply
from navarch.k8s.published import published

_TOKEN_REQUEST: Final = "io.k8s.api.authentication.v1.TokenRequest"  # noqa: S105 - the name of a schema

_AUTHENTICATION: Final = "authentication.k8s.io"
_HOUR: Final = 3600
_ALWAYS_WRITTEN: Final = ("audiences", "boundObjectRef", "expirationSeconds")

Endpoint = Callable[[ResourceCall], Awaitable[Reply]]


def access_endpoints(reviews: Reviews, tokens: ServiceAccountTokens) -> dict[tuple[str, str, str], Endpoint]:
    """What serves them, by group, resource and subresource."""
    endpoints = {(group, resource, ""): _review(reviews, kind) for (group, resource), kind in REVIEWS.items()}
    return {**endpoints, ("", "serviceaccounts", "token"): _token(tokens)}


def _review(reviews: Reviews, kind: str) -> Endpoint:
    async def review(call: ResourceCall) -> Reply:
        options = write_options("CreateOptions", call.request)
        value = await call.decoded()
        metadata_of(value)
        call.resource.strategy.default(value)
        own(call, None, value)
        await _pass_admission(call, value, options)
        return call.answer_value(await reviews.review(kind, value, call.user, call.info.namespace), 201)

    return review


def _token(tokens: ServiceAccountTokens) -> Endpoint:
    async def token(call: ResourceCall) -> Reply:
        options = write_options("CreateOptions", call.request)
        value = await _token_request(call)
        await _pass_admission(call, value, options)
        return call.answer_value(await request_token(tokens, call.info.namespace, call.info.name, value), 201)

    return token


async def _token_request(call: ResourceCall) -> Json:
    """What was asked for, with its defaults and the fields of whoever asks."""
    value = await sent(call, _TOKEN_REQUEST)
    spec = value["spec"] = {**(value.get("spec") or {})}
    spec["expirationSeconds"] = _HOUR if spec.get("expirationSeconds") is None else spec["expirationSeconds"]
    shape = builtin_shape(_AUTHENTICATION, "v1", "TokenRequest", published().schema(_TOKEN_REQUEST))
    metadata_of(value)["managedFields"] = updated(
        None,
        value,
        replace(shape, zero={"metadata": {}, "spec": dict.fromkeys(_ALWAYS_WRITTEN)}),
        manager=call.manager,
        subresource="token",
        api_version=f"{_AUTHENTICATION}/v1",
        now=call.now(),
    )
    return value


async def _pass_admission(call: ResourceCall, value: Json, options: Json) -> None:
    attributes = await call.admitted("CREATE", value, None, options)
    await call.validated(attributes, value)
