"""OpenAPI documents of custom kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from navarch.cluster.server.objects.descriptions import described
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.request import Json
from navarch.k8s.published import META, SCHEMA_REFERENCE, published, references_in

_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION: Final = {
    "type": "string",
    "description": "APIVersion defines the versioned schema of this representation of an object. Servers should convert "
    "recognized schemas to the latest internal value, and may reject unrecognized values. "
    f"More info: {_CONVENTIONS}#resources",
}
_KIND: Final = {
    "type": "string",
    "description": "Kind is a string value representing the REST resource this object represents. Servers may infer "
    "this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. "
    f"More info: {_CONVENTIONS}#types-kinds",
}
_OBJECT_META: Final = {
    "allOf": [{"$ref": f"{SCHEMA_REFERENCE}{META}.ObjectMeta"}],
    "description": f"Standard object's metadata. More info: {_CONVENTIONS}#metadata",
}
_LIST_META: Final = {
    "allOf": [{"$ref": f"{SCHEMA_REFERENCE}{META}.ListMeta"}],
    "description": f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds",
}
_SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_WRITING: Final = ("dryRun", "fieldManager", "fieldValidation")
_LISTING: Final = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETING: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES: Final = {
    **dict.fromkeys(("allowWatchBookmarks", "sendInitialEvents", "watch", "orphanDependents", "force"), "boolean"),
    **dict.fromkeys(("limit", "timeoutSeconds", "gracePeriodSeconds"), "integer"),
}
_BODIES: Final = ("application/json", "application/yaml")
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")


def document_of(resources: Sequence[ResourceType]) -> Json:
    """The document of one group and version."""
    ordered = sorted(resources, key=lambda resource: resource.plural)
    schemas: Json = {}
    for resource in ordered:
        schemas[_name(resource)] = _object_schema(resource)
        schemas[_name(resource, resource.list_kind)] = _list_schema(resource)
    paths = dict(sorted(path for resource in ordered for path in _paths(resource)))
    _add_referenced(schemas, [*references_in(schemas), *references_in(paths)])
    info = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": dict(sorted(schemas.items()))}}


def _add_referenced(schemas: Json, names: Iterable[str]) -> None:
    for name in names:
        if name not in schemas:
            schemas[name] = described(name, published().schema(name))
            _add_referenced(schemas, list(references_in(schemas[name])))


def _name(resource: ResourceType, kind: str = "") -> str:
    """`example.com` becomes `com.example.v1.Widget`."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, kind or resource.kind])


def _object_schema(resource: ResourceType) -> Json:
    schema: Json = _published(dict(resource.schema.document))
    own = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": _OBJECT_META}
    schema["properties"] = {**own, **{k: v for k, v in schema.get("properties", {}).items() if k not in own}}
    return schema | _tags(resource, resource.kind)


def _list_schema(resource: ResourceType) -> Json:
    items = {
        "type": "array",
        "items": {"$ref": SCHEMA_REFERENCE + _name(resource)},
        "description": f"List of {resource.plural}. More info: {_CONVENTIONS}",
    }
    properties = {"apiVersion": _API_VERSION, "items": items, "kind": _KIND, "metadata": _LIST_META}
    described = f"{resource.list_kind} is a list of {resource.kind}"
    schema: Json = {"description": described, "type": "object", "required": ["items"], "properties": properties}
    return schema | _tags(resource, resource.list_kind)


def _tags(resource: ResourceType, kind: str) -> Json:
    tags: Json = {
        "x-kubernetes-group-version-kind": [{"group": resource.group, "kind": kind, "version": resource.version}]
    }
    if fields := resource.strategy.selectable_fields({"metadata": {}}):
        tags["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in fields]
    return tags


def _published(schema: Any) -> Any:
    """A structural schema as OpenAPI says it: integers or strings, and objects inside of objects, are spelled out."""
    if isinstance(schema, list):
        return [_published(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key in {"default", "enum"} else _published(value) for key, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string") is True and "anyOf" not in schema and "allOf" not in schema:
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("x-kubernetes-embedded-resource") is True:
        own = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": _OBJECT_META}
        made["properties"] = {**made.get("properties", {}), **own}
        made["required"] = [*made.get("required", ()), "kind", "apiVersion"]
    return made


def _paths(resource: ResourceType) -> Iterator[tuple[str, Json]]:
    root, own, listed = f"/apis/{resource.api_version}", _name(resource), _name(resource, resource.list_kind)
    home = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    if resource.namespaced:
        yield f"{root}/{resource.plural}", {"get": _operation(resource, "list", listed, _LISTING)}
    yield (
        home,
        {
            "get": _operation(resource, "list", listed, _LISTING),
            "post": _operation(resource, "post", own, _WRITING, body=own),
            "delete": _operation(resource, "deletecollection", f"{META}.Status", _LISTING),
            "parameters": _path_parameters(home),
        },
    )
    one = f"{home}/{{name}}"
    yield one, {**_item(resource, own), "delete": _delete(resource), "parameters": _path_parameters(one)}
    for name in resource.subresources:
        part = f"{one}/{name}"
        schema = _SCALE if name == "scale" else own
        yield part, {**_item(resource, schema), "parameters": _path_parameters(part)}


def _item(resource: ResourceType, schema: str) -> Json:
    return {
        "get": _operation(resource, "get", schema, ("resourceVersion",)),
        "put": _operation(resource, "put", schema, _WRITING, body=schema),
        "patch": _operation(
            resource, "patch", schema, (*_WRITING, "force"), body=f"{META}.Patch", media_types=_PATCHES
        ),
    }


def _delete(resource: ResourceType) -> Json:
    return _operation(resource, "delete", f"{META}.Status", _DELETING, body=f"{META}.DeleteOptions")


def _operation(
    resource: ResourceType,
    action: str,
    answer: str,
    parameters: Sequence[str],
    *,
    body: str = "",
    media_types: Sequence[str] = _BODIES,
) -> Json:
    operation: Json = {
        "parameters": [_parameter(name, "query") for name in parameters],
        "responses": {"200": {"description": "OK", "content": _content(answer, _BODIES)}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
    }
    if body:
        operation["requestBody"] = {"content": _content(body, media_types)}
    return operation


def _content(schema: str, media_types: Iterable[str]) -> Json:
    return {each: {"schema": {"$ref": SCHEMA_REFERENCE + schema}} for each in media_types}


def _parameter(name: str, place: str) -> Json:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"name": name, "in": place, "schema": schema, **({"required": True} if place == "path" else {})}


def _path_parameters(path: str) -> list[Json]:
    named = [_parameter(name, "path") for name in ("name", "namespace") if f"{{{name}}}" in path]
    return [*named, _parameter("pretty", "query")]
