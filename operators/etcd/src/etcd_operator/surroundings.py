"""What stands around the members: services, and the disruption budget."""

from __future__ import annotations

from typing import Any

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import budget, services
from navarch import Context
from navarch.api import to_builtins
from navarch.errors import Forbidden, Invalid
from navarch.k8s.core.v1 import Service
from navarch.k8s.policy.v1 import PodDisruptionBudget

__all__ = ["surround"]


async def surround(cluster: EtcdCluster, ctx: Context, voters: int) -> list[str]:
    """Brings them about; and back, where somebody has changed them. What stands in the way of that, in words: members are
    seen to all the same.
    """
    everything: list[Service | PodDisruptionBudget] = [*services(cluster), budget(cluster, voters)]
    return [words for wanted in everything if (words := await _brought_about(cluster, ctx, wanted))]


async def _brought_about(cluster: EtcdCluster, ctx: Context, wanted: Service | PodDisruptionBudget) -> str:
    found: Service | PodDisruptionBudget | None = await ctx.get(type(wanted), wanted.name)
    owners = {each.uid for each in found.metadata.owner_references or ()} if found is not None else set()
    if found is not None and cluster.metadata.uid not in owners:
        return f"{wanted.kind} {wanted.name} is there, and not of this cluster: delete it, if it is not needed"
    try:
        await ctx.apply(wanted)
    except Invalid:
        return await _put_right(ctx, found, wanted)
    except Forbidden as error:
        return f"Kubernetes does not let it happen: {error}"
    return ""


async def _put_right(
    ctx: Context, found: Service | PodDisruptionBudget | None, wanted: Service | PodDisruptionBudget
) -> str:
    """What somebody has added does not go together with what is wanted, and is not there to stay."""
    if found is None:
        return f"{wanted.kind} {wanted.name} cannot be made"
    spec: dict[str, Any] = to_builtins(wanted.spec)
    try:
        await ctx.patch(found, {"spec": spec if isinstance(wanted, Service) else {**spec, "maxUnavailable": None}})
    except Invalid:
        return f"{wanted.kind} {wanted.name} was made anew by somebody, and cannot be put right: delete it"
    return ""
