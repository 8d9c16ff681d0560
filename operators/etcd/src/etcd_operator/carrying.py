"""Carries one step out. Each can be carried out twice: what is there already is left, what is gone already is gone."""

from __future__ import annotations

from etcd_operator.etcd import Etcd
from etcd_operator.keeper import Keeper
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import claim, grown, keeps_data, peer_url, pod, secure_peer_url, settled
from etcd_operator.steps import (
    AddMember,
    AskWho,
    BackUp,
    Compact,
    Defragment,
    DeleteClaim,
    DeletePod,
    Disarm,
    GiveUpVersion,
    GrowClaim,
    MoveLeader,
    Promote,
    Remember,
    RemoveMember,
    Restore,
    Secured,
    SecurePeer,
    Settle,
    StartMember,
    Step,
)
from navarch import Context
from navarch.errors import AlreadyExists, EtcdNotFoundError
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod

__all__ = ["carry_out"]


async def carry_out(step: Step, cluster: EtcdCluster, ctx: Context, etcd: Etcd, keeper: Keeper) -> None:
    """Raises an `EtcdError` or `ApiError` if it cannot be carried out; then the next look says what is there."""
    match step:
        case Remember(number, secured):
            cluster.status.cluster_id, cluster.status.secured = f"{number:x}", secured
        case Secured():
            cluster.status.secured = True
        case GiveUpVersion(version):
            cluster.status.failed_version = version
            cluster.status.failed_generation = cluster.metadata.generation or 0
        case BackUp():
            await keeper.back_up(cluster, ctx)
        case Restore(origin, safely):
            await keeper.restore(cluster, ctx, origin, safely=safely)
        case StartMember() | Settle() | DeletePod() | DeleteClaim() | GrowClaim():
            await _in_kubernetes(step, cluster, ctx)
        case _:
            await _in_etcd(step, cluster, etcd)


async def _in_kubernetes(
    step: StartMember | Settle | DeletePod | DeleteClaim | GrowClaim, cluster: EtcdCluster, ctx: Context
) -> None:
    match step:
        case StartMember():
            await _start(step, cluster, ctx)
        case Settle(name):
            found = await ctx.get(Pod, name)
            if found is not None:
                await ctx.patch(found, settled(name, peer_url(cluster, name)))
        case DeletePod(name):
            await ctx.delete(Pod, name)
        case DeleteClaim(name):
            await ctx.delete(PersistentVolumeClaim, name)
        case GrowClaim(name):
            small = await ctx.get(PersistentVolumeClaim, name)
            change = grown(cluster, small) if small is not None else None
            if small is not None and change is not None:
                await ctx.patch(small, change)


async def _start(step: StartMember, cluster: EtcdCluster, ctx: Context) -> None:
    if keeps_data(cluster) and step.start.how in {"seed", "join"}:
        await _made(ctx, claim(cluster, step.name))
    await _made(ctx, pod(cluster, step.name, step.start, version=step.version))


async def _made(ctx: Context, new: Pod | PersistentVolumeClaim) -> None:
    if await ctx.get(type(new), new.name) is not None:
        return
    try:
        await ctx.create(new)
    except AlreadyExists:
        return


async def _in_etcd(
    step: AddMember | Promote | RemoveMember | SecurePeer | AskWho | MoveLeader | Compact | Defragment | Disarm,
    cluster: EtcdCluster,
    etcd: Etcd,
) -> None:
    match step:
        case AddMember(name, learner):
            await etcd.add(peer_url(cluster, name), learner=learner)
        case Promote(member):
            await etcd.promote(member.id)
        case RemoveMember(member):
            await _removed(etcd, member.id)
        case SecurePeer(member):
            await etcd.update(member.id, secure_peer_url(cluster, member.name))
        case AskWho():
            await etcd.ask_who()
        case MoveLeader(leader, to):
            await etcd.move_leader(leader.name, to.id)
        case _:
            await _upkeep(step, etcd)


async def _upkeep(step: Compact | Defragment | Disarm, etcd: Etcd) -> None:
    match step:
        case Compact(revision):
            await etcd.compact(revision)
        case Defragment(name, forget):
            if forget:
                await etcd.compact(forget)
            await etcd.defragment(name)
        case Disarm(number, alarm):
            await etcd.disarm(number, alarm)


async def _removed(etcd: Etcd, member: int) -> None:
    try:
        await etcd.remove(member)
    except EtcdNotFoundError:
        return
