"""All resources of Kubernetes' own discovery, as the server serves them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from navarch._base.clock import Clock, SystemClock
from navarch.cluster.server.kinds.builtin import autoscaling, certificates, nodes, policy, rbac
from navarch.cluster.server.kinds.builtin.apiserver import rules as apiserver
from navarch.cluster.server.kinds.builtin.apps import rules as apps
from navarch.cluster.server.kinds.builtin.batch import rules as batch
from navarch.cluster.server.kinds.builtin.core import rules as core
from navarch.cluster.server.kinds.builtin.generic.columns import Ages, Rows
from navarch.cluster.server.kinds.builtin.generic.schema import schema_of
from navarch.cluster.server.kinds.builtin.generic.strategy import BuiltinStatusStrategy, BuiltinStrategy, Rules
from navarch.cluster.server.kinds.builtin.networking import rules as networking
from navarch.cluster.server.kinds.builtin.networking.allocator import ServiceAllocator
from navarch.cluster.server.kinds.builtin.pods import rules as pods
from navarch.cluster.server.kinds.builtin.reset_fields import RESET_FIELDS, ResetFields, field_resets
from navarch.cluster.server.kinds.builtin.storage import rules as storage
from navarch.cluster.server.objects.types import ResourceType, Subresource, TableColumn
from navarch.cluster.server.wire.request import Json
from navarch.k8s.published import published

_GROUPS: Final = (
    apiserver,
    apps,
    autoscaling,
    batch,
    certificates,
    core,
    networking,
    nodes,
    pods,
    policy,
    rbac,
    storage,
)
_RULES: Final = {key: rules for group in _GROUPS for key, rules in group.RULES.items()}
_PLAIN: Final = Rules()


def builtin_types(clock: Clock | None = None, addresses: ServiceAllocator | None = None) -> list[ResourceType]:
    """Every built-in resource in every version.

    `clock` (the system's by default) tells the ages in tables; `addresses` (by default, a range of its own that nobody
    tells what is stored) gives Services theirs.
    """
    clock = clock or SystemClock()
    addresses = addresses or ServiceAllocator(clock, random.Random())  # noqa: S311 - addresses are no secret
    ages = Ages(clock)
    rules = {**_RULES, **addresses.bound_to(_RULES)}
    return [_resource_type(found, ages, rules.get((found.api_version, found.plural), _PLAIN)) for found in _found()]


class _Discovered(NamedTuple):
    """A resource of the published discovery."""

    group: str
    version: str
    resource: Json
    schema_name: str
    columns: tuple[TableColumn, ...]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}".removeprefix("/")

    @property
    def plural(self) -> str:
        name: str = self.resource["resource"]
        return name


@cache
def _found() -> tuple[_Discovered, ...]:
    names = _schema_names()
    columns = published().columns()
    return tuple(
        _Discovered(group, version, resource, names[group, version, resource["responseKind"]["kind"]], _columns(listed))
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


def _columns(listed: list[Json]) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(each["name"], each["type"], each["format"], priority=each["priority"]) for each in listed)


def _resource_type(found: _Discovered, ages: Ages, rules: Rules) -> ResourceType:
    group, version, resource, schema_name, columns = found
    kind, schema = resource["responseKind"]["kind"], schema_of(schema_name)
    namespaced = resource["scope"] == "Namespaced"
    rows = Rows(rules.cells, columns, ages)
    reset_fields = RESET_FIELDS.get((group, kind), ResetFields())

    def make(part: type[BuiltinStrategy], subresource: str = "") -> BuiltinStrategy:
        return part(schema, rules, rows, reset_fields, subresource=subresource, namespaced=namespaced)

    return ResourceType(
        group=group,
        version=version,
        kind=kind,
        plural=found.plural,
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
            each["subresource"]: _subresource(each, found, rules, make) for each in resource.get("subresources", ())
        },
        storage_version=rules.storage_version or version,
        storage_prefix=f"/registry/{rules.storage_prefix or found.plural}/",
        unconditional_update=rules.allows_unconditional_update,
        create_on_update=rules.creates_on_update,
        returns_deleted=rules.returns_deleted,
        convert=rules.convert,
        mark_deleted=rules.mark_deleted,
        deletion=rules.deletion,
        has_watch_cache=rules.has_watch_cache,
        selects_namespace=rules.selects_namespace,
        unknown_field_label=rules.unknown_field_label,
        is_own_namespace=rules.is_own_namespace,
        hidden_annotation=rules.hidden_annotation,
        stored_as=rules.stored_as,
        reset_fields=field_resets(group, kind),
    )


def _subresource(
    listed: Json, found: _Discovered, rules: Rules, make: Callable[[type[BuiltinStrategy], str], BuiltinStrategy]
) -> Subresource:
    kind, name = listed["responseKind"], listed["subresource"]
    part = rules.subresources.get(name, BuiltinStatusStrategy if name == "status" else None)
    return Subresource(
        name=name,
        kind=kind["kind"],
        group=kind["group"] or found.group,
        version=kind["version"] or found.version,
        verbs=tuple(listed["verbs"]),
        strategy=None if part is None else make(part, name),
    )
