"""Reviews and tokens: created like objects, answered at once, never stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from navarch.cluster.server.access import REVIEWS, Reviews, ServiceAccountTokens, request_token
from navarch.cluster.server.bodies import decode_json, decode_object
from navarch.cluster.server.builtin.schema import schema_of
from navarch.cluster.server.endpoints.call import Call
from navarch.cluster.server.endpoints.options import write_options
from navarch.cluster.server.endpoints.write import metadata_of, own
from navarch.cluster.server.refusal import bad_request
from navarch.cluster.server.request import Json, Reply

__all__ = ["access_endpoints"]

_TOKEN_REQUEST: Final = "io.k8s.api.authentication.v1.TokenRequest"  # noqa: S105 - the name of a schema

Endpoint = Callable[[Call], Awaitable[Reply]]


def access_endpoints(reviews: Reviews, tokens: ServiceAccountTokens) -> dict[tuple[str, str, str], Endpoint]:
    """What serves them, by group, resource and subresource."""
    endpoints = {(group, resource, ""): _review(reviews, kind) for (group, resource), kind in REVIEWS.items()}
    return {**endpoints, ("", "serviceaccounts", "token"): _token(tokens)}


def _review(reviews: Reviews, kind: str) -> Endpoint:
    async def review(call: Call) -> Reply:
        value = decode_object(call.request, call.resource, call.warnings)
        metadata_of(value)
        own(call, None, value)
        await _pass_admission(call, value)
        return call.answer_value(await reviews.review(kind, value, call.user, call.info.namespace), 201)

    return review


def _token(tokens: ServiceAccountTokens) -> Endpoint:
    async def token(call: Call) -> Reply:
        value = _token_request(call)
        await _pass_admission(call, value)
        return call.answer_value(await request_token(tokens, call.info.namespace, call.info.name, value), 201)

    return token


def _token_request(call: Call) -> Json:
    value = decode_json(call.request.body, call.request.headers.get("content-type", ""))
    if not isinstance(value, dict):
        raise bad_request("couldn't get version/kind; json parse error: expected an object")
    if faults := schema_of(_TOKEN_REQUEST).faults(value):
        raise bad_request(f'TokenRequest in version "v1" cannot be handled as a TokenRequest: {faults[0].message}')
    metadata_of(value)
    return value


async def _pass_admission(call: Call, value: Json) -> None:
    attributes = await call.admitted("CREATE", value, None, write_options("CreateOptions", call.request))
    await call.validated(attributes, value)
