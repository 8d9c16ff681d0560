"""The changes that a restore makes to a cluster: stop the members, start one from the snapshot, delete old claims."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import aiohttp

from etcd_operator.backup.snapshot_store import BackupError
from etcd_operator.backup.snapshots import Snapshot
from etcd_operator.connector import ConnectedEtcd, PodTls
from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.manifests import (
    PROGRAM_PORT,
    TLS_FOLDER,
    MemberStart,
    is_of,
    keeps_data,
    labels_of,
    listeners,
    member_claim,
    member_name,
    member_pod,
    ordinal_of,
    peer_url,
    program,
    secret_names,
    url,
)
from etcd_operator.manifests.pods import TEMPLATE
from etcd_operator.observe import observe_pod
from etcd_operator.plan.rollout import wanted_version
from etcd_operator.restore.kinds import EtcdRestore
from etcd_operator.tls import CredentialsError
from etcd_operator.versions import EtcdVersion
from navarch import Context
from navarch.api import OwnerReference
from navarch.client import MergePatch
from navarch.errors import AlreadyExists, EtcdAccessError, EtcdError, NotFound
from navarch.k8s.core.v1 import Container, EnvVar, PersistentVolumeClaim, Pod, VolumeMount

RESTORE: Final = f"{GROUP}/restore"
_INCOMING: Final = "/var/etcd/incoming"
_DATA_TOOL: Final = EtcdVersion.of("3.5.0")


def seed(cluster: EtcdCluster, restore: EtcdRestore, image: str) -> Pod:
    """Returns the pod of the first member, with init containers that receive, restore and install the snapshot."""
    name, wanted = restore.status.seed, wanted_version(cluster)
    made = member_pod(cluster, name, MemberStart("seed"), version=wanted)
    made.metadata.annotations = {**made.annotations, RESTORE: restore.metadata.uid or ""}
    made.spec.init_containers = [
        _receiving(cluster, restore, image),
        _making(cluster, restore, wanted),
        _own("install", restore, image),
    ]
    return made


def _receiving(cluster: EtcdCluster, restore: EtcdRestore, image: str) -> Container:
    """Returns the init container that receives the snapshot, with TLS if members serve clients with it."""
    made = _own("receive", restore, image)
    if secret_names(cluster).server:
        made.env = [*(made.env or []), EnvVar(name=TLS_FOLDER, value=listeners.SERVER_FOLDER)]
        made.volume_mounts = [*(made.volume_mounts or []), *listeners.mounts(cluster)]
    return made


def _own(doing: str, restore: EtcdRestore, image: str) -> Container:
    made = program(doing, image, "/var/etcd")
    made.env = [
        *(made.env or []),
        EnvVar(name="RESTORE_SHA256", value=restore.status.sha256),
        EnvVar(name="RESTORE_ID", value=restore.metadata.uid),
    ]
    made.volume_mounts = [_mount()]
    return made


def _making(cluster: EtcdCluster, restore: EtcdRestore, wanted: str) -> Container:
    """Returns the init container that restores the snapshot with the tool of the wanted version.

    The cluster token is the restore's uid, so that leftover members of the old cluster, on unreachable nodes, cannot join.
    """
    name, version = restore.status.seed, wanted.removeprefix("v")
    tool = "etcdutl" if EtcdVersion.of(version) >= _DATA_TOOL else "etcdctl"
    url = peer_url(cluster, name)
    return Container(
        name="make-data",
        image=f"{cluster.spec.repository}:v{version}",
        command=[
            f"/usr/local/bin/{tool}",
            "snapshot",
            "restore",
            f"{_INCOMING}/snapshot.db",
            f"--data-dir={_INCOMING}/data",
            f"--name={name}",
            f"--initial-cluster={name}={url}",
            f"--initial-advertise-peer-urls={url}",
            f"--initial-cluster-token={restore.metadata.uid or restore.name}",
            *_raising(restore, version),
        ],
        env=[EnvVar(name="ETCDCTL_API", value="3")],
        volume_mounts=[_mount()],
    )


def _raising(restore: EtcdRestore, version: str) -> list[str]:
    """Returns the flags that raise the revision, so that watchers list again instead of seeing revisions twice."""
    if not EtcdVersion.of(version).raises_revisions:
        return []
    return [f"--bump-revision={restore.status.next_revision - restore.status.etcd_revision}", "--mark-compacted"]


def _mount() -> VolumeMount:
    return VolumeMount(name="etcd-data", mount_path="/var/etcd")


W = TypeVar("W", Pod, PersistentVolumeClaim)
_GRACE: Final = 2
"""Short, because a leader would try for seven seconds to transfer leadership to members that stop too."""
_FULL: Final = 507
_FORGET: Final = {"status": {"clusterID": "", "leader": "", "members": {"ready": [], "unready": []}}}


async def seed_name(cluster: EtcdCluster, ctx: Context) -> str:
    """Returns the name of the first member: one with a usable claim, whose old data stays beside the new; else an unused name.

    A member whose disk or node has failed is the last choice.
    """
    claims = await _labelled(PersistentVolumeClaim, cluster, ctx)
    failed = {pod.name for pod in await _labelled(Pod, cluster, ctx) if _cannot_start(pod)}
    usable = [each.name for each in claims if is_of(cluster, each) and _is_usable(each)]
    free = member_name(cluster, (each.name for each in claims))
    return min(usable, key=lambda name: (name in failed, ordinal_of(name)), default=free)


def _cannot_start(pod: Pod) -> bool:
    seen = observe_pod(pod)
    return seen.trouble == "disk" or seen.lost == "stranded"


def _is_usable(claim: PersistentVolumeClaim) -> bool:
    return not claim.metadata.deletion_timestamp and claim.status.phase != "Lost"


async def _labelled(kind: type[W], cluster: EtcdCluster, ctx: Context) -> Sequence[W]:
    """Lists objects with the labels of the cluster from the API server."""
    return await ctx.client.list(kind, namespace=cluster.namespace, labels=labels_of(cluster))


async def left_by_others(cluster: EtcdCluster, ctx: Context) -> list[str]:
    """Returns pods and claims with the labels of the cluster that it does not own; a restore must not delete them."""
    found = [*await _labelled(Pod, cluster, ctx), *await _labelled(PersistentVolumeClaim, cluster, ctx)]
    return sorted({each.name for each in found if not is_of(cluster, each)})


async def emptied(cluster: EtcdCluster, ctx: Context) -> bool:
    """Pauses the cluster and deletes its pods; reports whether all are gone and the status is reset."""
    if not cluster.spec.paused:
        await _paused(cluster, ctx, paused=True)
        return False
    if not cluster.status.control_paused or cluster.status.observed_generation != cluster.metadata.generation:
        return False
    pods = [pod for pod in await _labelled(Pod, cluster, ctx) if is_of(cluster, pod)]
    for pod in pods:
        if pod.metadata.deletion_timestamp is None:
            await ctx.delete(Pod, pod.name, grace_seconds=_GRACE)
    if not pods and cluster.status.cluster_id:
        patch = MergePatch(_FORGET)
        await ctx.client.patch(EtcdCluster, cluster.name, patch, namespace=cluster.namespace, subresource="status")
    return not pods and not cluster.status.cluster_id


async def _paused(cluster: EtcdCluster, ctx: Context, *, paused: bool) -> None:
    patch = MergePatch({"spec": {"paused": paused}})
    await ctx.client.patch(EtcdCluster, cluster.name, patch, namespace=cluster.namespace)


async def started(cluster: EtcdCluster, restore: EtcdRestore, ctx: Context, image: str) -> Pod | None:
    """Returns the first member's pod, and creates it if it is missing. None while an outdated pod that cannot start is deleted."""
    found, wanted = await ctx.get(Pod, restore.status.seed), seed(cluster, restore, image)
    if found is None:
        if keeps_data(cluster):
            await _owned(member_claim(cluster, restore.status.seed), cluster, ctx)
        found = await _owned(wanted, cluster, ctx)
    if found.annotations.get(RESTORE) != restore.metadata.uid:
        raise BackupError(f"the pod {found.name} exists and does not belong to this restore")
    if not observe_pod(found).running and found.annotations.get(TEMPLATE) != wanted.annotations.get(TEMPLATE):
        if found.metadata.deletion_timestamp is None:
            await ctx.delete(Pod, found.name)
        return None
    return found


async def _owned(new: W, cluster: EtcdCluster, ctx: Context) -> W:
    new.metadata.namespace = cluster.namespace
    new.metadata.owner_references = [
        OwnerReference(
            api_version=cluster.api_version,
            kind=cluster.kind,
            name=cluster.name,
            uid=cluster.metadata.uid or "",
            controller=True,
            block_owner_deletion=True,
        )
    ]
    try:
        return await ctx.create(new, owned=False)
    except AlreadyExists:
        found = await ctx.client.get(type(new), new.name, namespace=cluster.namespace)
    if not is_of(cluster, found):
        message = (
            f"{new.kind} {new.name} already exists and does not belong to this cluster: delete it if it is not needed"
        )
        raise BackupError(message)
    return found


async def seeded(pod: Pod, first: AbstractAsyncContextManager[ConnectedEtcd], restore: EtcdRestore) -> bool:
    """Reports whether the first member serves the snapshot. Only a running pod is asked: the address of another may be reused."""
    if not observe_pod(pod).running:
        return False
    try:
        async with first as reached:
            status = await reached.etcd.maintenance.status(reached.endpoints[0])
    except EtcdAccessError:
        message = (
            "etcd refuses the password of root: store the password of the snapshot's root in the Secret of spec.auth"
        )
        raise BackupError(message) from None
    except (EtcdError, CredentialsError):
        return False
    return status.leader != 0 and status.header.revision >= restore.status.etcd_revision


async def hand_over(pod: Pod, restore: EtcdRestore, way: PodTls, fetch: Callable[[], Awaitable[Snapshot]]) -> None:
    """Uploads the snapshot to the pod if it waits for it; refuses a snapshot other than the verified one."""
    if not _waits(pod):
        return
    snapshot = await fetch()
    if snapshot.sha256 != restore.status.sha256:
        raise BackupError("the snapshot in the store has changed since the restore started")
    try:
        await _put(f"{url(way.scheme, pod.status.pod_ip or '', PROGRAM_PORT)}/", snapshot, way)
    except aiohttp.ClientError as error:
        full = isinstance(error, aiohttp.ClientResponseError) and error.status == _FULL
        message = (
            f"the volume of {pod.name} is full" if full else f"the pod {pod.name} has not accepted the snapshot yet"
        )
        raise BackupError(message) from None


async def _put(url: str, snapshot: Snapshot, way: PodTls) -> None:
    headers = {"Content-Length": str(snapshot.size)}
    tls, host = way.tls or True, way.host or None
    with _opened(snapshot.path) as file:
        async with aiohttp.ClientSession() as session:
            await session.put(
                url,
                data=file,
                headers=headers,
                raise_for_status=True,
                ssl=tls,
                server_hostname=host,
                allow_redirects=False,
            )


def _waits(pod: Pod) -> bool:
    states = {each.name: each.state for each in pod.status.init_container_statuses or []}
    state = states.get("receive")
    return bool(pod.status.pod_ip) and state is not None and state.running is not None


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")


async def released(cluster: EtcdCluster, restore: EtcdRestore, ctx: Context) -> None:
    """Deletes the claims of the other members after the first one serves; not in a resumed cluster, whose claims may be new."""
    if cluster.status.cluster_id:
        return
    for old in await _labelled(PersistentVolumeClaim, cluster, ctx):
        if old.name != restore.status.seed and is_of(cluster, old):
            await ctx.delete(PersistentVolumeClaim, old.name)


async def resume(cluster: EtcdCluster, ctx: Context) -> None:
    """Unpauses the cluster: from now on claims may belong to new members."""
    await _paused(cluster, ctx, paused=False)


async def is_gone(cluster: EtcdCluster, restore: EtcdRestore, ctx: Context) -> bool:
    """Reports whether all pods and claims of the cluster are gone."""
    if await ctx.list(Pod, labels=labels_of(cluster)):
        return False
    return not await _left(Pod, cluster, restore, ctx) and not await _left(PersistentVolumeClaim, cluster, restore, ctx)


async def _left(kind: type[W], cluster: EtcdCluster, restore: EtcdRestore, ctx: Context) -> bool:
    """Reports whether the API server has such an object, by label or by the first member's name."""
    if await _labelled(kind, cluster, ctx):
        return True
    try:
        await ctx.client.get(kind, restore.status.seed, namespace=cluster.namespace)
    except NotFound:
        return False
    return True
