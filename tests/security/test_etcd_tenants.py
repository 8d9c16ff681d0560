"""Tenants of the etcd operator: what one of them can have of the operator's, and of another tenant's."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from deployed import ACCOUNT, NAMESPACE, for_namespaces, grant_secrets, manifests, with_rights, with_webhooks
from etcd_operator.backup import EtcdBackup
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.restore import EtcdRestore
from navarch.api import Dynamic
from navarch.client import MergePatch
from navarch.errors import Forbidden, Invalid
from navarch.k8s.core.v1 import Pod, Secret, ServiceAccount
from navarch.k8s.events.v1 import Event
from navarch.operator.crds import prepare_crds
from navarch.schema import crd
from navarch.testing import Cluster
from object_store import object_store, s3
from object_store import secret as aws_secret
from security.tenant_servers import AMBIENT, connections, fake_etcd, recorder

pytestmark = pytest.mark.cluster(controllers=False)
SECONDS = 60.0
CPU_SECONDS = 5.0
VERSION = f"{GROUP}/v1beta2"
KINDS = (EtcdCluster, EtcdBackup, EtcdRestore)
B = TypeVar("B", EtcdBackup, EtcdRestore)


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Operators run in the name of their account, with the rights of operators/etcd/config and no others."""
    return with_rights(cluster)


@pytest.fixture
def ambient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The operator has credentials of its own, for every cloud, as its environment gives them to it."""
    key = {"type": "service_account", "client_email": AMBIENT, "private_key": AMBIENT, "private_key_id": AMBIENT}
    (tmp_path / "google.json").write_text(json.dumps(key))
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_SAS_KEY",
        "GOOGLE_BEARER_TOKEN",
    ):
        monkeypatch.setenv(name, AMBIENT if name != "AZURE_STORAGE_SAS_KEY" else f"sig={AMBIENT}")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "google.json"))


def manifest(kind: str, spec: Mapping[str, Any], name: str = "example", namespace: str = "default") -> Dynamic:
    """As users write it."""
    metadata = {"name": name, "namespace": namespace}
    return Dynamic({"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": dict(spec)})


def restore(place: Mapping[str, Any], name: str = "back", namespace: str = "default") -> Dynamic:
    return manifest("EtcdRestore", {"etcdCluster": {"name": "example"}, **place}, name, namespace)


async def namespace(cluster: Cluster, name: str) -> None:
    """With the account that a controller would make, so that pods can be made there."""
    await cluster.client.apply(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    await cluster.client.apply(ServiceAccount(name="default", namespace=name))


async def stored_before(cluster: Cluster, *objects: Dynamic) -> None:
    """Objects that were taken before there was a rule against them: the API server does not look at them again."""
    for kind in KINDS:
        definition = crd(kind)
        for version in definition["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            schema.pop("x-kubernetes-validations", None)
        await cluster.client.apply(Dynamic(definition), force=True)
    await cluster.eventually(lambda: _are_served(cluster), lambda served: served, timeout=SECONDS, what="old CRDs")
    for each in objects:
        await cluster.create(each)


async def _are_served(cluster: Cluster) -> bool:
    try:
        for kind in KINDS:
            await cluster.list(kind)
    except Exception:  # noqa: BLE001 - whatever the server says of a kind that it does not know yet
        return False
    return True


async def refused(cluster: Cluster, kind: type[B], name: str, words: str, **at: str) -> str:
    """The reason, once the operator has given it."""
    found = await cluster.eventually(
        lambda: cluster.get(kind, name, **at),
        lambda each: words in each.status.reason,
        timeout=SECONDS,
        what=f"{name}: {words}",
    )
    return found.status.reason


ENDPOINTS: list[tuple[str, dict[str, Any]]] = [
    ("s3", {"path": "bucket/a", "endpoint": "http://tenant.example.com"}),
    ("s3", {"path": "bucket/a", "endpoint": "https://tenant.example.com", "awsSecret": ""}),
    ("gcs", {"path": "bucket/a", "endpoint": "https://tenant.example.com"}),
]


async def test_the_api_server_takes_no_endpoint_without_a_secret(cluster: Cluster) -> None:
    """Wherever a place can be named: in backups, restores and clusters."""
    await prepare_crds(cluster.client, list(KINDS), "install")
    for kind, place in ENDPOINTS:
        for made in (
            manifest("EtcdBackup", {"clusterName": "c", kind: place}),
            restore({kind: place}),
            manifest("EtcdCluster", {"backup": {kind: place}}),
            manifest("EtcdCluster", {"restoreFrom": {kind: place}}),
        ):
            with pytest.raises(Invalid, match="needs a Secret of this namespace"):
                await cluster.create(made)


PATHS = [
    "evil.example.com#/a",
    "evil.example.com?/a",
    "user@evil.example.com/a",
    "evil.example.com:443/a",
    "a b/c",
    "bucket/../other/a",
    "bucket/a/..",
    "bucket/a//b",
    "bucket/./a",
    "bucket//a",
    "../a",
    "bucket/a\\..\\b",
    "bucket/a\nb",
]


async def test_the_api_server_takes_no_path_that_means_another_place(cluster: Cluster) -> None:
    """A bucket that is a host, and folders that lead elsewhere; each place has them."""
    await prepare_crds(cluster.client, list(KINDS), "install")
    for path in PATHS:
        for kind, secret in (("s3", "awsSecret"), ("gcs", "gcpSecret"), ("abs", "absSecret")):
            with pytest.raises(Invalid, match=r"spec\.(s3|gcs|abs)"):
                await cluster.create(restore({kind: {"path": path, secret: "keys"}}))
    for endpoint in (
        "https://user:pass@host",
        "https://host?x=1",
        "https://host#x",
        "file:///etc",
        "ftp://host",
        "host",
    ):
        with pytest.raises(Invalid, match="expected an endpoint"):
            await cluster.create(restore({"s3": {"path": "b/a", "awsSecret": "keys", "endpoint": endpoint}}))


@pytest.mark.usefixtures("ambient")
async def test_an_endpoint_without_a_secret_is_sent_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Neither by a backup nor by a restore that was stored before the API server refused it; both say what to do."""
    async with recorder() as server, fake_etcd(tmp_path) as etcd:
        places = {
            "s3": {"s3": {"path": "bucket/a", "endpoint": server.url}},
            "gcs": {"gcs": {"path": "bucket/a", "endpoint": server.url}},
        }
        paused = manifest("EtcdCluster", {"size": 1, "paused": True})
        restores = [restore(place, name) for name, place in places.items()]
        source = {"etcdEndpoints": [etcd.url]}
        backups = [manifest("EtcdBackup", {**source, **place}, name) for name, place in places.items()]
        await stored_before(cluster, paused, *restores, *backups)
        async with cluster.run(etcd_operator(crds="force")):
            for name, secret in (("s3", "awsSecret"), ("gcs", "gcpSecret")):
                assert f"set {secret}" in await refused(cluster, EtcdBackup, name, "needs a Secret")
                assert f"set {secret}" in await refused(cluster, EtcdRestore, name, "needs a Secret")
            events = await cluster.eventually(
                lambda: cluster.list(Event),
                lambda found: {each.reason for each in found} >= {"BackupFailed", "RestoreWaits"},
                timeout=SECONDS,
            )
        assert server.requests == []
        assert all("needs a Secret" in (event.note or "") for event in events if event.type == "Warning")


async def test_a_cluster_whose_backups_are_refused_is_seen_to_all_the_same(cluster: Cluster) -> None:
    """It was stored before the API server refused such an endpoint; so its EtcdBackup cannot be made."""
    backup = {"s3": {"path": "b/a", "endpoint": "http://127.0.0.1:1"}, "policy": {"backupIntervalInSecond": 60}}
    await stored_before(cluster, manifest("EtcdCluster", {"size": 1, "backup": backup}))
    status = MergePatch({"status": {"clusterID": "abc"}})
    await cluster.client.patch(EtcdCluster, "example", status, subresource="status")
    async with cluster.run(etcd_operator(crds="force")):
        found = await cluster.eventually(
            lambda: cluster.get(EtcdCluster, "example"),
            lambda each: "needs a Secret of this namespace: set awsSecret" in each.status.next_step,
            timeout=SECONDS,
            what="why there is no backup",
        )
        assert found.status.conditions
    assert not list(await cluster.list(EtcdBackup))


@pytest.mark.usefixtures("ambient")
async def test_a_bucket_that_is_the_name_of_a_host_is_sent_nothing(cluster: Cluster) -> None:
    """Without an endpoint, the name of the bucket would begin that of the host."""
    async with connections() as (port, seen):
        paths = {"fragment": f"127.0.0.1:{port}#/a", "query": f"127.0.0.1:{port}?/a", "user": f"u@127.0.0.1:{port}#/a"}
        paused = manifest("EtcdCluster", {"size": 1, "paused": True})
        await stored_before(cluster, paused, *(restore({"s3": {"path": path}}, n) for n, path in paths.items()))
        async with cluster.run(etcd_operator(crds="force")):
            for name in paths:
                await refused(cluster, EtcdRestore, name, "expected a path")
        assert seen == []


@pytest.mark.usefixtures("ambient")
async def test_a_secret_stands_in_the_place_of_all_that_the_operator_has(cluster: Cluster) -> None:
    """Tokens of the operator's environment are not sent beside the keys of a Secret, to whichever store."""
    azure = {"storage-account": b"account", "storage-key": b"a2V5"}
    async with recorder() as server, cluster.run(etcd_operator()):
        await cluster.create(aws_secret())
        await cluster.create(Secret(name="gcp", data={"access-token": b"of-the-tenant"}))
        await cluster.create(Secret(name="azure", data=azure))
        await cluster.create(manifest("EtcdCluster", {"size": 1, "paused": True}))
        at = {"path": "bucket/a", "endpoint": server.url}
        places = {"s3": {"awsSecret": "aws"}, "gcs": {"gcpSecret": "gcp"}, "abs": {"absSecret": "azure"}}
        for kind, secret in places.items():
            await cluster.create(restore({kind: {**at, **secret}}, kind))
            await refused(cluster, EtcdRestore, kind, "the object, bucket or folder does not exist")
        assert any("AKIDEXAMPLE" in request for request in server.requests)
        assert any("of-the-tenant" in request for request in server.requests)
        assert any("SharedKey account:" in request for request in server.requests)
        assert not any(AMBIENT in request for request in server.requests)


@pytest.mark.usefixtures("ambient")
async def test_a_secret_without_keys_is_not_made_up_for_by_the_operators_own(cluster: Cluster) -> None:
    """One that is empty, half or not there: nothing is sent."""
    async with recorder() as server, cluster.run(etcd_operator()):
        half = b"[default]\naws_access_key_id = AKIDEXAMPLE\n"
        await cluster.create(Secret(name="empty"))
        await cluster.create(Secret(name="half", data={"credentials": half, "storage-account": b"account"}))
        await cluster.create(manifest("EtcdCluster", {"size": 1, "paused": True}))
        for kind, field in (("s3", "awsSecret"), ("gcs", "gcpSecret"), ("abs", "absSecret")):
            for secret in ("empty", "half", "missing"):
                place = {"path": "bucket/a", "endpoint": server.url, field: secret}
                await cluster.create(restore({kind: place}, f"{kind}-{secret}"))
                await refused(cluster, EtcdRestore, f"{kind}-{secret}", f"Secret {secret}")
        assert server.requests == []


async def test_a_name_does_not_lead_to_another_namespace(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """Slashes and dots, plain or encoded, in each field that names an object: nothing of the other tenant is used."""
    async with recorder() as server, cluster.run(etcd_operator()):
        await namespace(cluster, "team-b")
        await grant_secrets(cluster.client, "team-b")
        theirs = aws_secret()
        theirs.metadata.namespace = "team-b"
        await cluster.create(theirs)
        await cluster.create(aws_secret())
        await cluster.create(manifest("EtcdCluster", {"size": 1, "paused": True}))
        await cluster.create(manifest("EtcdCluster", {"size": 1, "paused": True}, "theirs", "team-b"))
        words = "expected the name of an object"
        for number, up in enumerate(("../../team-b/", "..%2F..%2Fteam-b%2F", "%2e%2e/%2e%2e/team-b/", "../" * 50_000)):
            place = {"s3": {"path": "bucket/a", "awsSecret": f"{up}secrets/aws", "endpoint": server.url}}
            await cluster.create(restore(place, f"secret-{number}"))
            await refused(cluster, EtcdRestore, f"secret-{number}", words)
            into = {"etcdCluster": {"name": f"{up}etcdclusters/theirs"}, "local": {"path": "a/b"}}
            await cluster.create(manifest("EtcdRestore", into, f"cluster-{number}"))
            await refused(cluster, EtcdRestore, f"cluster-{number}", words)
            own = {"path": "bucket/a", "awsSecret": "aws"}
            taken = {"etcdEndpoints": [server.url], "clientTLSSecret": f"{up}secrets/aws", "s3": own}
            await cluster.create(manifest("EtcdBackup", taken, f"tls-{number}"))
            await refused(cluster, EtcdBackup, f"tls-{number}", words)
            named = manifest("EtcdCluster", {"size": 1, "auth": {"rootSecret": f"{up}secrets/aws"}}, f"root-{number}")
            await cluster.create(named)
            await cluster.eventually(
                partial(cluster.get, EtcdCluster, f"root-{number}"),
                lambda found: words in found.status.next_step,
                timeout=SECONDS,
                what=words,
            )
        assert server.requests == []
    assert "Traceback" not in caplog.text


ALLOWED = {"a": "s3://shared/team-a/", "b": "s3://shared/team-b", "c": "gs://shared"}
OTHERS = [
    ("s3", "shared/team-ab/x"),
    ("s3", "shared/team-b/x"),
    ("s3", "shared/team-a"),
    ("s3", "shared/Team-A/x"),
    ("s3", "Shared/team-a/x"),
    ("s3", "shared/team-a%2F..%2Fteam-b/x"),
    ("s3", "shared/%2e%2e/x"),
    ("s3", "shared/x"),
    ("s3", "shared.evil/team-a/x"),
    ("s3", "other/team-a/x"),
    ("gcs", "shared/team-a/x"),
]


@pytest.mark.usefixtures("ambient")
async def test_the_operators_credentials_are_for_prefixes_of_each_namespace(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tenant's folder, and whatever looks like one's own, is refused; a rule that is taken back holds at once."""
    rules = tmp_path / "ambient.yaml"
    rules.write_text(yaml.safe_dump({"default": [ALLOWED["a"]], "team-b": [ALLOWED["b"]], "team-c": [ALLOWED["c"]]}))
    async with connections() as (port, seen):
        monkeypatch.setenv("AWS_ENDPOINT", f"https://127.0.0.1:{port}")
        async with cluster.run(etcd_operator(ambient=rules)):
            await cluster.create(manifest("EtcdCluster", {"size": 1, "paused": True}))
            for number, (kind, path) in enumerate(OTHERS):
                await cluster.create(restore({kind: {"path": path}}, f"other-{number}"))
                await refused(cluster, EtcdRestore, f"other-{number}", "may not use the operator's own credentials")
            assert seen == []
            await cluster.create(restore({"s3": {"path": "shared/team-a/x/etcd.db"}}, "own"))
            await refused(cluster, EtcdRestore, "own", "fetching the snapshot: the store failed")
            assert seen != []
            rules.write_text("{}")
            await refused(cluster, EtcdRestore, "own", "may not use the operator's own credentials")


@pytest.mark.usefixtures("ambient")
async def test_the_operators_credentials_never_go_over_plain_http(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where its own environment says so."""
    rules = tmp_path / "ambient.yaml"
    rules.write_text("default: [s3://shared]")
    async with recorder() as server:
        monkeypatch.setenv("AWS_ENDPOINT", server.url)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        async with cluster.run(etcd_operator(ambient=rules)):
            await cluster.create(manifest("EtcdCluster", {"size": 1, "paused": True}))
            await cluster.create(restore({"s3": {"path": "shared/etcd.db"}}))
            await refused(cluster, EtcdRestore, "back", "fetching the snapshot: the store failed")
        assert server.requests == []


METADATA = ["http://169.254.169.254", "http://2852039166", "http://0xa9fea9fe", "http://[::ffff:169.254.169.254]"]


async def test_the_metadata_server_of_a_cloud_is_no_endpoint(cluster: Cluster) -> None:
    """In no way to write its address; neither of a store nor of etcd."""
    async with cluster.run(etcd_operator()):
        await cluster.create(aws_secret())
        await cluster.create(manifest("EtcdCluster", {"size": 1, "paused": True}))
        for number, endpoint in enumerate(METADATA):
            place = {"s3": {"path": "bucket/a", "awsSecret": "aws", "endpoint": endpoint}}
            await cluster.create(restore(place, f"store-{number}"))
            await refused(cluster, EtcdRestore, f"store-{number}", "name another endpoint")
            spec = {"etcdEndpoints": [endpoint], "s3": {"path": "bucket/a", "awsSecret": "aws"}}
            await cluster.create(manifest("EtcdBackup", spec, f"etcd-{number}"))
            await refused(cluster, EtcdBackup, f"etcd-{number}", "name another endpoint")


async def test_a_member_of_another_tenant_is_no_endpoint(cluster: Cluster, tmp_path: Path) -> None:
    """The operator reaches members that the tenant may not: no snapshot is taken of one, under whichever address."""
    async with fake_etcd(tmp_path, cluster_id=0xABC) as etcd, object_store() as store, cluster.run(etcd_operator()):
        await namespace(cluster, "team-b")
        await cluster.create(aws_secret())
        await cluster.create(manifest("EtcdCluster", {"paused": True}, "theirs", "team-b"))
        status = {"status": {"clusterID": "abc"}}
        await cluster.client.patch(EtcdCluster, "theirs", MergePatch(status), namespace="team-b", subresource="status")
        spec = {"etcdEndpoints": [etcd.url], "s3": {"path": "b/a", "awsSecret": "aws", "endpoint": store.url}}
        await cluster.create(manifest("EtcdBackup", spec, "stolen"))
        await refused(cluster, EtcdBackup, "stolen", "in another namespace")
        assert etcd.snapshots == 0
        assert store.objects == {}


async def test_what_an_endpoint_answers_is_not_repeated(cluster: Cluster, tmp_path: Path) -> None:
    """It may be any server of the operator's network."""
    async with fake_etcd(tmp_path, error="internal-words") as etcd, cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.create(manifest("EtcdBackup", {"etcdEndpoints": [etcd.url], "local": {"path": "a/b"}}, "other"))
        reason = await refused(cluster, EtcdBackup, "other", "sent no snapshot")
        assert "internal-words" not in reason


async def test_the_cluster_role_has_no_secrets_and_namespaces_are_granted_one_by_one(cluster: Cluster) -> None:
    """In one that is not, the operator says which command grants it; and then goes on by itself."""
    tls = {"size": 1, "TLS": {"issued": {}}}
    async with cluster.run(etcd_operator()):
        await namespace(cluster, "team-b")
        await cluster.create(Secret(name="of-somebody", namespace="team-b", data={"password": b"x"}))
        operator = cluster.client_as(ACCOUNT, namespace=NAMESPACE)
        for attempt in (
            operator.get(Secret, "of-somebody", namespace="team-b"),
            operator.create(Secret(name="other", namespace="team-b")),
            operator.patch(Secret, "of-somebody", MergePatch({"data": {}}), namespace="team-b"),
        ):
            with pytest.raises(Forbidden):
                await attempt
        await cluster.create(manifest("EtcdCluster", tls, "theirs", "team-b"))
        command = (
            "kubectl create rolebinding etcd-operator-secrets --namespace=team-b "
            "--clusterrole=etcd-operator-secrets --serviceaccount=etcd-operator:etcd-operator-controller-manager"
        )
        told = await cluster.eventually(
            lambda: cluster.get(EtcdCluster, "theirs", namespace="team-b"),
            lambda found: command in found.status.next_step,
            timeout=SECONDS,
            what=command,
        )
        assert told.status.is_true("Degraded")
        await cluster.create(
            manifest("EtcdBackup", {"clusterName": "theirs", "s3": {"path": "b/a", "awsSecret": "aws"}}, "b", "team-b")
        )
        await refused(cluster, EtcdBackup, "b", command, namespace="team-b")
        await grant_secrets(cluster.client, "team-b")
        await cluster.eventually(
            lambda: cluster.list(Secret, namespace="team-b"),
            lambda found: any(each.name == "theirs-operator-tls" for each in found),
            timeout=SECONDS,
            what="certificates that the operator issued",
        )


def test_no_role_of_the_whole_cluster_grants_secrets_to_the_operator() -> None:
    """Only one that nobody is bound to, until somebody binds it in a namespace."""
    found = [*manifests("rbac"), *for_namespaces("team-a"), *with_webhooks()]
    bound = {each["roleRef"]["name"] for each in found if each["kind"] == "ClusterRoleBinding"}
    roles = [each for each in found if each["kind"] == "ClusterRole" and each["metadata"]["name"] in bound]
    assert roles
    assert not any("secrets" in rule["resources"] for role in roles for rule in role["rules"])


@asynccontextmanager
async def for_team_a(cluster: Cluster) -> AsyncIterator[None]:
    """An operator for one namespace, with the Roles that are generated for it and no others."""
    plain = Cluster(cluster.client, cluster._engine, cluster.access)
    for name in ("team-a", "team-b", NAMESPACE):
        await namespace(cluster, name)
    for document in for_namespaces("team-a"):
        if document["kind"] != "Deployment":
            await cluster.client.apply(Dynamic(document))
    operator = etcd_operator(namespaces=("team-a",), crds="verify")
    async with plain.run(operator, client=cluster.client_as(ACCOUNT, namespace=NAMESPACE)):
        yield


async def test_an_operator_for_some_namespaces_needs_roles_there_alone(cluster: Cluster, tmp_path: Path) -> None:
    """It issues certificates and makes backups in its own namespace, is refused nothing, and touches no other one."""
    async with object_store() as store, fake_etcd(tmp_path) as etcd, for_team_a(cluster):
        for each in ("team-b", "team-a"):
            await cluster.create(manifest("EtcdCluster", {"size": 1, "TLS": {"issued": {}}}, "example", each))
            secret = aws_secret()
            secret.metadata.namespace = each
            await cluster.create(secret)
            place = {"path": "b/a", "awsSecret": "aws", "endpoint": s3(store).endpoint}
            await cluster.create(manifest("EtcdBackup", {"etcdEndpoints": [etcd.url], "s3": place}, "once", each))
        await cluster.eventually(
            lambda: cluster.get(EtcdBackup, "once", namespace="team-a"),
            lambda found: found.status.succeeded,
            timeout=SECONDS,
        )
        await cluster.eventually(
            lambda: cluster.list(Secret, namespace="team-a"),
            lambda found: any(each.name == "example-client-tls" for each in found),
            timeout=SECONDS,
        )
        untouched = await cluster.get(EtcdBackup, "once", namespace="team-b")
        assert untouched.status.reason == ""
        assert [each.name for each in await cluster.list(Secret, namespace="team-b")] == ["aws"]
        assert {record.uri for record in cluster.audit.records(user=ACCOUNT, code=403)} == set()
        with pytest.raises(Forbidden):
            await cluster.client_as(ACCOUNT).get(Secret, "aws", namespace="team-b")


async def test_a_tenant_with_slow_stores_does_not_hold_up_another(cluster: Cluster, tmp_path: Path) -> None:
    """However many backups wait for a store that never answers, and however long they may."""
    async with (
        recorder() as slow,
        object_store() as store,
        fake_etcd(tmp_path) as etcd,
        cluster.run(etcd_operator()),
    ):
        slow.held = asyncio.Event()
        await namespace(cluster, "team-b")
        await grant_secrets(cluster.client, "team-b")
        await cluster.create(aws_secret())
        policy = {"timeoutInSecond": 3600}
        place = {"path": "bucket/a", "awsSecret": "aws", "endpoint": slow.url}
        spec = {"etcdEndpoints": [etcd.url], "s3": place, "backupPolicy": policy}
        for number in range(40):
            await cluster.create(manifest("EtcdBackup", spec, f"slow-{number}"))
        await refused_or_held(cluster, slow.requests)
        theirs = aws_secret()
        theirs.metadata.namespace = "team-b"
        await cluster.create(theirs)
        own = {"etcdEndpoints": [etcd.url], "s3": {**place, "endpoint": store.url}}
        await cluster.create(manifest("EtcdBackup", own, "quick", "team-b"))
        await cluster.eventually(
            lambda: cluster.get(EtcdBackup, "quick", namespace="team-b"),
            lambda found: found.status.succeeded,
            timeout=20,
            what="the backup of the other tenant",
        )
        slow.held.set()


async def refused_or_held(cluster: Cluster, requests: list[str]) -> None:
    """Returns when all workers that the tenant can have are busy."""

    async def waiting() -> int:
        found = await cluster.list(EtcdBackup)
        return len(requests) + sum("others of this namespace" in each.status.reason for each in found)

    await cluster.eventually(waiting, lambda count: count >= 16, timeout=SECONDS, what="backups that wait")


async def test_a_pod_of_another_namespace_is_no_member(cluster: Cluster) -> None:
    """Whoever writes the uid of a tenant's cluster on a pod of his own is not sent the password of its etcd."""
    seen: list[str] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.read(4096)).decode(errors="replace"))
        writer.close()

    async with (
        await asyncio.start_server(accept, "127.66.13.1", 2379),
        cluster.run(etcd_operator()),
    ):
        await namespace(cluster, "team-b")
        await cluster.create(Secret(name="root", data={"password": b"of-the-tenant"}))
        made = await cluster.create(manifest("EtcdCluster", {"size": 1, "auth": {"rootSecret": "root"}}))
        status = MergePatch({"status": {"clusterID": "abc"}})
        await cluster.client.patch(EtcdCluster, "example", status, subresource="status")
        owner = {
            "apiVersion": VERSION,
            "kind": "EtcdCluster",
            "name": "example",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        labels = {"app": "etcd", "etcd_cluster": "example"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "example-9", "namespace": "team-b", "labels": labels, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "etcd", "image": "etcd"}]},
        }
        await cluster.create(Dynamic(pod))
        address = {"phase": "Running", "podIP": "127.66.13.1", "podIPs": [{"ip": "127.66.13.1"}]}
        await cluster.client.patch(
            Pod, "example-9", MergePatch({"status": address}), namespace="team-b", subresource="status"
        )
        await cluster.client.patch(EtcdCluster, "example", MergePatch({"spec": {"size": 3}}))
        await cluster.eventually(
            lambda: cluster.get(EtcdCluster, "example"),
            lambda found: found.status.observed_generation == found.metadata.generation and found.status.next_step,
            timeout=SECONDS,
            what="a look at the cluster as it is now",
        )
        assert seen == []


async def test_a_secret_costs_no_more_than_its_size_is_worth(cluster: Cluster) -> None:
    """Neither a line of spaces, in which a pattern could search for ever, nor a key that takes minutes to be checked."""
    data = {
        "spaces": {"credentials": b"[default]\na" + b" " * 30_000 + b"b\n", "config": b""},
        "long": {"credentials": b"[default]\n" + b"a" * 100_000, "config": b""},
    }
    for name, fields in data.items():
        await cluster.create(Secret(name=name, namespace="default", data=fields))
    async with cluster.run(etcd_operator()):
        began = time.process_time()
        await cluster.create(manifest("EtcdCluster", {"size": 1, "paused": True}))
        for name, words in {"spaces": "no key of AWS", "long": "at most 32768 bytes"}.items():
            await cluster.create(restore({"s3": {"path": "bucket/a", "awsSecret": name}}, name))
            await refused(cluster, EtcdRestore, name, words)
        spent = time.process_time() - began
    assert spent < CPU_SECONDS
