"""All resources of Kubernetes' own discovery, as the server serves them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from navarch._base.clock import Clock, SystemClock
from navarch.cluster.server.kinds.builtin.addresses import ServiceAddresses
from navarch.cluster.server.kinds.builtin.cells.age import Ages
from navarch.cluster.server.kinds.builtin.cells.rows import Rows
from navarch.cluster.server.kinds.builtin.conversions import converter_of
from navarch.cluster.server.kinds.builtin.creating import mark_namespace_deleted
from navarch.cluster.server.kinds.builtin.kinds import rules_of
from navarch.cluster.server.kinds.builtin.parts import PARTS
from navarch.cluster.server.kinds.builtin.prefixes import storage_prefix
from navarch.cluster.server.kinds.builtin.reset_fields import RESET_FIELDS, ResetFields, field_resets
from navarch.cluster.server.kinds.builtin.schema import schema_of
from navarch.cluster.server.kinds.builtin.strategy import BuiltinStrategy, StatusStrategy
from navarch.cluster.server.objects.types import Column, ResourceType, Subresource
from navarch.cluster.server.wire.request import Json
from navarch.k8s.published import published

__all__ = ["builtin_types"]


_CREATED_BY_UPDATES: Final = frozenset(
    {
        "leases",
        "endpoints",
        "events",
        "limitranges",
        "services",
        "runtimeclasses",
        "clusterroles",
        "clusterrolebindings",
        "roles",
        "rolebindings",
    }
)
"""What a replacement makes if it is not there."""
_RETURNED: Final = frozenset(
    {
        "resourceclaimtemplates",
        "resourceslices",
        "resourceclaims",
        "deviceclasses",
        "csidrivers",
        "storageclasses",
        "volumeattachments",
        "csinodes",
        "volumeattributesclasses",
        "resourcequotas",
        "persistentvolumes",
        "serviceaccounts",
        "persistentvolumeclaims",
        "namespaces",
        "pods",
        "services",
        "podtemplates",
    }
)
"""What a deletion answers with."""


def builtin_types(clock: Clock | None = None, addresses: ServiceAddresses | None = None) -> list[ResourceType]:
    """Every built-in resource in every version.

    `clock` (the system's by default) tells the ages in tables; `addresses` (by default, a range of its own that nobody
    tells what is stored) gives Services theirs.
    """
    clock = clock or SystemClock()
    addresses = addresses or ServiceAddresses(clock, random.Random())  # noqa: S311 - addresses are no secret
    ages = Ages(clock)
    return [_resource_type(found, ages, addresses) for found in _found()]


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


def _resource_type(found: _Found, ages: Ages, addresses: ServiceAddresses) -> ResourceType:
    group, version, resource, schema_name, columns = found
    kind, plural = resource["responseKind"]["kind"], resource["resource"]
    api_version = f"{group}/{version}".removeprefix("/")
    schema, rules = schema_of(schema_name), rules_of(api_version, plural)
    namespaced = resource["scope"] == "Namespaced"
    rows = Rows(api_version, plural, columns, ages)
    if (group, plural) == ("", "services"):
        rules = addresses.bound_to(rules)
    reset_fields = RESET_FIELDS.get((group, kind), ResetFields())

    def make(part: type[BuiltinStrategy], subresource: str = "") -> BuiltinStrategy:
        return part(schema, rules, rows, reset_fields, subresource=subresource, namespaced=namespaced)

    return ResourceType(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=resource["singularResource"],
        namespaced=namespaced,
        verbs=tuple(resource["verbs"]),
        schema=schema,
        strategy=make(BuiltinStrategy),
        list_kind=f"{kind}List",
        short_names=tuple(resource.get("shortNames", ())),
        categories=tuple(resource.get("categories", ())),
        columns=columns,
        subresources={
            each["subresource"]: _subresource(each, found, make) for each in resource.get("subresources", ())
        },
        storage_version="v2" if group == "autoscaling" else version,
        storage_prefix=storage_prefix(group, plural),
        unconditional_update=rules.allows_unconditional_update,
        create_on_update=plural in _CREATED_BY_UPDATES,
        returns_deleted=plural in _RETURNED,
        convert=converter_of(group, plural),
        reset_fields=field_resets(group, kind),
        mark_deleted=mark_namespace_deleted if plural == "namespaces" else None,
    )


def _subresource(
    listed: Json, found: _Found, make: Callable[[type[BuiltinStrategy], str], BuiltinStrategy]
) -> Subresource:
    kind, name = listed["responseKind"], listed["subresource"]
    part = PARTS.get((found.resource["resource"], name), StatusStrategy if name == "status" else None)
    return Subresource(
        name=name,
        kind=kind["kind"],
        group=kind["group"] or found.group,
        version=kind["version"] or found.version,
        verbs=tuple(listed["verbs"]),
        strategy=None if part is None else make(part, name),
    )
