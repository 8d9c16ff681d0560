"""The Scale of an object: its managed fields, its table, its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.kinds.builtin.generic.columns import Ages
from navarch.cluster.server.kinds.builtin.generic.schema import schema_of
from navarch.cluster.server.objects.fields.applying import applied
from navarch.cluster.server.objects.fields.entries import Holders, Holding, encoded, held
from navarch.cluster.server.objects.fields.kinds import KindShape, builtin_shape
from navarch.cluster.server.objects.fields.managers import updated
from navarch.cluster.server.objects.fields.sets import LEAF, Tree, difference, has
from navarch.cluster.server.objects.registry import Found, value_of
from navarch.cluster.server.objects.request_bodies import duplicate_faults, strict_faults
from navarch.cluster.server.objects.response_bodies import TableRows, asked_form, shaped_part
from navarch.cluster.server.objects.types import TableColumn
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.options import patch_options, write_options
from navarch.cluster.server.pipeline.endpoints.patch import patched_value, repeated_keys
from navarch.cluster.server.pipeline.endpoints.read import check_read_version
from navarch.cluster.server.pipeline.endpoints.write import store_update
from navarch.cluster.server.wire.bodies import decode_json
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.k8s.published import published

SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final = ("f:spec", "f:replicas")

Paths = Mapping[str, tuple[str, ...]]
API_VERSION: Final = "autoscaling/v1"
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_COUNTS: Final = (TableColumn("Desired", "integer"), TableColumn("Available", "integer"))
_COLUMNS: Final = (TableColumn("Name", "string"), *_COUNTS, TableColumn("Age", "string"))
_CUSTOM_COLUMNS: Final = (TableColumn("Name", "string", "name"), *_COUNTS, TableColumn("Age", "date"))
_APPLY: Final = "application/apply-patch+yaml"
_KIND: Final = "autoscaling/v1, Kind=Scale"
_NO_SCALES: Final = "request to convert CR to an invalid group/version: autoscaling/v1"
"""Kubernetes' own fault: the Scale of a custom object cannot be applied."""
_FIRST: Final = "failed to create manager for existing fields: failed to convert live object"


def entries_of_scale(entries: list[Json], replicas: Paths) -> list[Json]:
    """The managed fields of the Scale of an object that has `entries`.

    `replicas` gives the path elements of the replicas by apiVersion: `{"apps/v1": ("f:spec", "f:replicas")}`.
    """
    owners: Holders = {}
    for who, holding in held({"managedFields": entries}).items():
        path = replicas.get(holding.api_version)
        if path and has(holding.fields, *path):
            owners[who] = Holding(_set_of(_REPLICAS), SCALE_VERSION, holding.time)
    return encoded(owners)


def entries_from_scale(entries: list[Json], scale: list[Json], replicas: Paths, api_version: str) -> list[Json]:
    """The managed fields of an object with `entries`, after those of its Scale have become `scale`.

    Whoever writes a Scale owns the replicas of the object, and like on a real server no time is noted.
    """
    parent, owners = held({"managedFields": entries}), held({"managedFields": scale})
    result: Holders = {}
    for who, holding in parent.items():
        path = replicas.get(holding.api_version)
        if path is None or not has(holding.fields, *path) or owners.pop(who, None) is not None:
            result[who] = holding
        elif left := difference(holding.fields, _set_of(path)):
            result[who] = Holding(left, holding.api_version, holding.time)
    for who, holding in owners.items():
        if has(holding.fields, *_REPLICAS):
            result[who] = Holding(_set_of(replicas[api_version]), api_version, None)
    return encoded(result)


def updated_scale(live: Json, wanted: Json, *, manager: str, now: str) -> list[Json]:
    """The managed fields of a Scale after `manager` made `wanted` out of `live`, which has its own.

    An updater of the object is another one than an updater of its Scale, since they write different versions.
    """
    return updated(
        live, wanted, _scale_shape(), manager=manager, subresource="scale", api_version=SCALE_VERSION, now=now
    )


class ScaleApply(msgspec.Struct, frozen=True):
    """Who applies a Scale, and how."""

    manager: str
    force: bool
    now: str


def applied_scale(live: Json, patch: Json, by: ScaleApply) -> Json:
    """The Scale, which has its managed fields, after `patch` was applied to it."""
    return applied(
        live,
        patch,
        _scale_shape(),
        manager=by.manager,
        force=by.force,
        subresource="scale",
        api_version=SCALE_VERSION,
        now=by.now,
    )


@cache
def _scale_shape() -> KindShape:
    return builtin_shape("autoscaling", "v1", "Scale", published().schema("io.k8s.api.autoscaling.v1.Scale"))


def _set_of(path: tuple[str, ...]) -> Tree:
    tree: Any = LEAF
    for element in reversed(path):
        tree = {element: tree}
    return dict(tree)


async def scaled_object(call: ResourceCall) -> tuple[Found, Json]:
    """The object that is scaled, as it is stored and as it is seen."""
    if call.info.verb == "get":
        await check_read_version(call)
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    return found, await value_of(call.resource, found.stored)


def scale_of(value: Json, wanted: int | None, actual: int | None, selector: str | None) -> Json:
    """The Scale of an object that has these replicas, and pods of this selector."""
    return {
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": {name: value["metadata"][name] for name in _METADATA if name in value["metadata"]},
        "spec": {"replicas": wanted} if wanted else {},
        "status": {"replicas": actual or 0, **({"selector": selector} if selector else {})},
    }


async def admitted_scale(call: ResourceCall, asked: Json, current: Json, options: Json) -> Json:
    """Returns the Scale after admission, which sees Scales and not the object that is scaled."""
    attributes = await call.admitted("UPDATE", asked, current, options)
    await call.validated(attributes, attributes.value)
    assert attributes.value is not None
    return attributes.value


async def store_scaled(call: ResourceCall, found: Found, changed: Json, options: Json) -> Json:
    """Stores the object with other replicas, whose Scale was admitted; the object afterwards."""
    plain = replace(call.request, headers={**call.request.headers, "accept": "application/json"})
    inner = ResourceCall(
        call.kernel, plain, replace(call.info, subresource=""), call.resource, call.user, call.warnings
    )
    reply = await store_update(inner, found, changed, options, owned=True, is_admitted=True)
    stored: Json = msgspec.json.decode(reply.body)
    return stored


def scale_reply(call: ResourceCall, value: Json) -> Reply:
    """A Scale as the answer, in the form that was asked for."""
    form = asked_form(call.request.headers.get("accept", ""), has_protobuf=not call.resource.is_custom)
    ages = Ages(call.kernel.clock)

    def cells(scale: Json) -> list[Any]:
        counts = [(scale.get(part) or {}).get("replicas", 0) for part in ("spec", "status")]
        return [scale["metadata"]["name"], *counts, ages.of(scale)]

    if form.kind == "PartialObjectMetadataList":
        go_type = "*v1.Scale" if call.resource.is_custom else "*autoscaling.Scale"
        why = f"you requested {form.kind}, but the requested object is not a list ({go_type})"
        raise StatusError(406, "NotAcceptable", why)
    columns = _CUSTOM_COLUMNS if call.resource.is_custom else _COLUMNS
    body = shaped_part(value, TableRows(columns, cells), form, call.request)
    return Reply(200, body, content_type=form.media_type, warnings=call.warnings)


def _media_type(call: ResourceCall) -> str:
    return call.request.headers.get("content-type", "").split(";")[0].strip()


def scale_options(call: ResourceCall) -> Json:
    """The options of a write, which are looked at before anything else."""
    if call.info.verb == "patch":
        return patch_options(call.request, is_apply=_media_type(call) == _APPLY)
    return write_options("UpdateOptions", call.request)


def warn_of_fields(call: ResourceCall, asked: Json, refused: Callable[[str], StatusError]) -> None:
    """Warns of what is in a Scale that was sent twice, or that Scales do not have; or refuses it, if that is wanted."""
    doubled = duplicate_faults(call.request, _media_type(call))
    call.warnings += strict_faults(call.request, asked, schema_of(SCALE), refused, found=doubled)


class Scaled(msgspec.Struct, frozen=True):
    """An object with its Scale: `entries` are its managed fields, `replicas` where its versions have their replicas."""

    call: ResourceCall
    scale: Json
    entries: list[Json]
    replicas: Mapping[str, tuple[str, ...]]

    @property
    def live(self) -> Json:
        """The Scale with the managed fields of the object that are about it."""
        managed = entries_of_scale(self.entries, self.replicas)
        metadata = {**self.scale["metadata"], **({"managedFields": managed} if managed else {})}
        return {**self.scale, "metadata": metadata}

    def patched(self) -> Json:
        """The Scale after the patch of the request, with managed fields of its own if it was applied."""
        call = self.call
        if _media_type(call) != _APPLY:
            return patched_value(call, self.live, _media_type(call), schema_of(SCALE))
        desired = decode_json(call.request.body, _APPLY)
        live = self.live
        if call.resource.is_custom and "managedFields" not in live["metadata"]:
            raise StatusError(500, "", f"{_FIRST} (/; {_KIND}) to proper version: {_NO_SCALES}")
        scale = self._applied(live, desired)
        call.warnings += repeated_keys(call)
        return scale

    def _applied(self, live: Json, desired: Json) -> Json:
        call = self.call
        scale = applied_scale(live, desired, ScaleApply(call.manager, call.request.flag("force"), call.now()))
        which = f"{scale['metadata'].get('namespace', '')}/{scale['metadata'].get('name', '')}; {_KIND}"
        faults = schema_of(SCALE).faults(scale)
        if faults or call.resource.is_custom:
            why = f"unable to convert unstructured object to {_KIND}: {faults[0].message}" if faults else _NO_SCALES
            raise StatusError(500, "", f"failed to convert new object ({which}) to proper version: {why}")
        return scale

    def owned(self, asked: Json) -> list[Json]:
        """The managed fields of the object after the write: whoever changes the replicas owns them."""
        scale = self._managed(asked)
        return entries_from_scale(self.entries, scale, self.replicas, self.call.resource.api_version)

    def _managed(self, asked: Json) -> list[Json]:
        if _media_type(self.call) == _APPLY:
            applied: list[Json] = asked["metadata"].get("managedFields", [])
            return applied
        replicas = (asked.get("spec") or {}).get("replicas")
        wanted = {**asked, "spec": {"replicas": replicas} if replicas else {}}
        return updated_scale(self.live, wanted, manager=self.call.manager, now=self.call.now())
