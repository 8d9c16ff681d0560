"""ClusterRoles that are made of others: their rules follow those of the roles that they select."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from navarch.api import Key, Labels, to_builtins
from navarch.cache import Cached, Entry
from navarch.controller.cache_reader import Lookup
from navarch.controller.context import Context
from navarch.controller.triggers import ByMetadata
from navarch.k8s.rbac.v1 import ClusterRole, PolicyRule
from navarch.operator import Operator

__all__ = ["declare"]

_MANAGER: Final = "clusterrole-aggregation-controller"
_AGGREGATED: Final = ("aggregated", "yes")


def _aggregated(role: ClusterRole) -> list[str]:
    return [_AGGREGATED[1]] if role.aggregation_rule is not None else []


_ROLES: Final = Cached(ClusterRole, indexes={_AGGREGATED[0]: _aggregated})


def declare(operator: Operator) -> None:
    """Adds the controller. Whoever may do what does not wait for it: the server gathers rules by itself."""

    @operator.controller(_ROLES, watches={_ROLES: ByMetadata(_everybody)}, name="clusterrole-aggregation")
    async def gather(role: ClusterRole, ctx: Context) -> None:
        if role.aggregation_rule is None:
            return
        rules = _gathered(role, await ctx.list(ClusterRole))
        if rules == (role.rules or []):
            return
        desired = ClusterRole(name=role.name)
        if rules:
            desired.rules = rules
        await ctx.client.using(manager=_MANAGER).apply(desired, force=True)


def _everybody(_: Entry, lookup: Lookup) -> Iterable[Key]:
    """Any role may be selected now, or no longer."""
    return [Key("", role.name) for role in lookup.list(ClusterRole, index=_AGGREGATED)]


def _gathered(role: ClusterRole, roles: Iterable[ClusterRole]) -> list[PolicyRule]:
    """In the order of the selectors, then of names; none twice."""
    assert role.aggregation_rule is not None
    others = sorted((each for each in roles if each.name != role.name), key=lambda each: each.name)
    found: list[PolicyRule] = []
    for selector in role.aggregation_rule.cluster_role_selectors or ():
        labels = Labels.from_wire(to_builtins(selector))
        for other in others:
            if labels.matches(other.labels):
                found += [rule for rule in other.rules or () if rule not in found]
    return found
