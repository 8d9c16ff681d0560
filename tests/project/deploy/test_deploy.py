"""`deploy` applies a release, changes nothing twice, prunes, and leaves alone what belongs to others."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
import yaml

from navarch.api import Dynamic
from navarch.client import Client, MergePatch, Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.errors import CrdError, DeployError, MissingPermissionsError
from navarch.project.deploy.deployer import deploy_release, plan
from navarch.project.deploy.namespaces import NAMESPACES, until_deleted
from navarch.project.deploy.release import Release
from navarch.project.deploy.revisions import KEPT, RevisionHistory
from project.deploy.deployments import (
    CLUSTER_ROLES,
    CRD_NAME,
    CRDS,
    DEPLOYMENT,
    DEPLOYMENTS,
    NAMESPACE,
    PROJECT,
    SERVICES,
    ActingAs,
    deployed,
    exists,
    has_namespace,
    objects_of,
    results,
    undeployed,
    without,
)

METRICS = "cache-operator-controller-manager-metrics-service"
ROLE = "cache-operator-manager-role"


async def test_undeploy_leaves_the_cluster_as_it_was_before_deploy(client: Client, release: Release) -> None:
    """With --delete-crds: every object is gone, also the namespace and the revisions."""
    before = await objects_of(client)
    revision, changes = await deployed(client, release)
    assert revision.number == 1
    assert {each.result for each in changes} == {"created"}
    assert len(changes) == len(release.objects)
    assert await exists(client, DEPLOYMENTS, DEPLOYMENT, NAMESPACE)
    assert await exists(client, CRDS, CRD_NAME)
    await undeployed(client, delete_crds=True)
    assert await objects_of(client) == before


async def test_second_deploy_changes_nothing_and_keeps_its_revision(client: Client, release: Release) -> None:
    """The same release is no new revision."""
    await deployed(client, release)
    revision, changes = await deployed(client, release)
    assert revision.number == 1
    assert {each.result for each in changes} == {"unchanged"}
    (known,) = await RevisionHistory(client, PROJECT, NAMESPACE).read()
    assert (known.number, known.state) == (1, "deployed")


async def test_plan_writes_nothing(client: Client, release: Release) -> None:
    """It is what --dry-run prints: what would be created, changed with its fields, and pruned."""
    before = await objects_of(client)
    planned = await plan(client, release)
    assert len(results(planned.changes, "created")) == len(release.objects)
    assert not await has_namespace(client)
    assert await objects_of(client) == before
    await deployed(client, release)
    later = await plan(client, without(release.with_image("controller:v2"), "Service"))
    (changed,) = [each for each in later.changes if each.result == "changed"]
    assert (changed.kind, changed.fields) == ("Deployment", ["spec.template.spec.containers[0].image"])
    assert results(later.changes, "pruned") == {f"Service {METRICS}"}
    assert await exists(client, SERVICES, METRICS, NAMESPACE)
    assert len(await RevisionHistory(client, PROJECT, NAMESPACE).read()) == 1


async def test_objects_that_a_release_no_longer_has_are_pruned(client: Client, release: Release) -> None:
    """But no CRD, and nothing that has got the marks of another owner."""
    await deployed(client, release)
    label = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}}
    await client.patch(CLUSTER_ROLES, "cache-operator-metrics-reader", MergePatch(label))
    smaller = without(without(release, "Service"), "CustomResourceDefinition")
    smaller = msgspec.structs.replace(
        smaller,
        objects=[each for each in smaller.objects if each["metadata"]["name"] != "cache-operator-metrics-reader"],
    )
    _, changes = await deployed(client, smaller)
    assert results(changes, "pruned") == {f"Service {METRICS}"}
    assert not await exists(client, SERVICES, METRICS, NAMESPACE)
    assert await exists(client, CLUSTER_ROLES, "cache-operator-metrics-reader")
    assert await exists(client, CRDS, CRD_NAME)
    await client.delete(CLUSTER_ROLES, "cache-operator-metrics-reader")


async def test_conflict_names_the_field_manager_the_field_and_the_remedies(client: Client, release: Release) -> None:
    """Before anything is written; --force takes the field over."""
    await deployed(client, release)
    scaled = {"spec": {"replicas": 5}}
    other = client.using(manager="kubectl-scale")
    await other.patch(DEPLOYMENTS, DEPLOYMENT, MergePatch(scaled), namespace=NAMESPACE)
    with pytest.raises(DeployError, match=r'"kubectl-scale".*\.spec\.replicas.*navarch deploy --force'):
        await deployed(client, release.with_image("controller:v2"))
    assert len(await RevisionHistory(client, PROJECT, NAMESPACE).read()) == 1
    await deployed(client, release.with_image("controller:v2"), force=True)
    assert (await client.get(DEPLOYMENTS, DEPLOYMENT, namespace=NAMESPACE))["spec"]["replicas"] == 2


async def test_object_of_another_owner_is_refused_with_its_owner(client: Client, release: Release) -> None:
    """All of them at once, and before anything is written; --force takes them over."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}
    helm = {"annotations": {"meta.helm.sh/release-name": "caches"}}
    await client.create(Dynamic({**role, "metadata": {"name": ROLE, **helm}}))
    await client.using(manager="pipeline").create(
        Dynamic({**role, "metadata": {"name": "cache-operator-metrics-reader"}})
    )
    with pytest.raises(DeployError) as refused:
        await deployed(client, release)
    assert f"ClusterRole {ROLE} belongs to the Helm release caches" in str(refused.value)
    assert "ClusterRole cache-operator-metrics-reader belongs to pipeline" in str(refused.value)
    assert not await has_namespace(client)
    await deployed(client, release, force=True)
    assert (await client.get(CLUSTER_ROLES, ROLE))["rules"]


async def test_deployment_in_another_namespace_is_another_owner(client: Client, release: Release) -> None:
    """Two of them would share their cluster roles."""
    await deployed(client, release)
    text = msgspec.json.encode(release).replace(NAMESPACE.encode(), b"elsewhere")
    with pytest.raises(DeployError, match=f"belongs to the deployment of {PROJECT} in namespace {NAMESPACE}"):
        await deployed(client, msgspec.json.decode(text, type=Release))
    assert not await has_namespace(client, "elsewhere")


async def test_crd_of_another_manager_is_refused(client: Client, release: Release) -> None:
    """If the project's differs from it."""
    (crd,) = release.crds
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    theirs: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(crd))
    theirs["spec"]["versions"][0]["additionalPrinterColumns"] = [column]
    await client.using(manager="helm").install(theirs)
    with pytest.raises(CrdError, match=r"but helm applied it[\s\S]*navarch deploy --force"):
        await deployed(client, release)
    assert not await has_namespace(client)
    await client.delete(CRDS, CRD_NAME)


async def test_existing_namespace_is_used_and_kept(client: Client, release: Release) -> None:
    """It belongs to somebody else: neither its labels nor its other objects change."""
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    _, changes = await deployed(client, release)
    assert results(changes, "used") == {f"Namespace {NAMESPACE}"}
    found = await client.get(NAMESPACES, NAMESPACE)
    assert "pod-security.kubernetes.io/enforce" not in found.labels
    removed = await undeployed(client, delete_crds=True)
    assert not removed.deletes_namespace
    assert await has_namespace(client)
    await client.delete(NAMESPACES, NAMESPACE)
    await until_deleted(client, NAMESPACE, 30.0)


async def test_namespace_that_is_being_deleted_is_named_with_what_holds_it(client: Client, release: Release) -> None:
    """Once it is gone, the next deploy succeeds."""
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    held = {"name": "held", "namespace": NAMESPACE, "finalizers": ["example.com/held"]}
    await client.create(
        Dynamic({"apiVersion": "v1", "kind": "Service", "metadata": held, "spec": {"ports": [{"port": 80}]}})
    )
    await client.delete(NAMESPACES, NAMESPACE)
    with pytest.raises(DeployError, match=r"being deleted since .* wait until it is gone .* --namespace"):
        await until_deleted(client, NAMESPACE, 0.5)
    said: list[str] = []
    async with asyncio.TaskGroup() as group:
        planning = group.create_task(plan(client, release, say=said.append))
        while not said:
            await client.clock.sleep(0.01)
        await client.patch(SERVICES, "held", MergePatch({"metadata": {"finalizers": None}}), namespace=NAMESPACE)
    assert results(planning.result().changes, "created")
    assert said == [f"namespace {NAMESPACE} is being deleted: waiting until it is gone"]


async def test_permissions_that_the_user_lacks_are_listed_at_once(client: Client, release: Release) -> None:
    """With those that the operator's roles would grant, since Kubernetes refuses roles with more than the user has."""
    alice = client.through(lambda transport: ActingAs(transport, "alice"))
    before = await objects_of(client)
    with pytest.raises(MissingPermissionsError) as refused:
        await plan(alice, release)
    text = str(refused.value)
    assert f"expected alice to be allowed all that deploying {PROJECT} in namespace {NAMESPACE} needs" in text
    for line in (
        "customresourcedefinitions.apiextensions.k8s.io  create, get, patch",
        "deployments.apps",
        "clusterroles.rbac.authorization.k8s.io",
        "memcacheds.cache.example.com/status",
    ):
        assert line in text
    assert "Kubernetes lets nobody grant permissions that they lack" in text
    assert "verbs escalate and bind on roles" in text
    assert await objects_of(client) == before


async def test_user_with_the_listed_permissions_deploys(client: Client, release: Release) -> None:
    """The refusal's own roles are enough, with the paths that it names."""
    alice = client.through(lambda transport: ActingAs(transport, "alice"))
    text = await refusal(alice, release)
    assert text.count("A rule with nonResourceURLs grants these: get /metrics.") == 1
    roles = [Dynamic(each) for each in yaml.safe_load_all(text.partition("`kubectl apply -f` it:")[2])]
    rules = next(each["rules"] for each in roles if each.kind == "ClusterRole")
    rules.append({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})
    place = Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await client.create(place)
    for each in roles:
        await client.create(each)
    for _ in range(100):  # a real server learns of new roles a moment later
        if not await refusal(alice, release):
            break
        await client.clock.sleep(0.1)
    revision, changes = await deployed(alice, release)
    assert revision.number == 1
    assert results(changes, "used") == {f"Namespace {NAMESPACE}"}
    for each in roles:
        await client.delete(
            await client.discovery.kind(each.api_version, each.kind), each.name, namespace=each.namespace or None
        )
    await undeployed(client, delete_crds=True)
    await client.delete(NAMESPACES, NAMESPACE)
    await until_deleted(client, NAMESPACE, 30.0)


async def refusal(client: Client, release: Release) -> str:
    """Which permissions are missing; empty if none are."""
    try:
        await plan(client, release)
    except MissingPermissionsError as error:
        return str(error)
    return ""


async def test_kind_that_the_cluster_lacks_is_named(client: Client, release: Release) -> None:
    """Such as those of cert-manager, before anything is written."""
    metadata = {"name": "cache-operator-selfsigned-issuer", "namespace": NAMESPACE}
    issuer = {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": metadata, "spec": {"selfSigned": {}}}
    more = msgspec.structs.replace(release, objects=[*release.objects, issuer])
    with pytest.raises(
        DeployError, match=r"selfsigned-issuer: expected the cluster to serve cert-manager.io/v1.*install"
    ):
        await plan(client, more)
    assert not await has_namespace(client)


class _CutOff(WrappedTransport):
    """Cancels the task that writes for the nth time, dry runs apart, as Ctrl-C does."""

    def __init__(self, transport: Transport, writes: int) -> None:
        super().__init__(transport)
        self._left = writes

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        if (
            request.method in {"PATCH", "POST", "DELETE"}
            and "dryRun" not in request.query
            and "review" not in request.path
        ):
            self._left -= 1
            if self._left < 0:
                raise asyncio.CancelledError
        return await self._transport.send(request)


@pytest.mark.parametrize("writes", [1, 2, 5, 12])
async def test_interrupted_deployment_is_completed_by_the_next_one(
    client: Client, release: Release, writes: int
) -> None:
    """Whatever was written: also what only the interrupted one has is pruned by the one that completes it."""
    cut = client.through(lambda transport: _CutOff(transport, writes))
    with pytest.raises(asyncio.CancelledError):
        await deployed(cut, release)
    known = await RevisionHistory(client, PROJECT, NAMESPACE).read()
    assert [each.state for each in known] == (["pending"] if writes > 1 else [])
    smaller = without(release, "Service")
    await deployed(client, smaller)
    assert not await exists(client, SERVICES, METRICS, NAMESPACE)
    known = await RevisionHistory(client, PROJECT, NAMESPACE).read()
    assert known[-1].state == "deployed"
    assert {each.result for each in (await plan(client, smaller)).changes} == {"unchanged"}


async def test_same_release_completes_its_own_revision(client: Client, release: Release) -> None:
    """The number stays, and the state becomes deployed."""
    cut = client.through(lambda transport: _CutOff(transport, 4))
    with pytest.raises(asyncio.CancelledError):
        await deployed(cut, release)
    revision, _ = await deployed(client, release)
    assert revision.number == 1
    (known,) = await RevisionHistory(client, PROJECT, NAMESPACE).read()
    assert known.state == "deployed"


async def test_last_revisions_are_kept(client: Client, release: Release) -> None:
    """Five of them, with the last one that was deployed even if five others failed since."""
    history = RevisionHistory(client, PROJECT, NAMESPACE)
    await deployed(client, release)
    for number in range(2, KEPT + 3):
        planned = await plan(client, release.with_image(f"controller:v{number}"))
        revision = await history.begin(planned.release, planned.known)
        await history.set_state(revision, "failed")
    await history.trim()
    assert [each.number for each in await history.read()] == [1, 3, 4, 5, 6, 7]
    await deployed(client, release.with_image("controller:v8"))
    assert [each.number for each in await history.read()] == [4, 5, 6, 7, 8]


async def test_operator_that_does_not_work_leaves_a_failed_revision(client: Client, release: Release) -> None:
    """The error says what is missing and why: here no node runs the pods."""
    with pytest.raises(DeployError, match=r"expected the operator to work .* 0 of 2 replicas are ready"):
        await deploy_release(client, await plan(client, release), wait=0.5)
    (known,) = await RevisionHistory(client, PROJECT, NAMESPACE).read()
    assert known.state == "failed"
