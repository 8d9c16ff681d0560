"""The endpoint `scale` of built-in and custom kinds: the replicas of an object as an `autoscaling/v1` Scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.generic.columns import selector as selector_text
from navarch.cluster.server.kinds.custom.paths import AccessError, ScalePaths, integer_at, put_at, text_at
from navarch.cluster.server.kinds.custom.strategy import CustomStrategy
from navarch.cluster.server.objects.registry import CHANGED
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.write import check_name, check_version, metadata_of, refuse_uid
from navarch.cluster.server.pipeline.subresources.bodies import checked, sent
from navarch.cluster.server.pipeline.subresources.scaling import (
    API_VERSION,
    SCALE,
    Scaled,
    admitted_scale,
    scale_of,
    scale_options,
    scale_reply,
    scaled_object,
    store_scaled,
    warn_of_fields,
)
from navarch.cluster.server.wire.bodies import decode_json
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_causes import invalid as invalid_cause
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, conflict, invalid, not_found

_UNKNOWN: Final = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
_REPLICAS: Final = ("f:spec", "f:replicas")


async def scale_custom(call: ResourceCall) -> Reply:
    """Reads or writes how many replicas a custom object wants."""
    strategy = call.resource.strategy
    if not isinstance(strategy, CustomStrategy) or strategy.form.scale is None:
        raise StatusError(404, "NotFound", "the server could not find the requested resource", details={})
    paths, is_read = strategy.form.scale, call.info.verb == "get"
    options = {} if is_read else scale_options(call)
    sent = await call.read_body(lambda: _sent_custom(call)) if call.info.verb == "update" else None
    found, value = await scaled_object(call)
    if is_read:
        return scale_reply(call, _scale_to_read(value, paths))
    scaled = _scaled(call, value, paths)
    asked = _identified(await call.read_body(scaled.patched)) if sent is None else sent
    _check_custom(call, asked, value)
    asked = await admitted_scale(call, asked, _scale_of_custom(value, paths), options)
    stored = await store_scaled(call, found, _changed_custom(value, asked, paths, scaled), options)
    return scale_reply(call, _scale_of_custom(stored, paths))


def _scaled(call: ResourceCall, value: Json, paths: ScalePaths) -> Scaled:
    entries = value["metadata"].get("managedFields", [])
    return Scaled(call, _scale_of_custom(value, paths), entries, dict(_replicas_by_version(call)))


def _replicas_by_version(call: ResourceCall) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Where each version of the kind has its replicas, in the elements of managed fields."""
    for each in call.kernel.catalog:
        strategy = each.strategy
        if (each.group, each.plural) != (call.resource.group, call.resource.plural):
            continue
        if isinstance(strategy, CustomStrategy) and strategy.form.scale is not None:
            names = strategy.form.scale.spec.removeprefix(".").split(".")
            yield each.api_version, tuple(f"f:{name}" for name in names)


def _sent_custom(call: ResourceCall) -> Json:
    asked = decode_json(call.request.body, call.request.headers.get("content-type", ""))
    check_name(call, metadata_of(asked if isinstance(asked, dict) else {}))
    _replicas(_identified(asked))
    warn_of_fields(call, asked, lambda _: bad_request(_UNKNOWN))
    return _identified(asked)


def _identified(asked: Any) -> Json:
    if not isinstance(asked, dict) or (asked.get("kind"), asked.get("apiVersion")) != ("Scale", API_VERSION):
        raise bad_request(_UNKNOWN)
    return asked


def _changed_custom(value: Json, asked: Json, paths: ScalePaths, scaled: Scaled) -> Json:
    changed = {**value, "metadata": {**value["metadata"]}}
    wanted = _replicas(asked)
    put_at(changed, paths.spec, wanted)
    changed["metadata"]["managedFields"] = scaled.owned(asked)
    return changed


def _check_custom(call: ResourceCall, asked: Json, value: Json) -> None:
    metadata, current = metadata_of(asked), value["metadata"]
    resource, name = call.resource, call.info.name
    check_name(call, metadata)
    check_version(metadata.get("resourceVersion", ""))
    if metadata.get("uid") and metadata["uid"] != current["uid"]:
        raise not_found(resource.group, resource.plural, name)
    if metadata.get("resourceVersion") and metadata["resourceVersion"] != current["resourceVersion"]:
        raise conflict(resource.group, resource.plural, name, CHANGED)


def _replicas(asked: Json) -> int:
    spec = asked.get("spec") or {}
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if type(replicas) is not int:
        raise bad_request(_UNKNOWN)
    return replicas


def _scale_to_read(value: Json, paths: ScalePaths) -> Json:
    """The Scale of an object that says how many replicas it wants; others can be scaled, but not be read."""
    found = _scale_of_custom(value, paths)
    if integer_at(value, paths.spec) is None:
        raise _internal(f'the spec replicas field "{paths.spec}" does not exist')
    return found


def _scale_of_custom(value: Json, paths: ScalePaths) -> Json:
    try:
        wanted, actual = integer_at(value, paths.spec), integer_at(value, paths.status)
        selector = text_at(value, paths.selector) if paths.selector else None
    except AccessError as error:
        raise _internal(str(error)) from None
    return scale_of(value, wanted, actual, selector)


def _internal(said: str) -> StatusError:
    details = {"causes": [{"message": said}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {said}", details=details)


async def scale(call: ResourceCall) -> Reply:
    """Reads or writes how many replicas are wanted."""
    options = scale_options(call) if call.info.verb != "get" else {}
    sent_scale = await _sent(call) if call.info.verb == "update" else None
    found, value = await scaled_object(call)
    if call.info.verb == "get":
        return scale_reply(call, _scale_of(value))
    replicas = {call.resource.api_version: _REPLICAS}
    scaled = Scaled(call, _scale_of(value), value["metadata"].get("managedFields", []), replicas)
    asked = checked(await call.read_body(scaled.patched), SCALE) if sent_scale is None else sent_scale
    _check(call, asked, value["metadata"])
    asked = await admitted_scale(call, asked, _scale_of(value), options)
    wanted = (asked.get("spec") or {}).get("replicas") or 0
    stored = await store_scaled(call, found, _changed(value, wanted, scaled.owned(asked)), options)
    return scale_reply(call, _scale_of(stored))


async def _sent(call: ResourceCall) -> Json:
    value = await sent(call, SCALE)
    warn_of_fields(call, value, lambda why: bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}'))
    check_name(call, value["metadata"])
    return value


def _check(call: ResourceCall, asked: Json, current: Json) -> None:
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
