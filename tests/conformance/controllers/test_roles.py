"""ClusterRoles that are made of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from conformance.controllers.watching import until
from navarch.client import Client, MergePatch
from navarch.errors import NotFound
from navarch.k8s.meta.v1 import LabelSelector
from navarch.k8s.rbac.v1 import AggregationRule, ClusterRole, PolicyRule


@pytest.fixture
async def prefix(client: Client) -> AsyncIterator[str]:
    """Roles whose names begin so go with the test."""
    found = client.options.namespace
    yield found
    for role in await client.list(ClusterRole):
        if role.name.startswith(found):
            with suppress(NotFound):
                await client.delete(ClusterRole, role.name)


def rule(resource: str) -> PolicyRule:
    return PolicyRule(verbs=["get"], api_groups=[""], resources=[resource])


async def test_role_has_the_rules_of_those_that_it_selects(client: Client, prefix: str) -> None:
    """By their names, none twice, as they come, change and go; whatever else it was given is taken away."""
    label = f"{prefix}.example.com/part"
    selector = LabelSelector(match_labels={label: "yes"})
    whole = ClusterRole(
        name=f"{prefix}-whole",
        aggregation_rule=AggregationRule(cluster_role_selectors=[selector]),
        rules=[rule("nodes")],
    )
    await client.create(whole)
    await client.create(ClusterRole(name=f"{prefix}-b", labels={label: "yes"}, rules=[rule("pods"), rule("secrets")]))
    await client.create(ClusterRole(name=f"{prefix}-a", labels={label: "yes"}, rules=[rule("services"), rule("pods")]))

    async def rules() -> list[str]:
        found = await client.get(ClusterRole, whole.name)
        return [(each.resources or [""])[0] for each in found.rules or []]

    await until(rules, lambda found: found == ["services", "pods", "secrets"], "the rules of both")
    changed = MergePatch({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]})
    await client.patch(ClusterRole, f"{prefix}-b", changed)
    await until(rules, lambda found: found == ["services", "pods", "configmaps"], "the rules after the change")
    await client.patch(ClusterRole, f"{prefix}-b", MergePatch({"metadata": {"labels": {label: None}}}))
    await client.delete(ClusterRole, f"{prefix}-a")
    await until(rules, lambda found: found == [], "no rules")
    managers = [each.manager for each in (await client.get(ClusterRole, whole.name)).metadata.managed_fields or []]
    assert "clusterrole-aggregation-controller" not in managers
