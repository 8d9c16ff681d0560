"""Executes one step of a plan. Every step is idempotent: it accepts what already exists and what is already gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from etcd_operator.backup_keeper import BackupKeeper
from etcd_operator.etcd import Etcd
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import (
    budget,
    growth_patch,
    keeps_data,
    labels_of,
    member_claim,
    member_pod,
    peer_url,
    secure_peer_url,
    services,
    settle_patch,
)
from etcd_operator.manifests.resources import survivor_patch
from etcd_operator.plan.steps import (
    AddMember,
    AskWho,
    BackUp,
    ChooseSurvivor,
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
from navarch.api import to_builtins
from navarch.errors import AlreadyExists, Conflict, EtcdNotFoundError, Forbidden, Invalid
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, Service
from navarch.k8s.policy.v1 import PodDisruptionBudget


async def apply_services(cluster: EtcdCluster, ctx: Context, voters: int) -> list[str]:
    """Applies the Services and the PodDisruptionBudget of the cluster; returns a message for each that cannot be applied."""
    everything: list[Service | PodDisruptionBudget] = [*services(cluster), budget(cluster, voters)]
    return [message for wanted in everything if (message := await _apply_one(cluster, ctx, wanted))]


async def _apply_one(cluster: EtcdCluster, ctx: Context, wanted: Service | PodDisruptionBudget) -> str:
    found: Service | PodDisruptionBudget | None = await ctx.get(type(wanted), wanted.name)
    owners = {each.uid for each in found.metadata.owner_references or ()} if found is not None else set()
    if found is not None and cluster.metadata.uid not in owners:
        return f"{wanted.kind} {wanted.name} already exists and does not belong to this cluster: delete it if it is not needed"
    try:
        await ctx.apply(wanted)
    except Invalid:
        return await _overwrite_spec(ctx, found, wanted)
    except Forbidden as error:
        return f"the API server refused: {error}"
    return ""


async def _overwrite_spec(
    ctx: Context, found: Service | PodDisruptionBudget | None, wanted: Service | PodDisruptionBudget
) -> str:
    """Overwrites the spec where fields that somebody else added make the apply invalid; returns a message if that fails."""
    if found is None:
        return f"{wanted.kind} {wanted.name} cannot be created"
    spec: dict[str, Any] = to_builtins(wanted.spec)
    try:
        await ctx.patch(found, {"spec": spec if isinstance(wanted, Service) else {**spec, "maxUnavailable": None}})
    except Invalid:
        return f"{wanted.kind} {wanted.name} has immutable fields that differ: delete it, and the operator creates it again"
    return ""


class NameTakenError(Exception):
    """An object that the cluster does not own already has the name of one to be created."""


async def execute(step: Step, cluster: EtcdCluster, ctx: Context, etcd: Etcd, keeper: BackupKeeper) -> None:
    """Executes the step. Raises `EtcdError`, `ApiError` or `NameTakenError`; the next observation shows the result."""
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
        case StartMember() | Settle() | DeletePod() | DeleteClaim() | ChooseSurvivor() | GrowClaim():
            await _in_kubernetes(step, cluster, ctx)
        case Promote(member):
            await _stays(cluster, ctx, member.name)
            await etcd.promote(member.id)
        case _:
            await _in_etcd(step, cluster, etcd)


async def _stays(cluster: EtcdCluster, ctx: Context, name: str) -> None:
    """Raises `Conflict` if the API server says that the pod is terminating: its member must not become a voter."""
    pod = await ctx.client.get(Pod, name, namespace=cluster.namespace)
    if pod.metadata.deletion_timestamp is not None:
        raise Conflict(f"{name} is terminating", code=HTTPStatus.CONFLICT)


async def _others_stay(cluster: EtcdCluster, ctx: Context, name: str) -> None:
    """Raises `Conflict` if the API server lost another pod that the cache still has: deleting a second may lose the quorum."""
    kept = {
        "app": labels_of(cluster)["app"]
    }  # the cache's own selector: a pod that lost its other labels is still a member
    there = {pod.metadata.uid for pod in _staying(await ctx.client.list(Pod, namespace=cluster.namespace, labels=kept))}
    unknown = [pod.name for pod in _staying(ctx.owned(Pod)) if pod.metadata.uid not in there and pod.name != name]
    if unknown:
        raise Conflict(f"{', '.join(sorted(unknown))} ended, and the cache has not noticed", code=HTTPStatus.CONFLICT)


def _staying(pods: Iterable[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.deletion_timestamp is None]


async def _in_kubernetes(
    step: StartMember | Settle | DeletePod | DeleteClaim | ChooseSurvivor | GrowClaim,
    cluster: EtcdCluster,
    ctx: Context,
) -> None:
    match step:
        case StartMember():
            await _start(step, cluster, ctx)
        case Settle(name):
            found = await ctx.get(Pod, name)
            if found is not None:
                await ctx.patch(found, settle_patch(name, peer_url(cluster, name)))
        case DeletePod(name):
            await _others_stay(cluster, ctx, name)
            await ctx.delete(Pod, name)
        case DeleteClaim(name):
            await ctx.delete(PersistentVolumeClaim, name)
        case GrowClaim(name):
            await _changed(ctx, name, lambda found: growth_patch(cluster, found))
        case ChooseSurvivor(name, is_chosen):
            await _changed(ctx, name, lambda _: survivor_patch(is_chosen=is_chosen))


async def _changed(
    ctx: Context, name: str, change_of: Callable[[PersistentVolumeClaim], dict[str, Any] | None]
) -> None:
    found = await ctx.get(PersistentVolumeClaim, name)
    change = change_of(found) if found is not None else None
    if found is not None and change is not None:
        await ctx.patch(found, change)


async def _start(step: StartMember, cluster: EtcdCluster, ctx: Context) -> None:
    if keeps_data(cluster) and step.start.how in {"seed", "join"}:
        await _made(cluster, ctx, member_claim(cluster, step.name))
    await _made(cluster, ctx, member_pod(cluster, step.name, step.start, version=step.version))


async def _made(cluster: EtcdCluster, ctx: Context, new: Pod | PersistentVolumeClaim) -> None:
    """Creates the object, or repairs its labels; refuses one that the cluster does not own, because of the data in it."""
    found: Pod | PersistentVolumeClaim | None = await ctx.get(type(new), new.name)
    if found is None:
        try:
            await ctx.create(new)
        except AlreadyExists:
            return
    elif cluster.metadata.uid not in {each.uid for each in found.metadata.owner_references or ()}:
        raise NameTakenError(
            f"{new.kind} {new.name} already exists and does not belong to this cluster: delete it if it is not needed"
        )
    elif new.labels.items() - found.labels.items():
        await ctx.patch(found, {"metadata": {"labels": new.labels}})


async def _in_etcd(
    step: AddMember | RemoveMember | SecurePeer | AskWho | MoveLeader | Compact | Defragment | Disarm,
    cluster: EtcdCluster,
    etcd: Etcd,
) -> None:
    match step:
        case AddMember(name, learner):
            await etcd.add(peer_url(cluster, name), learner=learner)
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
