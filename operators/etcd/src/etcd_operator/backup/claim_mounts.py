"""Opens claims for backups: the operator creates a pod that mounts the claim, connects to it, and deletes it.

Both sides authenticate with certificates of an authority that is created for this one pod. The operator's key never leaves
its process, so a pod of an earlier process is useless, and is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from weakref import WeakValueDictionary

from etcd_operator.backup.claim_files import ClaimConnection, ClaimFiles
from etcd_operator.backup.claim_pods import LABELS, claim_pod, keys_for, new_claim, secret_name, secret_of
from etcd_operator.backup.snapshot_store import DestinationError, StoreError
from etcd_operator.destinations import PvcSource
from etcd_operator.kinds import PodPolicy
from etcd_operator.manifests import PROGRAM_PORT
from etcd_operator.tls import EtcdCredentials, secret_access_denied
from navarch import Context
from navarch.api import Object
from navarch.errors import AlreadyExists, Forbidden, Invalid
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, Secret

_SOON: Final = 0.2
_LONGEST_WORDS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRequest:
    """A request to open a store for `owner`, an EtcdBackup or EtcdRestore, with the pod policy of its cluster.

    A claim must be open within `seconds`, and its pod ends after `longest`. A restore does not create a missing claim
    (`makes_claims`), so that a mistyped name is noticed.
    """

    ctx: Context
    owner: Object
    policy: PodPolicy
    seconds: float
    longest: float
    makes_claims: bool


async def orphaned_pods(owner: Object, ctx: Context) -> list[Pod]:
    """Returns the pods that an earlier attempt of this backup or restore left."""
    found = await ctx.list(Pod, labels=LABELS)
    return [pod for pod in found if pod.metadata.deletion_timestamp is None and _is_of(pod, owner)]


def _is_of(pod: Pod, owner: Object) -> bool:
    return any(reference.uid == owner.metadata.uid for reference in pod.metadata.owner_references or ())


class ClaimMounter:
    """Opens a claim for one request at a time: its volume may not be mountable on two nodes."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._taken: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def opened(self, source: PvcSource, visit: StoreRequest) -> AsyncIterator[ClaimFiles]:
        """Opens the claim for the block; raises a `BackupError` that names it."""
        if ".." in PurePosixPath(source.path).parts:
            raise DestinationError("expected a pvc.path within the claim")
        async with self._alone(source.claim_name, visit):
            await _claimed(source, visit)
            files, keys = keys_for(visit.ctx.now(), visit.longest)
            secret = secret_name(visit.owner, files)
            wanted = claim_pod(visit.owner, source, self._image, visit.policy, secret=secret, seconds=visit.longest)
            pod = await _made(wanted, visit)
            try:
                await _create_secret(secret_of(pod, secret, files), visit)
                async with _reached(pod, source.claim_name, keys, visit) as connection:
                    yield ClaimFiles(source.claim_name, connection)
            finally:
                await visit.ctx.delete(pod)

    @asynccontextmanager
    async def _alone(self, claim: str, visit: StoreRequest) -> AsyncIterator[None]:
        lock = self._taken.setdefault((visit.owner.namespace, claim), asyncio.Lock())
        try:
            async with asyncio.timeout(visit.seconds):
                await lock.acquire()
        except TimeoutError:
            raise StoreError(f"another backup or restore has used the claim {claim} for {visit.seconds:g} s") from None
        try:
            yield
        finally:
            lock.release()


async def _claimed(source: PvcSource, visit: StoreRequest) -> None:
    """Creates a missing claim if its size is given and the request allows it."""
    found = await visit.ctx.get(PersistentVolumeClaim, source.claim_name)
    if found is not None:
        _refuse_unfit(found)
    elif not visit.makes_claims:
        raise DestinationError(f"PersistentVolumeClaim {source.claim_name} does not exist")
    elif source.size is None:
        raise DestinationError(f"PersistentVolumeClaim {source.claim_name} does not exist: create it, or set pvc.size")
    else:
        await _create_claim(new_claim(source, source.size), visit)


def _refuse_unfit(claim: PersistentVolumeClaim) -> None:
    faults = {
        "is being deleted": claim.metadata.deletion_timestamp is not None,
        "has lost its volume": claim.status.phase == "Lost",
        "has volumeMode Block: expected Filesystem": claim.spec.volume_mode == "Block",
        "belongs to a member and is deleted with it: use a separate claim": "etcd_cluster" in claim.labels,
    }
    for message, is_so in faults.items():
        if is_so:
            raise DestinationError(f"the PersistentVolumeClaim {claim.name} {message}")


async def _create_claim(claim: PersistentVolumeClaim, visit: StoreRequest) -> None:
    try:
        await visit.ctx.create(claim, owned=False)
    except AlreadyExists:
        return
    except (Forbidden, Invalid) as error:
        raise DestinationError(
            f"the API server refused the PersistentVolumeClaim {claim.name}: {_short(error.message)}"
        ) from None
    visit.ctx.event(
        "ClaimMade", f"created the missing PersistentVolumeClaim {claim.name}; it stays when the backup is deleted"
    )


async def _made(wanted: Pod, visit: StoreRequest) -> Pod:
    """Creates the pod; waits while one of an earlier attempt terminates."""
    clock = visit.ctx.client.clock
    end = clock.monotonic() + visit.seconds
    found: Pod | None = None
    while clock.monotonic() < end:
        try:
            return await visit.ctx.create(wanted, owned=False)
        except AlreadyExists:
            found = await visit.ctx.get(Pod, wanted.name)
            if found is not None and not _is_of(found, visit.owner):
                raise DestinationError(
                    f"the pod {found.name} exists and does not belong to this {visit.owner.kind}"
                ) from None
        except (Forbidden, Invalid) as error:
            raise DestinationError(f"the API server refused the pod {wanted.name}: {_short(error.message)}") from None
        await clock.sleep(_SOON)
    raise StoreError(
        f"the pod {wanted.name} of an earlier attempt still exists: {_state(found)}; "
        f"if its node is lost for good: kubectl delete pod {wanted.name} --force"
    )


async def _create_secret(secret: Secret, visit: StoreRequest) -> None:
    try:
        await visit.ctx.create(secret, owned=False)
    except Forbidden as error:
        raise DestinationError(
            secret_access_denied(f"create Secret {secret.name}", visit.owner.namespace, error)
        ) from None


@asynccontextmanager
async def _reached(pod: Pod, claim: str, keys: EtcdCredentials, visit: StoreRequest) -> AsyncIterator[ClaimConnection]:
    """Connects to the pod as soon as it answers."""
    with keys.tls() as files:
        assert files is not None
        tls = files.context()
    clock = visit.ctx.client.clock
    end = clock.monotonic() + visit.seconds
    message = ""
    while clock.monotonic() < end:
        now = await visit.ctx.get(Pod, pod.name)
        if now is None or _has_ended(now):
            raise StoreError(f"the pod {pod.name} that mounts the claim {claim} has ended: {_state(now)}")
        message = _state(now)
        if now.status.phase == "Running" and now.status.pod_ip:
            async with ClaimConnection.to(now.status.pod_ip, PROGRAM_PORT, tls, keys.server_name) as connection:
                if await connection.answers():
                    yield connection
                    return
        await clock.sleep(_SOON)
    raise StoreError(
        f"the pod {pod.name} that mounts the claim {claim} did not answer within {visit.seconds:g} s: {message}; "
        f"`kubectl events --for pod/{pod.name}` may say more"
    )


def _has_ended(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.status.phase in {"Failed", "Succeeded"}


def _state(pod: Pod | None) -> str:
    """Describes the pod's state with the message of the scheduler or the kubelet."""
    if pod is None:
        return "it was deleted"
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return _short(condition.message or condition.reason or "no node has been found for it")
    for container in pod.status.container_statuses or ():
        state = container.state
        told = (state.waiting or state.terminated) if state is not None else None
        if told is not None:
            return _short(f"{told.reason or ''} {told.message or ''}".strip())
    return _short(pod.status.message or f"it is {pod.status.phase or 'new'}")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_WORDS else f"{text[:_LONGEST_WORDS]}..."
