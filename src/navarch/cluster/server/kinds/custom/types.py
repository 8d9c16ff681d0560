"""The resource types of a CustomResourceDefinition, and the conversion between its versions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.kinds.builtin.generic.columns import Ages
from navarch.cluster.server.kinds.custom.paths import ScalePaths, compile_path
from navarch.cluster.server.kinds.custom.schema import CustomSchema
from navarch.cluster.server.kinds.custom.strategy import (
    CustomForm,
    CustomStatusStrategy,
    CustomStrategy,
    cells_of,
    columns_of,
)
from navarch.cluster.server.objects.fields import shape_of
from navarch.cluster.server.objects.types import ResourceType, Subresource, version_priority
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError

Converter = Callable[[Sequence[Json], str], Awaitable[list[Json]]]
CallWebhook = Callable[[Json, Json, Sequence[Json], str], Awaitable[list[Json]]]
"""Calls the webhook of a CRD (its `spec.conversion.webhook`) to convert objects to a version."""


class Conversion(msgspec.Struct, frozen=True):
    """Converts objects between versions. Without `ask`, CRDs with a webhook cannot be read in another version."""

    ask: CallWebhook | None = None

    def converter(self, definition: Json, schemas: Mapping[str, CustomSchema]) -> Converter:
        """Returns the converter of one CRD; objects in the stored version get the shape of its schema."""
        spec = definition["spec"]
        stored = next(version["name"] for version in spec["versions"] if version.get("storage"))

        async def convert(values: Sequence[Json], api_version: str) -> list[Json]:
            _refuse_unknown(values, spec["group"], schemas)
            converted = await self._converted(definition, values, api_version)
            if api_version.rpartition("/")[2] == stored:
                for value in converted:
                    schemas[stored].reshape(value)
            return converted

        return convert

    async def _converted(self, definition: Json, values: Sequence[Json], api_version: str) -> list[Json]:
        conversion = definition["spec"].get("conversion") or {}
        if conversion.get("strategy") != "Webhook":
            return [{**value, "apiVersion": api_version} for value in values]
        if self.ask is None:
            kind = f"{values[0]['apiVersion']}, Kind={values[0]['kind']}"
            raise StatusError(500, "", f"conversion webhook for {kind} failed: no webhook can be reached from here")
        return await self.ask(definition, conversion["webhook"], values, api_version)


def _refuse_unknown(values: Sequence[Json], group: str, schemas: Mapping[str, CustomSchema]) -> None:
    for value in values:
        found, _, version = str(value["apiVersion"]).rpartition("/")
        if found != group or version not in schemas:
            raise StatusError(500, "", f"request to convert CR from an invalid group/version: {value['apiVersion']}")


_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def custom_types(definition: Json, revision: int, ages: Ages, conversion: Conversion | None) -> list[ResourceType]:
    """Returns a resource type for each served version. `revision` is the CRD's: older objects may have another shape."""
    spec = definition["spec"]
    schemas = {version["name"]: CustomSchema(version["schema"]["openAPIV3Schema"]) for version in spec["versions"]}
    shaped_at = revision if definition["metadata"].get("generation", 1) > 1 else 0
    convert = None
    if len(spec["versions"]) > 1:
        convert = (conversion or Conversion()).converter(definition, schemas)
    resources = [
        replace(
            _resource_type(definition, version, schemas[version["name"]], ages),
            convert=convert,
            reshape=lambda value: _reshape(value, schemas),
            shaped_at=shaped_at,
        )
        for version in spec["versions"]
        if version.get("served")
    ]
    _introduce(resources)
    return resources


def _introduce(resources: list[ResourceType]) -> None:
    """Links the shapes of all versions, so that managed fields of one version hold in another."""
    shapes = {resource.api_version: shape_of(resource) for resource in resources}
    for shape in shapes.values():
        shape.versions = shapes


def _resource_type(definition: Json, version: Json, schema: CustomSchema, ages: Ages) -> ResourceType:
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    form = _form(spec, version, schema, ages)
    return ResourceType(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular", ""),
        namespaced=form.namespaced,
        verbs=_VERBS,
        schema=form.schema,
        strategy=CustomStrategy(form),
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=columns_of(version),
        subresources=_subresources(form, names["kind"]),
        storage_version=next(each["name"] for each in spec["versions"] if each.get("storage")),
        storage_prefix=f"/registry/{spec['group']}/{names['plural']}/",
        is_custom=True,
        selects_namespace=form.namespaced,
        unconditional_update=False,
        deprecation=_deprecation(spec, version),
    )


def _reshape(value: Json, schemas: Mapping[str, CustomSchema]) -> None:
    schema = schemas.get(str(value["apiVersion"]).rpartition("/")[2])
    if schema is not None:
        schema.reshape(value)


def _form(spec: Json, version: Json, schema: CustomSchema, ages: Ages) -> CustomForm:
    parts = version.get("subresources") or {}
    scale = parts.get("scale")
    return CustomForm(
        group=spec["group"],
        plural=spec["names"]["plural"],
        schema=schema,
        cells=cells_of(version, ages),
        selectable={
            each["jsonPath"].removeprefix("."): compile_path(each["jsonPath"])
            for each in version.get("selectableFields") or ()
        },
        scale=None
        if scale is None
        else ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""),
        namespaced=spec["scope"] == "Namespaced",
        has_status="status" in parts,
    )


def _subresources(form: CustomForm, kind: str) -> dict[str, Subresource]:
    found: dict[str, Subresource] = {}
    if form.has_status:
        found["status"] = Subresource(name="status", kind=kind, strategy=CustomStatusStrategy(form))
    if form.scale is not None:
        found["scale"] = Subresource(name="scale", kind="Scale", group="autoscaling", version="v1")
    return found


def _deprecation(spec: Json, version: Json) -> str:
    """Returns the warning for clients of a deprecated version; empty for other versions."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    said = f"{group}/{version['name']} {kind} is deprecated"
    newer = _newest(spec, version["name"])
    return f"{said}; use {group}/{newer} {kind}" if newer else said


def _newest(spec: Json, name: str) -> str:
    """Returns the newest version that is served, not deprecated, and newer than this one."""
    ahead = [
        each["name"]
        for each in spec["versions"]
        if each.get("served") and not each.get("deprecated") and version_priority(each["name"]) > version_priority(name)
    ]
    return max(ahead, key=version_priority, default="")
