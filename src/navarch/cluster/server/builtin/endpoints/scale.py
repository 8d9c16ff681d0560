"""`scale` of what runs pods: its replicas as an `autoscaling/v1` Scale."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.builtin.cells.texts import selector as selector_text
from navarch.cluster.server.builtin.endpoints.bodies import checked, sent
from navarch.cluster.server.causes import invalid as invalid_cause
from navarch.cluster.server.endpoints.call import Call
from navarch.cluster.server.endpoints.read import check_read_version
from navarch.cluster.server.endpoints.scaling import (
    API_VERSION,
    SCALE,
    Scaled,
    check_scale_name,
    scale_options,
    scale_reply,
    warn_of_fields,
)
from navarch.cluster.server.endpoints.write import check_version, store_update
from navarch.cluster.server.negotiation import asked_form
from navarch.cluster.server.refusal import bad_request, conflict, invalid
from navarch.cluster.server.registry import CHANGED, Found
from navarch.cluster.server.request import Json, Reply
from navarch.cluster.server.views import value_of

__all__ = ["scale"]

_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_REPLICAS: Final = ("f:spec", "f:replicas")


async def scale(call: Call) -> Reply:
    """Reads or writes how many replicas are wanted."""
    options = scale_options(call) if call.info.verb != "get" else {}
    sent_scale = _sent(call) if call.info.verb == "update" else None
    if call.info.verb == "get":
        await check_read_version(call)
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    value = await value_of(call.resource, found.stored)
    if call.info.verb == "get":
        return _reply(call, _scale_of(value))
    replicas = {call.resource.api_version: _REPLICAS}
    scaled = Scaled(call, _scale_of(value), value["metadata"].get("managedFields", []), replicas)
    asked = checked(scaled.patched(), SCALE) if sent_scale is None else sent_scale
    _check(call, asked, value["metadata"])
    wanted = (asked.get("spec") or {}).get("replicas") or 0
    return await _store(call, found, _changed(value, wanted, scaled.owned(asked)), options)


def _sent(call: Call) -> Json:
    value = sent(call, SCALE)
    warn_of_fields(call, value, lambda why: bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}'))
    check_scale_name(call, value)
    return value


def _check(call: Call, asked: Json, current: Json) -> None:
    metadata, name, resource = asked["metadata"], call.info.name, call.resource
    check_scale_name(call, asked)
    check_version(metadata.get("resourceVersion", ""))
    if metadata.get("resourceVersion") and metadata["resourceVersion"] != current["resourceVersion"]:
        raise conflict(resource.group, resource.plural, name, CHANGED)
    if metadata.get("uid") and metadata["uid"] != current["uid"]:
        why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {current['uid']}"
        raise conflict(resource.group, resource.plural, name, why)
    replicas = (asked.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        cause = invalid_cause("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", name, [cause])


def _changed(value: Json, replicas: int, managed: list[Json]) -> Json:
    metadata = {**value["metadata"], "managedFields": managed}
    return {**value, "metadata": metadata, "spec": {**value["spec"], "replicas": replicas}}


async def _store(call: Call, found: Found, changed: Json, options: Json) -> Reply:
    plain = replace(call.request, headers={**call.request.headers, "accept": "application/json"})
    inner = Call(call.kernel, plain, replace(call.info, subresource=""), call.resource, call.user, call.warnings)
    reply = await store_update(inner, found, changed, options, owned=True)
    return _reply(call, _scale_of(msgspec.json.decode(reply.body)))


def _scale_of(value: Json) -> Json:
    metadata = {name: value["metadata"][name] for name in _METADATA if name in value["metadata"]}
    wanted = value["spec"].get("replicas", 0)
    status: Json = {"replicas": (value.get("status") or {}).get("replicas", 0)}
    selector = value["spec"].get("selector")
    if selector:
        is_labels = value["kind"] == "ReplicationController"
        status["selector"] = selector_text({"matchLabels": selector} if is_labels else selector)
    return {
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def _reply(call: Call, value: Json) -> Reply:
    form = asked_form(call.request.headers.get("accept", ""), has_protobuf=True)
    return scale_reply(call, value, form)
