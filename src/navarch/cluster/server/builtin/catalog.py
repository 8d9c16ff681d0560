"""All resources of Kubernetes' own discovery, as the server serves them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from navarch._base.clock import Clock, SystemClock
from navarch.cluster.server.builtin.cells.age import Ages
from navarch.cluster.server.builtin.cells.rows import Rows
from navarch.cluster.server.builtin.kinds import rules_of
from navarch.cluster.server.builtin.prefixes import storage_prefix
from navarch.cluster.server.builtin.schema import schema_of
from navarch.cluster.server.builtin.strategy import BuiltinStrategy, StatusStrategy
from navarch.cluster.server.request import Json
from navarch.cluster.server.types import Column, ResourceType, Subresource
from navarch.k8s.published import published

__all__ = ["builtin_types"]


def builtin_types(clock: Clock | None = None) -> list[ResourceType]:
    """Every built-in resource in every version. `clock` (the system's by default) tells the ages in tables."""
    ages = Ages(clock or SystemClock())
    return [_resource_type(found, ages) for found in _found()]


class _Found(NamedTuple):
    """A resource as discovery tells it."""

    group: str
    version: str
    resource: Json
    schema_name: str
    columns: tuple[Column, ...]


@cache
def _found() -> tuple[_Found, ...]:
    names = _schema_names()
    columns = published().columns()
    return tuple(
        _Found(group, version, resource, names[group, version, resource["responseKind"]["kind"]], _columns(listed))
        for group, version, resource in _resources()
        for listed in (columns.get(f"{group}/{version}/{resource['resource']}".removeprefix("/"), []),)
    )


def _resources() -> Iterator[tuple[str, str, Json]]:
    for root in ("api", "apis"):
        for item in published().discovery(root)["items"]:
            for version in item["versions"]:
                for resource in version["resources"]:
                    yield item["metadata"].get("name", ""), version["version"], resource


@cache
def _schema_names() -> dict[tuple[str, str, str], str]:
    """The published schema of each group, version and kind."""
    return {
        (kind["group"], kind["version"], kind["kind"]): name
        for name in published().schema_names()
        for kind in published().schema(name).get("x-kubernetes-group-version-kind", ())
    }


def _columns(listed: list[Json]) -> tuple[Column, ...]:
    return tuple(Column(each["name"], each["type"], each["format"], priority=each["priority"]) for each in listed)


def _resource_type(found: _Found, ages: Ages) -> ResourceType:
    group, version, resource, schema_name, columns = found
    kind, plural = resource["responseKind"]["kind"], resource["resource"]
    api_version = f"{group}/{version}".removeprefix("/")
    schema, rules = schema_of(schema_name), rules_of(api_version, plural)
    namespaced = resource["scope"] == "Namespaced"
    rows = Rows(api_version, plural, columns, ages)
    strategy = BuiltinStrategy(schema, rules, rows, namespaced=namespaced)
    status = StatusStrategy(schema, rules, rows, namespaced=namespaced)
    return ResourceType(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=resource["singularResource"],
        namespaced=namespaced,
        verbs=tuple(resource["verbs"]),
        schema=schema,
        strategy=strategy,
        list_kind=f"{kind}List",
        short_names=tuple(resource.get("shortNames", ())),
        categories=tuple(resource.get("categories", ())),
        columns=columns,
        subresources={
            each["subresource"]: _subresource(each, found, status) for each in resource.get("subresources", ())
        },
        storage_version=version,
        storage_prefix=storage_prefix(group, plural),
    )


def _subresource(listed: Json, found: _Found, status: StatusStrategy) -> Subresource:
    kind = listed["responseKind"]
    return Subresource(
        name=listed["subresource"],
        kind=kind["kind"],
        group=kind["group"] or found.group,
        version=kind["version"] or found.version,
        verbs=tuple(listed["verbs"]),
        strategy=status if listed["subresource"] == "status" else None,
    )
