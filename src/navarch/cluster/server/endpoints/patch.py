"""patch: JSON, merge and strategic merge patches, and server-side apply."""

from __future__ import annotations

from functools import partial

from navarch.cluster.server.bodies import decode_json, refuse_too_large, strict_faults
from navarch.cluster.server.endpoints.call import Call
from navarch.cluster.server.endpoints.write import (
    metadata_of,
    refuse_unfit,
    request_options,
    store_new,
    store_update,
)
from navarch.cluster.server.fields import applied, patched, shape_of, unfit_patch
from navarch.cluster.server.refusal import Refusal, bad_request, conflict, not_found
from navarch.cluster.server.registry import CHANGED, Found
from navarch.cluster.server.request import Json, Reply
from navarch.cluster.server.views import value_of

__all__ = ["patch"]

_APPLY = "application/apply-patch+yaml"
_STRATEGIC = "application/strategic-merge-patch+json"
_TRIES = 5


async def patch(call: Call) -> Reply:
    """Changes an object; tried again, as Kubernetes does, if somebody else was faster."""
    refuse_too_large(call.request.body)
    media_type = call.request.headers.get("content-type", "").split(";")[0].strip()
    options = _options(call, media_type)
    for attempt in range(_TRIES):
        try:
            if media_type == _APPLY:
                return await _apply(call, options)
            return await _patch(call, media_type, options)
        except Refusal as refusal:
            if not refusal.message.endswith(CHANGED) or attempt == _TRIES - 1 or _is_tied(call):
                raise
    raise AssertionError("unreachable: the last try returns or raises")


def _is_tied(call: Call) -> bool:
    """Whether the patch names the version it is meant for."""
    return b'"resourceVersion"' in call.request.body


def _options(call: Call, media_type: str) -> Json:
    options = request_options("PatchOptions", call)
    force = call.request.parameter("force")
    if media_type == _APPLY and not call.request.parameter("fieldManager"):
        raise Refusal(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        )
    if force and media_type != _APPLY:
        raise Refusal(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
        )
    if force:
        options["force"] = call.request.flag("force")
    return options


async def _patch(call: Call, media_type: str, options: Json) -> Reply:
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    live = await value_of(call.resource, found.stored)
    validation = call.request.parameter("fieldValidation") or "Warn"
    value = patched(live, call.request.body, media_type, call.resource, field_validation=validation)
    refused = partial(unfit_patch, value, strategic=call.request.body if media_type == _STRATEGIC else None)
    call.warnings += strict_faults(call.request, value, call.resource, refused=refused)
    if faults := call.resource.schema.faults(value):
        raise refused(faults[0].message)
    _check_same(call, found, value)
    return await store_update(call, found, value, options)


def _check_same(call: Call, found: Found, value: Json) -> None:
    """A patch may name the version and the uid it is meant for, and must not rename anything."""
    metadata, current = metadata_of(value), found.value["metadata"]
    resource, name = call.resource, call.info.name
    if metadata.get("resourceVersion", current["resourceVersion"]) not in {"", current["resourceVersion"]}:
        raise conflict(resource.group, resource.plural, name, CHANGED)
    if metadata.get("uid", current["uid"]) != current["uid"]:
        why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {current['uid']}"
        raise conflict(resource.group, resource.plural, name, why)
    if metadata.get("name", name) != name:
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")


async def _apply(call: Call, options: Json) -> Reply:
    desired = decode_json(call.request.body, _APPLY)
    if not isinstance(desired, dict):
        raise bad_request("error decoding YAML: expected an object")
    _check_desired(call, desired)
    call.warnings += strict_faults(call.request, desired, call.resource)
    refuse_unfit(call.resource, desired)
    found = await call.kernel.registry.find(call.resource, call.info.namespace, call.info.name)
    if found is None:
        return await _apply_new(call, desired, options)
    _check_same(call, found, {"metadata": dict(metadata_of(desired))})
    live = await value_of(call.resource, found.stored)
    return await store_update(call, found, _merged(call, live, desired), options, owned=True)


async def _apply_new(call: Call, desired: Json, options: Json) -> Reply:
    """An apply creates what is not there, unless it says that it means something that was."""
    if call.info.subresource:
        raise not_found(call.resource.group, call.resource.plural, call.info.name)
    metadata = metadata_of(desired)
    if metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
        raise conflict(call.resource.group, call.resource.plural, call.info.name, why)
    metadata.pop("resourceVersion", None)
    stored = await store_new(call, _merged(call, None, desired), options, owned=True)
    return call.answer_value(stored, 201) if isinstance(stored, dict) else await call.answer(stored, 201)


def _merged(call: Call, live: Json | None, desired: Json) -> Json:
    return applied(
        live,
        desired,
        shape_of(call.resource, call.kernel.catalog),
        manager=call.manager,
        force=call.request.flag("force"),
        subresource=call.info.subresource,
        api_version=call.resource.api_version,
        now=call.now(),
    )


def _check_desired(call: Call, desired: Json) -> None:
    resource, metadata = call.resource, metadata_of(desired)
    if desired.get("apiVersion") != resource.api_version or desired.get("kind") != resource.kind:
        raise bad_request(
            f"incorrect object type: expected {resource.api_version}, Kind={resource.kind}, "
            f"got {desired.get('apiVersion')}, Kind={desired.get('kind')}"
        )
    name = metadata.setdefault("name", call.info.name)
    if name != call.info.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.info.name})")
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
