"""`scale` of what runs pods: its replicas as an `autoscaling/v1` Scale."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.kinds.builtin.generic.columns import selector as selector_text
from navarch.cluster.server.objects.registry import CHANGED
from navarch.cluster.server.pipeline.endpoints.call import Call
from navarch.cluster.server.pipeline.endpoints.write import check_name, check_version, refuse_uid
from navarch.cluster.server.pipeline.subresources.bodies import checked, sent
from navarch.cluster.server.pipeline.subresources.scaling import (
    SCALE,
    Scaled,
    scale_of,
    scale_options,
    scale_reply,
    scaled_object,
    store_scaled,
    warn_of_fields,
)
from navarch.cluster.server.wire.causes import invalid as invalid_cause
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_errors import bad_request, conflict, invalid

_REPLICAS: Final = ("f:spec", "f:replicas")


async def scale(call: Call) -> Reply:
    """Reads or writes how many replicas are wanted."""
    options = scale_options(call) if call.info.verb != "get" else {}
    sent_scale = _sent(call) if call.info.verb == "update" else None
    found, value = await scaled_object(call)
    if call.info.verb == "get":
        return scale_reply(call, _scale_of(value))
    replicas = {call.resource.api_version: _REPLICAS}
    scaled = Scaled(call, _scale_of(value), value["metadata"].get("managedFields", []), replicas)
    asked = checked(scaled.patched(), SCALE) if sent_scale is None else sent_scale
    _check(call, asked, value["metadata"])
    wanted = (asked.get("spec") or {}).get("replicas") or 0
    stored = await store_scaled(call, found, _changed(value, wanted, scaled.owned(asked)), options)
    return scale_reply(call, _scale_of(stored))


def _sent(call: Call) -> Json:
    value = sent(call, SCALE)
    warn_of_fields(call, value, lambda why: bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}'))
    check_name(call, value["metadata"])
    return value


def _check(call: Call, asked: Json, current: Json) -> None:
    metadata, name, resource = asked["metadata"], call.info.name, call.resource
    check_name(call, metadata)
    if call.info.verb == "update":
        refuse_uid(call, metadata, resource.key(call.info.namespace, name), current["uid"])
    replicas = (asked.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        cause = invalid_cause("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", name, [cause])
    if metadata.get("uid") and metadata["uid"] != current["uid"]:
        why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {current['uid']}"
        raise conflict(resource.group, resource.plural, name, why)
    check_version(metadata.get("resourceVersion", ""))
    if metadata.get("resourceVersion") and metadata["resourceVersion"] != current["resourceVersion"]:
        raise conflict(resource.group, resource.plural, name, CHANGED)


def _changed(value: Json, replicas: int, managed: list[Json]) -> Json:
    metadata = {**value["metadata"], "managedFields": managed}
    return {**value, "metadata": metadata, "spec": {**value["spec"], "replicas": replicas}}


def _scale_of(value: Json) -> Json:
    spec, status = value["spec"], value.get("status") or {}
    selector = spec.get("selector")
    if selector and value["kind"] == "ReplicationController":
        selector = {"matchLabels": selector}
    return scale_of(value, spec.get("replicas"), status.get("replicas"), selector and selector_text(selector))
