"""From a CustomResourceDefinition to the resources that the server serves for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from navarch.cluster.server.kinds.builtin.cells.age import Ages
from navarch.cluster.server.kinds.custom.columns import cells_of, columns_of
from navarch.cluster.server.kinds.custom.conversion import Conversion
from navarch.cluster.server.kinds.custom.jsonpath import compile_path
from navarch.cluster.server.kinds.custom.scale_paths import ScalePaths
from navarch.cluster.server.kinds.custom.schema import CustomSchema
from navarch.cluster.server.kinds.custom.strategy import CustomStrategy, Form, StatusStrategy
from navarch.cluster.server.objects.fields import shape_of
from navarch.cluster.server.objects.types import ResourceType, Subresource, version_priority
from navarch.cluster.server.wire.request import Json

__all__ = ["custom_types"]

_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def custom_types(definition: Json, revision: int, ages: Ages, conversion: Conversion | None) -> list[ResourceType]:
    """A resource for each version that is served. `revision` is that of the CRD: older objects may have another shape."""
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
    """Fields that were written in one version are still owned when an object is seen in another."""
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
        unconditional_update=False,
        deprecation=_deprecation(spec, version),
    )


def _reshape(value: Json, schemas: Mapping[str, CustomSchema]) -> None:
    schema = schemas.get(str(value["apiVersion"]).rpartition("/")[2])
    if schema is not None:
        schema.reshape(value)


def _form(spec: Json, version: Json, schema: CustomSchema, ages: Ages) -> Form:
    parts = version.get("subresources") or {}
    scale = parts.get("scale")
    return Form(
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


def _subresources(form: Form, kind: str) -> dict[str, Subresource]:
    found: dict[str, Subresource] = {}
    if form.has_status:
        found["status"] = Subresource(name="status", kind=kind, strategy=StatusStrategy(form))
    if form.scale is not None:
        found["scale"] = Subresource(name="scale", kind="Scale", group="autoscaling", version="v1")
    return found


def _deprecation(spec: Json, version: Json) -> str:
    """What clients are told when they use a deprecated version."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    said = f"{group}/{version['name']} {kind} is deprecated"
    newer = _newest(spec, version["name"])
    return f"{said}; use {group}/{newer} {kind}" if newer else said


def _newest(spec: Json, name: str) -> str:
    """The best version that is served, not deprecated, and newer than this one."""
    ahead = [
        each["name"]
        for each in spec["versions"]
        if each.get("served") and not each.get("deprecated") and version_priority(each["name"]) > version_priority(name)
    ]
    return max(ahead, key=version_priority, default="")
