"""OpenAPI documents as data files that hold each part once; `navarch.k8s.published` is the way back."""

from __future__ import annotations

from typing import Any

from navarch.k8s.published import OF_EVERY_GROUP, SCHEMA_REFERENCE, Published

Json = dict[str, Any]

MEDIA = {
    "any": ["*/*"],
    "json": ["application/json"],
    "object": ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"],
    "stream": [
        "application/json",
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/yaml",
    ],
    "patch": [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ],
}
"""The sets of media types in which the API takes or gives one schema."""


def compact(documents: dict[str, Json]) -> dict[str, Any]:
    """The data files for these documents, by name. Raises ValueError if the documents could not be had back."""
    any_document = next(iter(documents.values()))
    parameters = _parameters(documents)
    schemas = _schemas(documents)
    files: dict[str, Any] = {f"schemas/{package}.json": members for package, members in schemas.items()}
    for name, document in documents.items():
        files[f"paths/{name}.json"] = {path: _path_item(item, parameters) for path, item in document["paths"].items()}
    files["openapi.json"] = {
        "openapi": any_document["openapi"],
        "info": any_document["info"],
        "securitySchemes": any_document["components"]["securitySchemes"],
        "documents": sorted(documents),
        "packages": sorted(schemas),
        "media": MEDIA,
        "parameters": parameters,
    }
    _refuse_loss(files, documents)
    return files


def _refuse_loss(files: dict[str, Any], documents: dict[str, Json]) -> None:
    restored = Published(files.__getitem__)
    for name, document in documents.items():
        if restored.document(name) != document:
            raise ValueError(f"the OpenAPI document {name} has parts that the data files cannot hold")


def _schemas(documents: dict[str, Json]) -> dict[str, Json]:
    """The schemas of all documents, by package and short name."""
    packages: dict[str, Json] = {}
    for document in documents.values():
        for name, schema in document["components"].get("schemas", {}).items():
            package, _, short = name.rpartition(".")
            packages.setdefault(package, {})[short] = _unclaimed(name, schema)
    return packages


def _unclaimed(name: str, schema: Json) -> Json:
    if name not in OF_EVERY_GROUP:
        return schema
    key = "x-kubernetes-group-version-kind"
    return {**schema, key: [kind for kind in schema[key] if kind["group"] == ""]}


def _parameters(documents: dict[str, Json]) -> Json:
    """The parameters of all operations by a short name: `{name}` in a path, `?dryRun` in a query."""
    known: Json = {}
    for document in documents.values():
        for item in document["paths"].values():
            for part in item.values():
                for parameter in part if isinstance(part, list) else part.get("parameters", []):
                    known.setdefault(_short_name(parameter), parameter)
    return known


def _short_name(parameter: Json) -> str:
    return f"{{{parameter['name']}}}" if parameter["in"] == "path" else f"?{parameter['name']}"


def _path_item(item: Json, parameters: Json) -> Json:
    return {
        key: _named(value, parameters) if key == "parameters" else _operation(value, parameters)
        for key, value in item.items()
    }


def _operation(operation: Json, parameters: Json) -> Json:
    stored = {**operation, "responses": {code: _body(body) for code, body in operation["responses"].items()}}
    if "parameters" in operation:
        stored["parameters"] = _named(operation["parameters"], parameters)
    if "requestBody" in operation:
        stored["requestBody"] = _body(operation["requestBody"])
    return stored


def _named(given: list[Json], known: Json) -> str | list[Json]:
    """The parameters by their short names; as they are if one of them differs from its namesake."""
    names = [_short_name(parameter) for parameter in given]
    return " ".join(names) if [known[name] for name in names] == given else given


def _body(body: Json) -> Json:
    schemas = [media.get("schema") for media in body.get("content", {}).values()]
    if not schemas or any(schema != schemas[0] for schema in schemas) or "$ref" not in schemas[0]:
        return body
    for name, types in MEDIA.items():
        if set(types) == set(body["content"]):
            return {**body, "content": f"{name} {schemas[0]['$ref'].removeprefix(SCHEMA_REFERENCE)}"}
    return body
