"""Custom kinds in the pipeline: the `scale` endpoint, and the writes of definitions by the server itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from navarch.cluster.server.kinds.custom.definitions import GROUP, PLURAL
from navarch.cluster.server.kinds.custom.paths import AccessError, ScalePaths, integer_at, put_at, text_at
from navarch.cluster.server.kinds.custom.strategy import CustomStrategy
from navarch.cluster.server.objects.registry import CHANGED
from navarch.cluster.server.objects.request_bodies import decode_json
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.endpoints.call import Call, Kernel
from navarch.cluster.server.pipeline.endpoints.removal import delete_all
from navarch.cluster.server.pipeline.endpoints.scaling import (
    API_VERSION,
    Scaled,
    scale_of,
    scale_options,
    scale_reply,
    scaled_object,
    store_scaled,
    warn_of_fields,
)
from navarch.cluster.server.pipeline.endpoints.write import check_name, check_version, metadata_of, update
from navarch.cluster.server.wire.request import ApiRequest, Json, Reply, RequestInfo, User
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, conflict, not_found

_SERVER: Final = User("system:apiserver", groups=("system:masters", "system:authenticated"))
_HEADERS: Final = {"user-agent": "kube-apiserver", "content-type": "application/json"}


class ServerDefinitionWriter:
    """Writes the statuses of CRDs, and deletes custom objects, as the server's own user; see `DefinitionWriter`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    async def write(self, definition: Json, status: Json) -> Json:
        """See `DefinitionWriter.write`."""
        definitions = self._kernel.catalog.find(GROUP, "v1", PLURAL)
        assert definitions is not None, "CRDs are always served"
        body = msgspec.json.encode({**definition, "status": status})
        reply = await update(self._call("PUT", definitions, definition["metadata"]["name"], "status", body))
        written: Json = msgspec.json.decode(reply.body)
        return written

    async def delete_objects(self, resource: ResourceType) -> None:
        """See `DefinitionWriter.delete_objects`."""
        await delete_all(self._call("DELETE", resource, "", "", b""))

    def _call(self, method: str, resource: ResourceType, name: str, subresource: str, body: bytes) -> Call:
        verb = "update" if method == "PUT" else "deletecollection"
        path = f"/apis/{resource.api_version}/{resource.plural}"
        request = ApiRequest(method=method, path=path, headers=_HEADERS, body=body)
        info = RequestInfo(verb, path, resource.group, resource.version, "", resource.plural, subresource, name)
        return Call(self._kernel, request, info, resource, _SERVER)


_UNKNOWN: Final = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'


async def custom_scale(call: Call) -> Reply:
    """Reads or writes how many replicas a custom object wants."""
    strategy = call.resource.strategy
    if not isinstance(strategy, CustomStrategy) or strategy.form.scale is None:
        raise StatusError(404, "NotFound", "the server could not find the requested resource", details={})
    paths, is_read = strategy.form.scale, call.info.verb == "get"
    options = {} if is_read else scale_options(call)
    sent = _sent(call) if call.info.verb == "update" else None
    found, value = await scaled_object(call)
    if is_read:
        return scale_reply(call, _scale_to_read(value, paths))
    scaled = _scaled(call, value, paths)
    asked = _identified(scaled.patched()) if sent is None else sent
    _check(call, asked, value)
    stored = await store_scaled(call, found, _changed(value, asked, paths, scaled), options)
    return scale_reply(call, _scale_of(stored, paths))


def _scaled(call: Call, value: Json, paths: ScalePaths) -> Scaled:
    entries = value["metadata"].get("managedFields", [])
    return Scaled(call, _scale_of(value, paths), entries, dict(_replicas_by_version(call)))


def _replicas_by_version(call: Call) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Where each version of the kind has its replicas, in the elements of managed fields."""
    for each in call.kernel.catalog:
        strategy = each.strategy
        if (each.group, each.plural) != (call.resource.group, call.resource.plural):
            continue
        if isinstance(strategy, CustomStrategy) and strategy.form.scale is not None:
            names = strategy.form.scale.spec.removeprefix(".").split(".")
            yield each.api_version, tuple(f"f:{name}" for name in names)


def _sent(call: Call) -> Json:
    asked = decode_json(call.request.body, call.request.headers.get("content-type", ""))
    check_name(call, metadata_of(asked if isinstance(asked, dict) else {}))
    _replicas(_identified(asked))
    warn_of_fields(call, asked, lambda _: bad_request(_UNKNOWN))
    return _identified(asked)


def _identified(asked: Any) -> Json:
    if not isinstance(asked, dict) or (asked.get("kind"), asked.get("apiVersion")) != ("Scale", API_VERSION):
        raise bad_request(_UNKNOWN)
    return asked


def _changed(value: Json, asked: Json, paths: ScalePaths, scaled: Scaled) -> Json:
    changed = {**value, "metadata": {**value["metadata"]}}
    wanted = _replicas(asked)
    put_at(changed, paths.spec, wanted)
    changed["metadata"]["managedFields"] = scaled.owned(asked)
    return changed


def _check(call: Call, asked: Json, value: Json) -> None:
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
    found = _scale_of(value, paths)
    if integer_at(value, paths.spec) is None:
        raise _internal(f'the spec replicas field "{paths.spec}" does not exist')
    return found


def _scale_of(value: Json, paths: ScalePaths) -> Json:
    try:
        wanted, actual = integer_at(value, paths.spec), integer_at(value, paths.status)
        selector = text_at(value, paths.selector) if paths.selector else None
    except AccessError as error:
        raise _internal(str(error)) from None
    return scale_of(value, wanted, actual, selector)


def _internal(said: str) -> StatusError:
    details = {"causes": [{"message": said}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {said}", details=details)
