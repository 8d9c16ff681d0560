"""The kinds that a server serves, from its discovery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kubernetes_api.annotations import reference
from navarch.k8s.published import META, Published

Json = dict[str, Any]
GroupVersionKind = tuple[str, str, str]


@dataclass(frozen=True)
class ServedKind:
    """How the objects of a kind are served. A kind that is only a subresource's has that one's name as its plural."""

    group: str
    version: str
    plural: str
    singular: str
    namespaced: bool
    has_status: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


def served_kinds(published: Published) -> dict[str, ServedKind]:
    """The kinds of single objects, by schema."""
    served = dict(_subresources(published)) | dict(_resources(published))
    found = {}
    for name in published.schema_names():
        schema = published.schema(name)
        metadata = reference(schema.get("properties", {}).get("metadata", {}))
        for identity in schema.get("x-kubernetes-group-version-kind", ()):
            kind = served.get((identity["group"], identity["version"], identity["kind"]))
            if kind and metadata == f"{META}.ObjectMeta":
                found[name] = kind
    return found


def _versions(published: Published) -> Iterator[tuple[str, str, Json]]:
    for root in ("api", "apis"):
        for group in published.discovery(root)["items"]:
            for version in group["versions"]:
                for resource in version["resources"]:
                    yield group["metadata"].get("name", ""), version["version"], resource


def _resources(published: Published) -> Iterator[tuple[GroupVersionKind, ServedKind]]:
    for group, version, resource in _versions(published):
        subresources = {part["subresource"] for part in resource.get("subresources", ())}
        yield (
            _identity(resource, group, version),
            ServedKind(
                group=group,
                version=version,
                plural=resource["resource"],
                singular=resource["singularResource"],
                namespaced=resource["scope"] == "Namespaced",
                has_status="status" in subresources,
                short_names=tuple(resource.get("shortNames", ())),
                categories=tuple(resource.get("categories", ())),
            ),
        )


def _subresources(published: Published) -> Iterator[tuple[GroupVersionKind, ServedKind]]:
    for group, version, resource in _versions(published):
        for part in resource.get("subresources", ()):
            if "responseKind" in part:
                identity = _identity(part, group, version)
                name = part["subresource"]
                scope = resource["scope"] == "Namespaced"
                yield identity, ServedKind(identity[0], identity[1], name, name, namespaced=scope, has_status=False)


def _identity(served: Json, group: str, version: str) -> GroupVersionKind:
    """Discovery leaves the group and version of a kind empty where they are the resource's own."""
    kind = served["responseKind"]
    if not kind["version"]:
        return group, version, kind["kind"]
    return kind["group"], kind["version"], kind["kind"]
