"""What stands around the members: services, and the disruption budget."""

from __future__ import annotations

from typing import Any

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import budget, services
from navarch import Context
from navarch.api import to_builtins
from navarch.errors import Invalid
from navarch.k8s.core.v1 import Service
from navarch.k8s.policy.v1 import PodDisruptionBudget

__all__ = ["surround"]


async def surround(cluster: EtcdCluster, ctx: Context, voters: int) -> None:
    """Brings them about; and back, where somebody has changed them."""
    everything: list[Service | PodDisruptionBudget] = [*services(cluster), budget(cluster, voters)]
    for wanted in everything:
        try:
            await ctx.apply(wanted)
        except Invalid:
            await _put_right(ctx, wanted)


async def _put_right(ctx: Context, wanted: Service | PodDisruptionBudget) -> None:
    """What somebody has added does not go together with what is wanted, and is not there to stay."""
    found = await ctx.get(type(wanted), wanted.name)
    if found is not None:
        spec: dict[str, Any] = to_builtins(wanted.spec)
        await ctx.patch(found, {"spec": spec if isinstance(wanted, Service) else {**spec, "maxUnavailable": None}})
