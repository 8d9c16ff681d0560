"""`scale` of what runs pods: its replicas as an `autoscaling/v1` Scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from navarch.cluster.server.builtin.cells.texts import selector as selector_text
from navarch.cluster.server.builtin.endpoints.bodies import checked, sent
from navarch.cluster.server.causes import invalid as invalid_cause
from navarch.cluster.server.endpoints.call import Call
from navarch.cluster.server.endpoints.options import write_options
from navarch.cluster.server.endpoints.write import store_update
from navarch.cluster.server.fields import entries_from_scale, entries_of_scale, patched
from navarch.cluster.server.negotiation import asked_form
from navarch.cluster.server.refusal import bad_request, conflict, invalid
from navarch.cluster.server.registry import CHANGED, Found
from navarch.cluster.server.request import Json, Reply
from navarch.cluster.server.shaping import written
from navarch.cluster.server.views import value_of

__all__ = ["scale"]

_SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_API_VERSION: Final = "autoscaling/v1"
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_REPLICAS: Final = ("f:spec", "f:replicas")


async def scale(call: Call) -> Reply:
    """Reads or writes how many replicas are wanted."""
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    value = await value_of(call.resource, found.stored)
    if call.info.verb == "get":
        return _reply(call, _scale_of(value))
    asked = _asked(call, value)
    _check(call, asked, value["metadata"])
    return await _store(call, found, value, (asked.get("spec") or {}).get("replicas") or 0)


def _asked(call: Call, value: Json) -> Json:
    if call.info.verb == "update":
        return sent(call, _SCALE)
    media_type = call.request.headers.get("content-type", "").split(";")[0].strip()
    return checked(patched(_scale_of(value), call.request.body, media_type, call.resource), _SCALE)


def _check(call: Call, asked: Json, current: Json) -> None:
    metadata, name, resource = asked["metadata"], call.info.name, call.resource
    if metadata.get("name", "") != name:
        given = metadata.get("name", "")
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if metadata.get("resourceVersion") and metadata["resourceVersion"] != current["resourceVersion"]:
        raise conflict(resource.group, resource.plural, name, CHANGED)
    if metadata.get("uid") and metadata["uid"] != current["uid"]:
        why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {current['uid']}"
        raise conflict(resource.group, resource.plural, name, why)
    replicas = (asked.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        cause = invalid_cause("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", name, [cause])


async def _store(call: Call, found: Found, value: Json, replicas: int) -> Reply:
    changed = {**value, "metadata": {**value["metadata"]}, "spec": {**value["spec"], "replicas": replicas}}
    _own(call, value, changed)
    plain = replace(call.request, headers={**call.request.headers, "accept": "application/json"})
    inner = Call(call.kernel, plain, replace(call.info, subresource=""), call.resource, call.user, call.warnings)
    reply = await store_update(inner, found, changed, write_options("UpdateOptions", call.request), owned=True)
    return _reply(call, _scale_of(msgspec.json.decode(reply.body)))


def _own(call: Call, value: Json, changed: Json) -> None:
    """Whoever changes the replicas owns them; a Scale does not have a field for none."""
    wanted = changed["spec"]["replicas"]
    if value["spec"].get("replicas") == wanted:
        return
    paths = {call.resource.api_version: _REPLICAS}
    entries = value["metadata"].get("managedFields", [])
    entry: Json = {
        "manager": call.manager,
        "operation": "Update",
        "apiVersion": _API_VERSION,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
        "subresource": "scale",
    }
    others = [each for each in entries_of_scale(entries, paths) if each["operation"] != "Update"]
    changed["metadata"]["managedFields"] = entries_from_scale(
        entries, [*others, entry] if wanted else others, paths, call.resource.api_version
    )


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
        "apiVersion": _API_VERSION,
        "metadata": metadata,
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def _reply(call: Call, value: Json) -> Reply:
    form = asked_form(call.request.headers.get("accept", ""))
    return Reply(200, written(value, form), content_type=form.media_type, warnings=call.warnings)
