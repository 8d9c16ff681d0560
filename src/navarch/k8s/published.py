"""What a Kubernetes API server publishes about itself: OpenAPI v3, discovery, table columns and its version.

The files under `data/` are written by `python -m kubernetes_api fetch`. They hold each schema, parameter and list of
media types once; `Published` gives back the documents exactly as the server sends them, without descriptions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["Published", "published"]

SCHEMA_REFERENCE = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OF_EVERY_GROUP = (f"{META}.DeleteOptions", f"{META}.WatchEvent")
"""Schemas that each document claims for its own group and version, beside the core group's."""

Json = dict[str, Any]


class Published:
    """The documents of one Kubernetes version. `read` gives the content of a data file by its name."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = cache(read)

    def version(self) -> Json:
        """What `/version` says of the API; when and with what the server was built is left out."""
        return copy.deepcopy(self._mapping("version.json"))

    def discovery(self, root: str) -> Json:
        """The aggregated discovery (`apidiscovery.k8s.io/v2`) of `api` or `apis`."""
        found: Json = self._mapping("discovery.json")[root]
        return copy.deepcopy(found)

    def columns(self) -> dict[str, list[Json]]:
        """The columns of `kubectl get` by group, version and resource: `apps/v1/deployments`, `v1/pods`."""
        return copy.deepcopy(self._mapping("tables.json"))

    def documents(self) -> tuple[str, ...]:
        """The names of the OpenAPI documents, as `/openapi/v3` lists them: `api/v1`, `apis/apps/v1`, ..."""
        return tuple(self._mapping("openapi.json")["documents"])

    def document(self, name: str) -> Json:
        """The document that `/openapi/v3/<name>` serves; raises KeyError if there is none."""
        if name not in self.documents():
            raise KeyError(name)
        shared = self._mapping("openapi.json")
        paths = {path: self._path_item(item) for path, item in self._mapping(f"paths/{name}.json").items()}
        components: Json = {"securitySchemes": shared["securitySchemes"]}
        if schemas := self._schemas_of(name, paths):
            components["schemas"] = schemas
        document = {"openapi": shared["openapi"], "info": shared["info"], "paths": paths, "components": components}
        return copy.deepcopy(document)

    def schema(self, name: str) -> Json:
        """One schema by its full name, `io.k8s.api.apps.v1.Deployment`; not a copy."""
        package, _, short = name.rpartition(".")
        schema: Json = self._mapping(f"schemas/{package}.json")[short]
        return schema

    def schema_names(self) -> Iterator[str]:
        """The full names of all schemas, sorted by package and name."""
        for package in self._mapping("openapi.json")["packages"]:
            for short in self._mapping(f"schemas/{package}.json"):
                yield f"{package}.{short}"

    def _mapping(self, name: str) -> Json:
        found: Json = self._read(name)
        return found

    def _path_item(self, item: Json) -> Json:
        return {
            key: self._parameters(value) if key == "parameters" else self._operation(value)
            for key, value in item.items()
        }

    def _operation(self, stored: Json) -> Json:
        operation = {**stored, "responses": {code: self._body(body) for code, body in stored["responses"].items()}}
        if "parameters" in stored:
            operation["parameters"] = self._parameters(stored["parameters"])
        if "requestBody" in stored:
            operation["requestBody"] = self._body(stored["requestBody"])
        return operation

    def _parameters(self, stored: str | list[Json]) -> list[Json]:
        """`"{name} ?pretty"` is the parameter `name` of the path and `pretty` of the query."""
        known = self._mapping("openapi.json")["parameters"]
        return [known[name] for name in stored.split()] if isinstance(stored, str) else stored

    def _body(self, stored: Json) -> Json:
        """`"content": "object io.k8s.api.core.v1.Pod"` is that schema in each media type of the set `object`."""
        content = stored.get("content")
        if not isinstance(content, str):
            return stored
        media, _, schema = content.partition(" ")
        types = self._mapping("openapi.json")["media"][media]
        return {**stored, "content": {name: {"schema": {"$ref": SCHEMA_REFERENCE + schema}} for name in types}}

    def _schemas_of(self, document: str, paths: Json) -> Json:
        """The schemas that the paths reach, each with what it reaches itself."""
        found: Json = {}
        open_ends = list(references_in(paths))
        while open_ends:
            name = open_ends.pop()
            if name not in found:
                found[name] = self.schema(name)
                open_ends.extend(references_in(found[name]))
        for name in found.keys() & set(OF_EVERY_GROUP):
            found[name] = claimed_by(document, found[name])
        return found


def references_in(value: Any) -> Iterator[str]:
    """The names of the schemas that a part of a document refers to."""
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(SCHEMA_REFERENCE)
        for item in value.values():
            yield from references_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from references_in(item)


def claimed_by(document: str, schema: Json) -> Json:
    """`schema`, with the document's own group and version among its group-version-kinds."""
    group, _, version = document.removeprefix("apis/").partition("/")
    if document == "api/v1" or not version:
        return schema
    kinds = schema["x-kubernetes-group-version-kind"]
    own = {**kinds[0], "group": group, "version": version}
    return {**schema, "x-kubernetes-group-version-kind": [*kinds, own]}


DATA = Path(__file__).parent / "data"


def _read(name: str) -> Any:
    return msgspec.json.decode((DATA / name).read_bytes())


@cache
def published() -> Published:
    """What this package ships with.

    >>> published().version()["gitVersion"]
    'v1.36.4'
    """
    return Published(_read)
