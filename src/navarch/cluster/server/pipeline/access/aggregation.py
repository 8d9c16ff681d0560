"""ClusterRoles that are made of others, as Kubernetes' controller makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch.api.selectors import Labels
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError

__all__ = ["aggregated_rules", "stale_aggregates"]


def aggregated_rules(cluster_roles: Mapping[str, Json]) -> dict[str, list[Any]]:
    """The rules of every role that has an aggregationRule, by name, once the controller would find nothing to do.

    Roles come in the order of the selectors, then of their names; a rule that is there already is not repeated.
    """
    members = {name: _members(name, role, cluster_roles) for name, role in cluster_roles.items()}
    sources = {name: found for name, found in members.items() if found is not None}
    rules: dict[str, list[Any]] = {name: [] for name in sources}
    for _ in range(len(sources) + 1):  # a chain of aggregates is at most that long
        before = rules
        rules = {name: _gathered(found, cluster_roles, before) for name, found in sources.items()}
        if rules == before:
            break
    return rules


def stale_aggregates(cluster_roles: Mapping[str, Json]) -> list[Json]:
    """The roles whose stored rules are not those they should have, as they should be stored."""
    return [
        {**cluster_roles[name], "rules": rules}
        for name, rules in aggregated_rules(cluster_roles).items()
        if (cluster_roles[name].get("rules") or []) != rules
    ]


def _members(name: str, role: Json, cluster_roles: Mapping[str, Json]) -> list[str] | None:
    """Whose rules a role gathers; None if it has rules of its own."""
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return None
    try:
        labels = [Labels.from_wire(selector) for selector in aggregation.get("clusterRoleSelectors") or ()]
    except InvalidValueError:
        return None
    others = sorted(set(cluster_roles) - {name})
    return [
        other
        for selector in labels
        for other in others
        if selector.matches(cluster_roles[other]["metadata"].get("labels"))
    ]


def _gathered(members: list[str], cluster_roles: Mapping[str, Json], aggregates: Mapping[str, list[Any]]) -> list[Any]:
    gathered: list[Any] = []
    for member in members:
        for rule in aggregates.get(member, cluster_roles[member].get("rules") or []):
            if rule not in gathered:
                gathered.append(rule)
    return gathered
