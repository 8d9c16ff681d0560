"""patch: JSON, merge and strategic merge patches, and server-side apply."""

from __future__ import annotations

from functools import partial

import msgspec

from navarch.api.json_patch import copy_json
from navarch.cluster.server.objects.fields import (
    applied,
    patched,
    shape_of,
    unfit_patch,
    unknown_in_operations,
    unsupported,
)
from navarch.cluster.server.objects.registry import CHANGED, Found, WriteConflictError, value_of
from navarch.cluster.server.objects.request_bodies import duplicate_faults, strict_faults
from navarch.cluster.server.objects.types import KindSchema, ResourceType
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.options import create_options, patch_options
from navarch.cluster.server.pipeline.endpoints.write import (
    check_identity,
    check_version,
    metadata_of,
    refuse_unversioned,
    store_new,
    store_update,
)
from navarch.cluster.server.wire.bodies import decode_json, refuse_too_large
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, conflict, not_found

_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_TRIES = 5


async def patch(call: ResourceCall) -> Reply:
    """Changes an object; retries after a write conflict, as Kubernetes does."""
    refuse_too_large(call.request.body)
    media_type = call.request.headers.get("content-type", "").split(";")[0].strip()
    if call.resource.is_custom and media_type == _STRATEGIC:
        raise unsupported(call.resource)
    options = patch_options(call.request, is_apply=media_type == _APPLY)
    for attempt in range(_TRIES):
        try:
            if media_type == _APPLY:
                return await _apply(call, options)
            return await _patch(call, media_type, options)
        except WriteConflictError:
            if attempt == _TRIES - 1 or _is_tied(call):
                raise
    raise AssertionError("unreachable: the last try returns or raises")


def _is_tied(call: ResourceCall) -> bool:
    """Whether the patch names the version it is meant for."""
    return b'"resourceVersion"' in call.request.body


async def _patch(call: ResourceCall, media_type: str, options: Json) -> Reply:
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    live = await value_of(call.resource, found.stored)
    value = await call.read_body(lambda: patched_value(call, live, media_type, call.resource.schema))
    value.setdefault("kind", call.resource.kind)
    value.setdefault("apiVersion", call.resource.api_version)
    _check_same(call, found, value)
    return await store_update(call, found, value, options)


def patched_value(call: ResourceCall, live: Json, media_type: str, schema: KindSchema) -> Json:
    """What a JSON, merge or strategic merge patch makes of a value of that schema; warns of what the schema does not
    know, or refuses it.
    """
    validation = call.request.parameter("fieldValidation") or "Warn"
    value = patched(live, call.request.body, media_type, call.resource, field_validation=validation)
    shown = copy_json(value) if validation == "Strict" else value
    refused = partial(unfit_patch, shown, strategic=call.request.body if media_type == _STRATEGIC else None)
    touched = value if call.resource.is_custom else _touched(value, live)
    if faults := schema.faults(touched):
        raise refused(_told(faults[0].message, media_type))
    odd = duplicate_faults(call.request) if validation != "Ignore" else []
    odd += unknown_in_operations(call.request.body) if media_type == _JSON_PATCH else []
    known = touched.keys() ^ value.keys()
    call.warnings += strict_faults(call.request, touched, schema, refused, found=odd)
    return {name: member for name, member in value.items() if name in known or name in touched}


def _touched(value: Json, live: Json) -> Json:
    """The members that a patch has not left alone: the others fit, since they were stored."""
    return {name: member for name, member in value.items() if member is not live.get(name)}


def _told(fault: str, media_type: str) -> str:
    is_encoded = media_type == _STRATEGIC and fault.startswith("illegal base64")
    return f"error decoding from json: {fault}" if is_encoded else fault


def _check_same(call: ResourceCall, found: Found, value: Json) -> None:
    """A patch may name the version and the uid it is meant for, and must not rename anything."""
    metadata, current = metadata_of(value), found.value["metadata"]
    resource, name = call.resource, call.info.name
    check_identity(call, metadata)
    check_version(metadata.get("resourceVersion", ""))
    refuse_unversioned(call, metadata.get("resourceVersion", ""))
    if metadata.get("resourceVersion", current["resourceVersion"]) not in {"", current["resourceVersion"]}:
        raise conflict(resource.group, resource.plural, name, CHANGED)


async def _apply(call: ResourceCall, options: Json) -> Reply:
    found = await call.kernel.registry.find(call.resource, call.info.namespace, call.info.name)
    if found is None and call.info.subresource:
        raise not_found(call.resource.group, call.resource.plural, call.info.name)
    desired = await call.read_body(lambda: decode_json(call.request.body, _APPLY))
    if not isinstance(desired, dict):
        raise bad_request("error decoding YAML: expected an object")
    if found is None:
        return await _apply_new(call, desired, options)
    live = await value_of(call.resource, found.stored)
    merged = await call.read_body(lambda: _merged(call, live, desired))
    _check_same(call, found, merged)
    return await store_update(call, found, merged, options, owned=True)


def repeated_keys(call: ResourceCall) -> list[str]:
    """What a body says twice, in the words of YAML."""
    if call.request.parameter("fieldValidation") == "Ignore" or _is_canonical(call.request.body):
        return []
    from navarch.cluster.server.wire.yaml_bodies import repeated_keys as repeated  # noqa: PLC0415 - few are YAML

    said = repeated(call.request.body)
    if said and call.request.parameter("fieldValidation") == "Strict":
        told = "".join(f"\n  {each}" for each in said)
        why = f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{told}"
        raise bad_request(why)
    return said


def _is_canonical(body: bytes) -> bool:
    """Whether it is JSON as it would be written again: nothing of it got lost."""
    try:
        return msgspec.json.encode(msgspec.json.decode(body)) == body.rstrip()
    except (msgspec.DecodeError, RecursionError):
        return False


async def _apply_new(call: ResourceCall, desired: Json, options: Json) -> Reply:
    """An apply creates what is not there, unless it says that it means something that was."""
    value = await call.read_body(lambda: _merged(call, None, desired))
    metadata = metadata_of(value)
    if metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
        raise conflict(call.resource.group, call.resource.plural, call.info.name, why)
    check_identity(call, metadata)
    check_version(metadata.pop("resourceVersion", ""))
    return await store_new(call, value, create_options(options), owned=True)


def _refuse_unfit(resource: ResourceType, value: Json, desired: Json) -> None:
    """500, as the real server has it, for what was applied and could not be decoded into the types of the kind."""
    if not resource.is_custom and (faults := resource.schema.faults(value)):
        metadata = metadata_of(desired)
        kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        which = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind}"
        fault = faults[0].message
        said = f"error decoding from json: {fault}" if fault.startswith("illegal base64") else fault
        why = f"unable to convert unstructured object to {kind}: {said}"
        raise StatusError(500, "", f"failed to convert new object ({which}) to proper version: {why}")


def _merged(call: ResourceCall, live: Json | None, desired: Json) -> Json:
    merged = applied(
        live,
        desired,
        shape_of(call.resource, call.kernel.catalog),
        manager=call.manager,
        force=call.request.flag("force"),
        subresource=call.info.subresource,
        api_version=call.resource.api_version,
        now=call.now(),
    )
    _refuse_unfit(call.resource, merged, desired)
    if call.resource.is_custom:
        merged["metadata"].pop("creationTimestamp", None)  # the server's own, whatever was applied
    call.warnings += repeated_keys(call)
    return merged
