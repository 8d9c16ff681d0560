"""`undeploy` deletes what was deployed and no more, in an order in which finalizers end."""

from __future__ import annotations

import asyncio

import pytest

from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.errors import DeployError, MissingPermissionsError
from navarch.project.deploy.deployer import plan
from navarch.project.deploy.namespaces import NAMESPACES, until_deleted
from navarch.project.deploy.release import Release
from navarch.project.deploy.removal import remove
from project.deploy.deployments import (
    CONFIG_MAPS,
    CRD_NAME,
    CRDS,
    DEPLOYMENT,
    DEPLOYMENTS,
    MEMCACHED,
    NAMESPACE,
    PROJECT,
    ActingAs,
    deployed,
    exists,
    has_namespace,
    memcached,
    objects_of,
    removal,
    remove_traces,
    undeployed,
)


async def test_custom_objects_and_crds_stay_by_default(client: Client, release: Release) -> None:
    """The rest goes, with the namespace; deployed again, the operator finds its objects as they were."""
    await deployed(client, release)
    await client.create(memcached("kept"))
    found = await removal(client)
    assert found.counts()["Deployment"] == 1
    assert "CustomResourceDefinition" not in found.counts()
    assert [(each.crd, each.objects) for each in found.crds] == [(CRD_NAME, 1)]
    await undeployed(client)
    assert await exists(client, MEMCACHED, "kept", "default")
    assert not await has_namespace(client)
    assert {each.result for each in (await plan(client, release)).changes} == {"created", "unchanged"}
    await deployed(client, release)


async def test_namespace_with_objects_of_others_is_kept(client: Client, release: Release) -> None:
    """They are named; custom objects in it count as well."""
    await deployed(client, release)
    theirs = {"name": "theirs", "namespace": NAMESPACE}
    await client.create(Dynamic({"apiVersion": "v1", "kind": "ConfigMap", "metadata": theirs}))
    await client.create(memcached("here", namespace=NAMESPACE))
    found = await undeployed(client)
    assert found.foreign == ["ConfigMap theirs", "Memcached here"]
    assert not found.deletes_namespace
    assert not await exists(client, DEPLOYMENTS, DEPLOYMENT, NAMESPACE)
    assert await exists(client, CONFIG_MAPS, "theirs", NAMESPACE)
    with pytest.raises(DeployError, match=f"expected a deployment in namespace {NAMESPACE}, got none"):
        await removal(client)
    await client.delete(MEMCACHED, "here", namespace=NAMESPACE)
    await client.delete(NAMESPACES, NAMESPACE)
    await until_deleted(client, NAMESPACE, 30.0)
    await client.delete(CRDS, CRD_NAME)


async def test_object_whose_finalizer_stays_is_named_with_the_remedy(client: Client, release: Release) -> None:
    """The operator still runs then; once the finalizer is gone, a second run deletes the rest."""
    await deployed(client, release)
    await client.create(memcached("stuck", "example.com/held"))
    found = await removal(client, delete_crds=True)
    assert found.counts()[CRD_NAME] == 1
    with pytest.raises(DeployError, match=r"Memcached default/stuck \(finalizers: example.com/held\).*kubectl patch"):
        await remove(client, found, seconds=0.5)
    assert await exists(client, DEPLOYMENTS, DEPLOYMENT, NAMESPACE)
    assert await exists(client, CRDS, CRD_NAME)
    await client.patch(MEMCACHED, "stuck", MergePatch({"metadata": {"finalizers": None}}), namespace="default")
    await undeployed(client, delete_crds=True)
    assert not await exists(client, CRDS, CRD_NAME)
    assert not await has_namespace(client)


async def test_custom_objects_are_deleted_while_the_operator_still_runs(client: Client, release: Release) -> None:
    """So that it removes its finalizers; here the test does what the operator would."""
    await deployed(client, release)
    await client.create(memcached("cleaned", "example.com/held"))
    found = await removal(client, delete_crds=True)
    async with asyncio.TaskGroup() as group:
        removing = group.create_task(remove(client, found, seconds=30.0))
        while not (await client.get(MEMCACHED, "cleaned", namespace="default")).metadata.get("deletionTimestamp"):
            await client.clock.sleep(0.01)
        assert await exists(client, DEPLOYMENTS, DEPLOYMENT, NAMESPACE)
        await client.patch(MEMCACHED, "cleaned", MergePatch({"metadata": {"finalizers": None}}), namespace="default")
    assert removing.done()
    assert not await exists(client, CRDS, CRD_NAME)


async def test_what_the_operator_has_written_is_deleted_too(client: Client, release: Release) -> None:
    """Its Lease goes, even in a namespace that stays."""
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    before = await objects_of(client)
    await deployed(client, release)
    lease = {"name": release.lease, "namespace": release.lease_namespace}
    await client.create(
        Dynamic({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": lease, "spec": {}})
    )
    found = await undeployed(client, delete_crds=True)
    assert found.counts()["Lease"] == 1
    assert await objects_of(client) == before
    await client.delete(NAMESPACES, NAMESPACE)
    await until_deleted(client, NAMESPACE, 30.0)


async def test_objects_that_the_user_may_not_delete_are_listed_at_once(client: Client, release: Release) -> None:
    """Before the first one is deleted."""
    await deployed(client, release)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "test-readers"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test-readers"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    await client.create(Dynamic({**role, "rules": rules}))
    binding = await client.create(
        Dynamic({**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects})
    )
    alice = client.through(lambda transport: ActingAs(transport, "alice"))
    refused = await _refused(alice)
    assert f"all that undeploying {PROJECT} in namespace {NAMESPACE} needs" in refused
    assert "deployments.apps" in refused
    assert await exists(client, DEPLOYMENTS, DEPLOYMENT, NAMESPACE)
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        await client.delete(await client.discovery.kind(binding.api_version, kind), "test-readers")
    await remove_traces(client)


async def _refused(alice: Client) -> str:
    """The refusal for missing rights to delete: a real server learns of new roles a moment later."""
    for _ in range(100):
        try:
            await removal(alice)
        except MissingPermissionsError as error:
            return str(error)
        except Exception:  # noqa: BLE001 - not allowed to read yet
            await alice.clock.sleep(0.1)
    raise AssertionError("expected alice to be allowed to read")
