"""The state of a deployment: its revision, replicas, leader, CRDs and webhooks, and what is wrong with it."""

from __future__ import annotations

from typing import Final

import msgspec

from navarch.api import Kind
from navarch.client import Client
from navarch.errors import DeployError, Forbidden, NotFound
from navarch.project.deploy.diagnosis import DEPLOYMENTS, EVENTS, Fault, diagnose, event_time
from navarch.project.deploy.namespaces import find_namespace
from navarch.project.deploy.readiness import LEASES, Readiness
from navarch.project.deploy.release import Release
from navarch.project.deploy.revisions import Revision, RevisionHistory, State
from navarch.project.deploy.webhook_probe import webhook_obstacle

__all__ = ["CrdState", "DeploymentState", "LastWarning", "RevisionState", "deployment_state", "read_revisions"]

_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_NAMESPACE_SECONDS: Final = 0.0
_WARNINGS: Final = 5


class CrdState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One CRD of the deployment."""

    name: str
    established: bool
    stored_versions: list[str] = []


class RevisionState(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of the deployment."""

    number: int
    state: State
    created: str
    image: str


class LastWarning(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the type Warning in the operator's namespace."""

    time: str
    object: str
    reason: str
    message: str


class DeploymentState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What `navarch status` shows. `obstacle` is what is missing until the operator works; empty if it does."""

    project: str
    namespace: str
    revision: int
    state: State
    image: str
    replicas: int
    ready: int
    leader: str
    crds: list[CrdState]
    webhooks: str
    """`none`, `answering`, or why they do not answer."""
    obstacle: str
    faults: list[Fault]
    warnings: list[LastWarning]
    """The last ones, the newest last; none if the user may not read events."""
    revisions: list[RevisionState]


async def read_revisions(client: Client, project: str, namespace: str) -> list[Revision]:
    """Returns the revisions of a deployment. Raises `DeployError` if there is none, or its namespace is being deleted."""
    place = await find_namespace(client, namespace, _NAMESPACE_SECONDS)
    known = await RevisionHistory(client, project, namespace).read() if place is not None else []
    if not known:
        raise DeployError(
            f"{project}: expected a deployment in namespace {namespace}, got none; deploy it: navarch deploy, or name its "
            f"namespace: --namespace"
        )
    return known


async def deployment_state(client: Client, project: str, namespace: str) -> DeploymentState:
    """Returns the state of the deployment. Raises `DeployError` if there is none."""
    known = await read_revisions(client, project, namespace)
    revision = known[-1]
    release = revision.release
    replicas, ready = await _replicas(client, release)
    obstacle = await Readiness(client, release).obstacle()
    return DeploymentState(
        project=project,
        namespace=namespace,
        revision=revision.number,
        state=revision.state,
        image=release.image,
        replicas=replicas,
        ready=ready,
        leader=await _leader(client, release),
        crds=[await _crd(client, each["metadata"]["name"]) for each in release.crds],
        webhooks=await _webhooks(client, release),
        obstacle=obstacle,
        faults=await diagnose(client, release) if obstacle else [],
        warnings=await _warnings(client, release),
        revisions=[
            RevisionState(number=each.number, state=each.state, created=each.created, image=each.release.image)
            for each in known
        ],
    )


async def _replicas(client: Client, release: Release) -> tuple[int, int]:
    try:
        found = await client.get(DEPLOYMENTS, release.deployment, namespace=release.namespace)
    except NotFound:
        return 0, 0
    return found["spec"].get("replicas", 1), (found.get("status") or {}).get("readyReplicas", 0)


async def _leader(client: Client, release: Release) -> str:
    if not release.lease:
        return ""
    try:
        lease = await client.get(LEASES, release.lease, namespace=release.lease_namespace)
    except NotFound:
        return ""
    return str(lease["spec"].get("holderIdentity") or "")


async def _crd(client: Client, name: str) -> CrdState:
    try:
        status = (await client.get(_CRDS, name)).get("status") or {}
    except NotFound:
        return CrdState(name=name, established=False)
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return CrdState(
        name=name,
        established=conditions.get("Established") == "True",
        stored_versions=status.get("storedVersions") or [],
    )


async def _webhooks(client: Client, release: Release) -> str:
    if not release.webhook_configurations and not release.converted:
        return "none"
    return await webhook_obstacle(client, release) or "answering"


async def _warnings(client: Client, release: Release) -> list[LastWarning]:
    try:
        found = await client.list(EVENTS, namespace=release.namespace, fields={"type": "Warning"})
    except Forbidden:
        return []
    return [
        LastWarning(
            time=event_time(each),
            object=f"{each['involvedObject'].get('kind', '')} {each['involvedObject'].get('name', '')}",
            reason=each.get("reason") or "",
            message=each.get("message") or "",
        )
        for each in sorted(found, key=event_time)[-_WARNINGS:]
    ]
