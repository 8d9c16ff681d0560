"""Everything an API server publishes about its built-in kinds, without descriptions, as the project's data files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubernetes_api.compact import compact

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
BUILD_FACTS = ("buildDate", "compiler", "gitCommit", "gitTreeState", "goVersion", "platform")
"""What `/version` says of the server's build: not the API's, and different on every machine."""

Json = dict[str, Any]
Files = dict[str, Any]
"""Data files: their content by name."""


class Readable(Protocol):
    """What gives JSON by path."""

    def get(self, path: str, accept: str = "application/json") -> Any:
        """The JSON at `path`, in the form that `accept` asks for."""
        ...


@dataclass(frozen=True)
class Added:
    """The groups and versions of a cluster that are not Kubernetes' own: custom resources and aggregated servers."""

    versions: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def to(cls, server: Readable) -> Added:
        """What was added to this server."""
        versions = set()
        for crd in server.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]:
            versions |= {(crd["spec"]["group"], version["name"]) for version in crd["spec"]["versions"]}
        for service in server.get("/apis/apiregistration.k8s.io/v1/apiservices")["items"]:
            if service["spec"].get("service"):
                versions.add((service["spec"]["group"], service["spec"]["version"]))
        return cls(versions)

    def has_document(self, name: str, every: set[str]) -> bool:
        """Whether an OpenAPI document is of an added version, or of a group with no other versions."""
        group, _, version = name.removeprefix("apis/").partition("/")
        if version:
            return (group, version) in self.versions
        own = {version for other, version in self.versions if other == group}
        return bool(own) and {f"apis/{group}/{version}" for version in own} >= {
            document for document in every if document.startswith(f"apis/{group}/")
        }


def fetch(server: Readable) -> Files:
    """The data files for what `server` publishes now."""
    added = Added.to(server)
    discovery = {root: _built_in(server.get(f"/{root}", AGGREGATED), added) for root in ("api", "apis")}
    version = server.get("/version")
    return compact(_documents(server, added)) | {
        "version.json": {key: value for key, value in version.items() if key not in BUILD_FACTS},
        "discovery.json": discovery,
        "tables.json": dict(_tables(server, discovery)),
    }


def _documents(server: Readable, added: Added) -> dict[str, Json]:
    names = set(server.get("/openapi/v3")["paths"])
    return {
        name: without_descriptions(server.get(f"/openapi/v3/{name}"))
        for name in sorted(names)
        if not added.has_document(name, names)
    }


def without_descriptions(document: Json) -> Json:
    """An OpenAPI document without its prose. A schema's property may itself be called `description`: it stays."""
    stripped: Json = _strip(document)
    return stripped


def _strip(value: Any, *, names: bool = False) -> Any:
    """`names` says that the keys of `value` are names that the API chose, not OpenAPI's own words."""
    if isinstance(value, list):
        return [_strip(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _strip(item, names=not names and key == "properties")
        for key, item in value.items()
        if names or key != "description"
    }


def _built_in(discovery: Json, added: Added) -> Json:
    groups = []
    for group in discovery["items"]:
        name = group["metadata"].get("name", "")
        versions = [version for version in group["versions"] if (name, version["version"]) not in added.versions]
        group["metadata"] = {"name": name} if name else {}
        if versions:
            groups.append({**group, "versions": versions})
    return {**discovery, "items": groups}


def _tables(server: Readable, discovery: dict[str, Json]) -> Iterator[tuple[str, list[Json]]]:
    for root, group, version in _versions(discovery):
        prefix = "/".join(part for part in (group, version["version"]) if part)
        for resource in version["resources"]:
            if "list" in resource["verbs"]:
                table = server.get(f"/{root}/{prefix}/{resource['resource']}?limit=1", TABLE)
                yield f"{prefix}/{resource['resource']}", _strip(table["columnDefinitions"])


def _versions(discovery: dict[str, Json]) -> Iterator[tuple[str, str, Json]]:
    for root, groups in discovery.items():
        for group in groups["items"]:
            for version in group["versions"]:
                yield root, group["metadata"].get("name", ""), version
