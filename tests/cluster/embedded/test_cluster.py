"""A cluster in the process of the test."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from navarch._base.clock import ManualClock
from navarch.api import Dynamic
from navarch.cluster.embedded import EmbeddedCluster
from navarch.cluster.storage.file import FileStorage
from navarch.errors import Forbidden, NotFound
from navarch.k8s.core.v1 import ConfigMap, Endpoints, Namespace, Service, ServiceAccount
from navarch.k8s.rbac.v1 import ClusterRole, ClusterRoleBinding, RoleRef, Subject
from navarch.k8s.scheduling.v1 import PriorityClass


async def test_fresh_cluster_has_what_a_control_plane_has() -> None:
    """Namespaces, the service `kubernetes`, ServiceAccounts, priority classes and Kubernetes' own roles are there."""
    async with EmbeddedCluster() as cluster:
        client = cluster.client()
        namespaces = [each.name for each in await client.list(Namespace)]
        assert namespaces == ["default", "kube-node-lease", "kube-public", "kube-system"]
        assert (await client.get(Service, "kubernetes")).spec.cluster_ip == "10.0.0.1"
        assert (await client.get(ServiceAccount, "default", namespace="kube-system")).metadata.uid
        assert [each.name for each in await client.list(PriorityClass)] == [
            "system-cluster-critical",
            "system-node-critical",
        ]
        assert len(await client.list(ClusterRole)) == 69


async def test_users_are_warned_and_the_cluster_is_not(caplog: pytest.LogCaptureFixture) -> None:
    """Its own controllers write Endpoints, which are deprecated: no user could heed that. Whoever else does is told."""
    async with EmbeddedCluster() as cluster:
        await cluster.component_client("system:kube-controller-manager", "system:masters").create(
            Endpoints(name="its-own")
        )
        assert not caplog.messages
        await cluster.client().create(Endpoints(name="yours"))
        assert caplog.messages == [
            "API server: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        ]


async def test_clusters_share_nothing() -> None:
    """What is written to one is not in the next, and even what both have has other ids."""
    uids = set()
    for _ in range(2):
        async with EmbeddedCluster() as cluster:
            client = cluster.client()
            await client.create(ConfigMap(name="mine"))
            uids.add((await client.get(Namespace, "default")).metadata.uid)
    assert len(uids) == 2


async def test_seed_repeats_ids() -> None:
    """With the same seed everything has the same uid and the same made-up name."""
    seen = []
    for _ in range(2):
        async with EmbeddedCluster(seed=7, clock=ManualClock()) as cluster:
            made = await cluster.client().create(Dynamic(_config_map(generateName="made-up-")))
            seen.append((made.metadata["name"], made.metadata["uid"]))
    assert seen[0] == seen[1]


async def test_fresh_cluster_takes_fifty_milliseconds_at_most() -> None:
    """Of a processor, after the first of a process, so that every test can have its own; longer on a slow one."""
    async with EmbeddedCluster():
        pass
    taken, counted = [], []
    for _ in range(5):
        began = time.process_time()
        async with EmbeddedCluster() as cluster:
            await cluster.client().get(Namespace, "default")
        taken.append(time.process_time() - began)
        counted.append(_seconds_of_a_million_steps())
    limit = max(0.05, min(counted))
    assert min(taken) <= limit, (
        f"expected a fresh cluster in {limit * 1000:.0f} ms, got {min(taken) * 1000:.0f} at best"
    )


def _seconds_of_a_million_steps() -> float:
    """Of a processor: about 50 ms where the promise was made."""
    began, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number
    return time.process_time() - began


async def test_others_may_only_what_they_were_given() -> None:
    """RBAC decides for everybody but the administrator, and by what was written just before."""
    async with EmbeddedCluster() as cluster:
        admin, bob = cluster.client(), cluster.client_as("bob")
        with pytest.raises(Forbidden, match='User "bob" cannot create resource "configmaps"'):
            await bob.create(ConfigMap(name="a"))
        binding = ClusterRoleBinding(
            name="bob",
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="edit"),
            subjects=[Subject(kind="User", name="bob", api_group="rbac.authorization.k8s.io")],
        )
        await admin.create(binding)
        await bob.create(ConfigMap(name="a"))
        await admin.delete(ClusterRoleBinding, "bob")
        with pytest.raises(Forbidden):
            await bob.get(ConfigMap, "a")


async def test_nobody_grants_more_than_they_have() -> None:
    """Who may write roles cannot give away rights that they lack."""
    async with EmbeddedCluster() as cluster:
        admin, bob = cluster.client(), cluster.client_as("bob", "editors")
        await admin.create(
            _role("role-writers", {"apiGroups": ["*"], "resources": ["clusterroles"], "verbs": ["get", "create"]})
        )
        await admin.create(
            Dynamic(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRoleBinding",
                    "metadata": {"name": "bob"},
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "ClusterRole",
                        "name": "role-writers",
                    },
                    "subjects": [{"kind": "Group", "name": "editors", "apiGroup": "rbac.authorization.k8s.io"}],
                }
            )
        )
        await bob.get(ClusterRole, "view")
        with pytest.raises(Forbidden, match="is attempting to grant RBAC permissions not currently held"):
            await bob.create(_role("mine", {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}))


async def test_service_account_is_known_by_its_name() -> None:
    """A client of a ServiceAccount is in the groups of all such."""
    async with EmbeddedCluster() as cluster:
        client = cluster.client_as("system:serviceaccount:default:robot")
        review = await client.create(Dynamic({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}))
        assert review["status"]["userInfo"]["groups"] == [
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated",
        ]


async def test_audit_has_every_request() -> None:
    """Who asked for what, and what came of it."""
    async with EmbeddedCluster() as cluster:
        with pytest.raises(NotFound):
            await cluster.client().get(ConfigMap, "nothing")
        (record,) = cluster.audit.records(verb="get", resource="configmaps")
        assert record.user is not None
        assert (record.user.name, record.name, record.code, record.reason) == (
            "kubernetes-admin",
            "nothing",
            404,
            "NotFound",
        )


async def test_audit_completes_a_watch_when_it_ends() -> None:
    """A watch is on record when it begins and again when whoever watches leaves."""
    async with EmbeddedCluster() as cluster:
        client = cluster.client()
        async with client.watch(ConfigMap) as watch:
            await client.create(ConfigMap(name="a"))
            async for event in watch:
                assert event.object.name == "a"
                break
            assert cluster.audit.records(verb="watch", stage="ResponseStarted")
        assert [record.code for record in cluster.audit.records(verb="watch")] == [200]


async def test_cluster_in_a_folder_is_there_again(tmp_path: Path) -> None:
    """What was written is there when the same folder is opened again, with the same ids."""
    uids = []
    for _ in range(2):
        async with EmbeddedCluster(await FileStorage.open(tmp_path / "data")) as cluster:
            client = cluster.client()
            uids.append((await client.get(Namespace, "default")).metadata.uid)
            if len(uids) == 1:
                await client.create(ConfigMap(name="kept"))
            assert (await client.get(ConfigMap, "kept")).name == "kept"
    assert uids[0] == uids[1]


def _config_map(**metadata: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def _role(name: str, rule: dict[str, object]) -> Dynamic:
    return Dynamic(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [rule],
        }
    )
