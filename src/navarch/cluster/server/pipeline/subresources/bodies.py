"""Decodes the objects that clients send to subresources, and answers with a Status."""

from __future__ import annotations

from functools import partial

import msgspec

from navarch.cluster.server.kinds.builtin.generic.schema import schema_of
from navarch.cluster.server.objects.request_bodies import duplicate_faults, strict_faults
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.write import metadata_of
from navarch.cluster.server.wire.bodies import decode_kind
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_errors import StatusError, bad_request


async def sent(call: ResourceCall, schema: str) -> Json:
    """The object in the body; refuses with 400 what is none of that published schema, and warns of what it does not know."""
    return await call.read_body(lambda: _sent(call, schema))


def _sent(call: ResourceCall, schema: str) -> Json:
    kind, media_type = schema.rpartition(".")[2], call.request.headers.get("content-type", "")
    value = checked(decode_kind(call.request.body, media_type, kind), schema)
    refused = partial(_not_strict, kind, str(value.get("apiVersion") or "v1").rpartition("/")[2])
    doubled = duplicate_faults(call.request, media_type)
    call.warnings += strict_faults(call.request, value, schema_of(schema), refused, found=doubled)
    return value


def _not_strict(kind: str, version: str, why: str) -> StatusError:
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def checked(value: Json, schema: str) -> Json:
    """The object; refuses with 400 what is of another kind or does not fit."""
    kind = schema.rpartition(".")[2]
    given = value.get("kind") or kind
    version = str(value.get("apiVersion") or "v1").rpartition("/")[2]
    if given != kind:
        raise bad_request(f'{given} in version "{version}" cannot be handled as a {kind}: unknown conversion')
    if faults := schema_of(schema).faults(value):
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {faults[0].message}')
    metadata_of(value)
    return value


def success(call: ResourceCall) -> Reply:
    """201, with a Status that says no more."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Reply(201, msgspec.json.encode(body), warnings=call.warnings)
