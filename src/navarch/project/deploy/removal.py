"""Removes a deployment: its objects, what its operator has written, and, only if that is asked for, CRDs with their objects.

The revisions go last, with the namespace if that is the deployment's own and empty: a removal that was interrupted is
completed by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from navarch.api import Kind
from navarch.client import Client, Preconditions
from navarch.errors import Conflict, DeployError, NotFound
from navarch.project.crd_installation import CrdObjects, refuse_foreign_crds, stored_objects, uninstall
from navarch.project.dependency_order import rank_of
from navarch.project.deploy.access import check_undeploy
from navarch.project.deploy.custom_objects import delete_custom_objects
from navarch.project.deploy.diagnosis import PODS, REPLICA_SETS
from navarch.project.deploy.namespaces import NAMESPACES, contents, find_namespace, until_deleted
from navarch.project.deploy.ownership import foreign_mark, foreign_owner
from navarch.project.deploy.release import CRD, ObjectId, Release
from navarch.project.deploy.revisions import Revision, RevisionHistory
from navarch.project.deploy.server_side_apply import Applier
from navarch.project.manifests.model import Json

__all__ = ["DeploymentRemoval", "plan_removal", "remove"]

_PAUSE_SECONDS: Final = 0.2
_NAMESPACE_SECONDS: Final = 60.0
_PODS_SHOWN: Final = 3
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRemoval:
    """What `remove` deletes, and what it keeps."""

    release: Release
    """The newest one."""
    objects: list[Json]
    """In the order of their deletion: an object goes before those that it needs."""
    written: list[Json]
    """What the operator has written: webhook configurations, the Lease, certificates."""
    crds: list[CrdObjects]
    """The CRDs of the deployment, with the number of their objects."""
    deletes_crds: bool
    foreign: list[str]
    """The objects of others for which the namespace is kept; empty if it is deleted, or not the deployment's."""
    deletes_namespace: bool
    revisions: int

    def counts(self) -> dict[str, int]:
        """Returns the number of objects by kind that are deleted."""
        found: dict[str, int] = {}
        for each in (*self.objects, *self.written):
            found[each["kind"]] = found.get(each["kind"], 0) + 1
        found["Secret"] = found.get("Secret", 0) + self.revisions
        if self.deletes_crds:
            for crd in self.crds:
                found[crd.crd] = crd.objects
            found[CRD] = len(self.crds)
        if self.deletes_namespace:
            found["Namespace"] = 1
        return {kind: count for kind, count in found.items() if count or "." in kind}


async def plan_removal(
    client: Client, project: str, namespace: str, *, delete_crds: bool, say: Say
) -> DeploymentRemoval:
    """Returns what removing the deployment would delete. Writes nothing.

    Raises `DeployError` if there is no deployment, `MissingPermissionsError` with all that the user may not delete, and
    `CrdError` for CRDs of others.
    """
    place = await find_namespace(client, namespace, _NAMESPACE_SECONDS, say)
    known = await RevisionHistory(client, project, namespace).read() if place is not None else []
    if place is None or not known:
        raise DeployError(
            f"{project}: expected a deployment in namespace {namespace}, got none; name its namespace: --namespace"
        )
    release = known[-1].release
    applier = Applier(client, release)
    objects = [each for each in _all_objects(known) if await _is_own(applier, each, release)]
    written = [each for each in _all_written(known) if await _is_unmarked(applier, each, release)]
    crds = await stored_objects(client, release.crds)
    if delete_crds:
        refuse_foreign_crds(release.operator, crds)
    await check_undeploy(client, release, [*objects, *written, *(release.crds if delete_crds else ())])
    secrets = [ObjectId("", "Secret", "", f"{project}.v{each.number}") for each in known]
    is_own = not foreign_owner(place, release)
    ours = [*secrets, *(ObjectId.of(each) for each in (*objects, *written))]
    custom = {each["spec"]["names"]["kind"] for each in release.crds} if delete_crds else set()
    foreign = await contents(client, namespace, ours, without=custom) if is_own else []
    return DeploymentRemoval(
        release=release,
        objects=objects,
        written=written,
        crds=crds,
        deletes_crds=delete_crds,
        foreign=foreign,
        deletes_namespace=is_own and not foreign,
        revisions=len(known),
    )


def _all_objects(known: Sequence[Revision]) -> list[Json]:
    """Returns the objects of all revisions, but neither CRDs nor the namespace."""
    found = {ObjectId.of(each): each for revision in known for each in revision.release.objects}
    kept = [each for each in found.values() if each["kind"] not in {CRD, "Namespace"}]
    return sorted(kept, key=rank_of, reverse=True)


def _all_written(known: Sequence[Revision]) -> list[Json]:
    return [*{ObjectId.of(each): each for revision in known for each in revision.release.written}.values()]


async def _is_own(applier: Applier, manifest: Json, release: Release) -> bool:
    try:
        found = await applier.read(manifest)
    except DeployError:  # its kind is gone, and the object with it
        return False
    return found is not None and not foreign_owner(found, release)


async def _is_unmarked(applier: Applier, manifest: Json, release: Release) -> bool:
    found = await applier.read(manifest)
    return found is not None and not foreign_mark(found, release)


async def remove(client: Client, removal: DeploymentRemoval, *, seconds: float, say: Say = lambda _: None) -> None:
    """Deletes as planned, and returns when everything is gone.

    Custom objects go first, while the operator still runs and removes its finalizers. Raises `DeployError` for objects that
    are still there after `seconds`, with what holds them.
    """
    release = removal.release
    if removal.deletes_crds:
        await delete_custom_objects(client, release.crds, seconds, say)
    for each in removal.objects:
        await _delete(client, each, say)
        if each["kind"] == "Deployment":
            await _until_ended(client, release, seconds, say)
            for own in removal.written:
                await _delete(client, own, say)
    for own in removal.written:  # an operator that was still ending may have written them again
        await _delete(client, own, say)
    if removal.deletes_crds:
        say("deleting CRDs")
        await uninstall(client, release.operator, removal.crds, seconds=seconds)
    if removal.deletes_namespace:
        await _delete_namespace(client, removal, say)
    else:
        await RevisionHistory(client, release.project, release.namespace).delete_all()


async def _delete(client: Client, manifest: Json, say: Say) -> None:
    kind = await client.discovery.kind(manifest["apiVersion"], manifest["kind"])
    metadata = manifest["metadata"]
    try:
        await client.delete(kind, metadata["name"], namespace=metadata.get("namespace"), propagation="Background")
    except NotFound:
        return
    say(f"deleted {ObjectId.of(manifest)}")


async def _until_ended(client: Client, release: Release, seconds: float, say: Say) -> None:
    """Returns when neither pods nor ReplicaSets of the operator are left."""
    limit = client.clock.monotonic() + seconds
    while left := [*await _names(client, PODS, release), *await _names(client, REPLICA_SETS, release)]:
        if client.clock.monotonic() >= limit:
            raise DeployError(
                f"{release.project}: expected its pods to end within {seconds:g} s, but {', '.join(left[:_PODS_SHOWN])} did not; "
                f"look at their node, then run the command again: it continues here"
            )
        say(f"waiting until {len(left)} pods and ReplicaSets have ended")
        await client.clock.sleep(_PAUSE_SECONDS)


async def _names(client: Client, kind: Kind, release: Release) -> list[str]:
    found = await client.list(kind, namespace=release.namespace, labels=release.selector)
    return [f"{kind.kind} {each.name}" for each in found]


async def _delete_namespace(client: Client, removal: DeploymentRemoval, say: Say) -> None:
    """Deletes the namespace if nothing of others has come into it meanwhile; else only the revisions."""
    release = removal.release
    history = RevisionHistory(client, release.project, release.namespace)
    place = await find_namespace(client, release.namespace, _NAMESPACE_SECONDS, say)
    if place is None:
        return
    secrets = [ObjectId("", "Secret", "", history.secret(each.number)) for each in await history.read()]
    if left := await contents(client, release.namespace, secrets):
        await history.delete_all()
        say(f"kept namespace {release.namespace}: it has {', '.join(left)}")
        return
    say(f"deleting namespace {release.namespace}")
    try:
        await client.delete(NAMESPACES, release.namespace, preconditions=Preconditions(uid=place.metadata["uid"]))
    except (NotFound, Conflict):
        return
    await until_deleted(client, release.namespace, _NAMESPACE_SECONDS)
