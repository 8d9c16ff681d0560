"""Deploys a release: checks everything first, then applies and prunes; a second run completes what was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from navarch.api import Dynamic
from navarch.client import Client
from navarch.errors import DeployError, Forbidden
from navarch.project.deploy.access import check_deploy
from navarch.project.deploy.namespaces import find_namespace
from navarch.project.deploy.ownership import foreign_owner
from navarch.project.deploy.readiness import until_ready
from navarch.project.deploy.release import CRD, ObjectId, Release
from navarch.project.deploy.revisions import Revision, RevisionHistory, since_last_deployed
from navarch.project.deploy.server_side_apply import AppliedObject, Applier
from navarch.project.manifests.model import Json

__all__ = ["DeployPlan", "complete", "deploy_release", "execute", "plan"]

_NAMESPACE_SECONDS: Final = 30.0
_NEVER_PRUNED: Final = frozenset({CRD, "Namespace"})
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployPlan:
    """What `execute` will do; everything that can be known before is checked."""

    release: Release
    known: list[Revision]
    applied: list[Json]
    """Without a namespace that belongs to others: it is used as it is."""
    pruned: list[Json]
    has_namespace: bool
    changes: list[AppliedObject] = field(default_factory=list)


async def plan(client: Client, release: Release, *, force: bool = False, say: Say = lambda _: None) -> DeployPlan:
    """Returns what deploying the release would change. Writes nothing: the server checks each object in a dry run.

    Objects in a namespace that does not exist yet cannot be tried. Raises `MissingPermissionsError` with all permissions that
    the user lacks, `DeployError` for objects and fields of others and for a namespace that is being deleted, `CrdError` for
    a CRD that must not be changed so.
    """
    try:
        namespace = await find_namespace(client, release.namespace, _NAMESPACE_SECONDS, say)
        known = (
            await RevisionHistory(client, release.project, release.namespace).read() if namespace is not None else []
        )
    except Forbidden:  # listed below, with everything else that is missing
        namespace, known = None, []
    is_foreign = namespace is not None and bool(foreign_owner(namespace, release))
    pruned = _superfluous(release, known)
    await check_deploy(client, release, pruned, has_namespace=is_foreign)
    applied = [each for each in release.objects if not (is_foreign and each["kind"] == "Namespace")]
    applier = Applier(client, release, force=force, dry_run=True)
    await _refuse_foreign(applier, applied, release)
    changes = [
        *_used(release, namespace, is_foreign=is_foreign),
        *[await _tried(applier, each, has_namespace=namespace is not None) for each in applied],
        *filter(None, [await applier.prune(each) for each in pruned]),
    ]
    return DeployPlan(
        release=release,
        known=known,
        applied=applied,
        pruned=pruned,
        has_namespace=namespace is not None,
        changes=changes,
    )


def _superfluous(release: Release, known: Sequence[Revision]) -> list[Json]:
    """Returns the objects of earlier revisions that the release does not have; those that need others come first."""
    wanted = {ObjectId.of(each) for each in release.objects}
    found: dict[ObjectId, Json] = {}
    for revision in since_last_deployed(known):
        for each in revision.release.objects:
            if each["kind"] not in _NEVER_PRUNED and ObjectId.of(each) not in wanted:
                found[ObjectId.of(each)] = each
    return list(reversed(found.values()))


async def _refuse_foreign(applier: Applier, applied: Sequence[Json], release: Release) -> None:
    found = [applier.refusal(each, await applier.read(each)) for each in applied]
    if refused := [each for each in found if each]:
        raise DeployError(
            f"{release.project}: expected to create its objects, or to find those of its own deployment in namespace "
            f"{release.namespace}, but {'; '.join(refused)}; remove them or rename the project, or take them over: "
            f"navarch deploy --force"
        )


def _used(release: Release, namespace: Dynamic | None, *, is_foreign: bool) -> list[AppliedObject]:
    return (
        [AppliedObject.of(ObjectId("", "Namespace", "", release.namespace), "used")] if namespace and is_foreign else []
    )


async def _tried(applier: Applier, manifest: Json, *, has_namespace: bool) -> AppliedObject:
    if manifest["metadata"].get("namespace") and not has_namespace:
        return AppliedObject.of(ObjectId.of(manifest), "created")
    return await applier.apply(manifest)


async def execute(
    client: Client, planned: DeployPlan, *, force: bool = False, say: Say = lambda _: None
) -> tuple[Revision, list[AppliedObject]]:
    """Applies and prunes as planned; returns the revision, which is still pending, and what changed.

    The revision is written first: after an interruption, the next run applies everything again, and prunes what any of the
    revisions since the last deployed one has left.
    """
    release = planned.release
    applier = Applier(client, release, force=force)
    changes = [each for each in planned.changes if each.result == "used"]
    namespaces = [each for each in planned.applied if each["kind"] == "Namespace"]
    changes += [await applier.apply(each) for each in namespaces]
    revision = await RevisionHistory(client, release.project, release.namespace).begin(release, planned.known)
    for each in planned.applied:
        if each not in namespaces:
            say(f"applying {ObjectId.of(each)}")
            changes.append(await applier.apply(each))
    for each in planned.pruned:
        if (pruned := await applier.prune(each)) is not None:
            say(f"pruned {ObjectId.of(each)}")
            changes.append(pruned)
    return revision, changes


async def complete(client: Client, planned: DeployPlan, revision: Revision) -> None:
    """Marks the revision as deployed, deletes old ones, and what the operator of an earlier one has written for itself.

    That is a webhook configuration, for example, if this release has no webhooks: nobody would answer it any more.
    """
    release = planned.release
    wanted = {ObjectId.of(each) for each in release.written}
    applier = Applier(client, release)
    for former in since_last_deployed(planned.known):
        for each in former.release.written:
            if ObjectId.of(each) not in wanted:
                await applier.delete_written(each)
    history = RevisionHistory(client, release.project, release.namespace)
    await history.set_state(revision, "deployed")
    await history.trim()


async def deploy_release(
    client: Client, planned: DeployPlan, *, wait: float, force: bool = False, say: Say = lambda _: None
) -> tuple[Revision, list[AppliedObject]]:
    """Executes the plan and waits for `wait` seconds until the operator works; 0 does not wait.

    Raises `DeployError` with the causes if it does not work in time; the revision is then marked as failed.
    """
    revision, changes = await execute(client, planned, force=force, say=say)
    if wait:
        try:
            await until_ready(client, planned.release, wait, say)
        except DeployError:
            history = RevisionHistory(client, planned.release.project, planned.release.namespace)
            await history.set_state(revision, "failed")
            raise
    await complete(client, planned, revision)
    return revision, changes
