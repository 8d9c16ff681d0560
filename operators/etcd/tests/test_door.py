"""What the API server takes and refuses, and what old manifests become."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

import rig
from etcd_operator.kinds import EtcdCluster
from namespaces import in_new_namespace
from navarch.api import Dynamic
from navarch.client import Client, MergePatch, connect, load
from navarch.errors import Invalid
from navarch.operator.crds import prepare_crds
from navarch.testing.engines import in_process

STORAGE = {"size": "1Gi"}


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[str]:
    """That of a real Kubernetes."""
    with rig.running() as cluster:
        yield str(cluster.kubeconfig)


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client of a cluster that knows the kind."""
    if request.param == "embedded":
        async with in_process() as cluster:
            await prepare_crds(cluster.client, [EtcdCluster], "install")
            yield cluster.client
        return
    async with connect(load(request.getfixturevalue("kubeconfig"))) as connected:
        await prepare_crds(connected, [EtcdCluster], "install")
        async with in_new_namespace(connected) as inside:
            yield inside


def cluster_of(spec: Mapping[str, Any], name: str = "example") -> Dynamic:
    """A manifest as users write it."""
    return Dynamic(
        {
            "apiVersion": "etcd.database.coreos.com/v1beta2",
            "kind": "EtcdCluster",
            "metadata": {"name": name},
            "spec": dict(spec),
        }
    )


async def test_a_manifest_of_coreos_is_taken_as_it_is(client: Client) -> None:
    """Size and version alone."""
    await client.create(cluster_of({"size": 3, "version": "3.2.13"}))
    found = await client.get(EtcdCluster, "example")
    assert (found.spec.size, found.spec.version, found.spec.repository) == (3, "3.2.13", "quay.io/coreos/etcd")


async def test_every_field_of_coreos_is_kept(client: Client) -> None:
    """Also those that are not needed any more."""
    pod = {
        "labels": {"a": "b"},
        "nodeSelector": {"disk": "ssd"},
        "antiAffinity": True,
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "etcdEnv": [{"name": "ETCD_DEBUG", "value": "1"}],
        "busyboxImage": "busybox:1.28.0-glibc",
        "DNSTimeoutInSecond": 5,
        "ClusterDomain": ".cluster.local",
        "persistentVolumeClaimSpec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    tls = {"static": {"member": {"peerSecret": "p", "serverSecret": "s"}, "operatorSecret": "o"}}
    made = await client.create(cluster_of({"size": 5, "pod": pod, "TLS": tls}))
    assert made["spec"]["TLS"].items() >= tls.items()
    assert made["spec"]["pod"].items() >= pod.items()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"size": -1}, "spec.size"),
        ({"size": 1000}, "spec.size"),
        ({"size": 0}, "there are none: set storage"),
        ({"version": "newest"}, "spec.version"),
        ({"size": 3, "storage": {}}, "spec.storage.size"),
    ],
)
async def test_nonsense_is_refused_at_the_door(client: Client, spec: Mapping[str, Any], words: str) -> None:
    """With the field, or the remedy."""
    with pytest.raises(Invalid, match=words):
        await client.create(cluster_of(spec))


async def test_a_name_that_is_too_long_for_pods_is_refused_at_the_door(client: Client) -> None:
    """Instead of being left alone without a word."""
    with pytest.raises(Invalid, match="at most 52"):
        await client.create(cluster_of({"size": 1}, "x" * 53))


async def test_claims_cannot_be_taken_from_a_cluster(client: Client) -> None:
    """Nor given to one that has none."""
    await client.create(cluster_of({"size": 3, "storage": STORAGE}))
    with pytest.raises(Invalid, match="would lose their data"):
        await client.patch(EtcdCluster, "example", MergePatch({"spec": {"storage": None}}))


STATIC = {"static": {"member": {"peerSecret": "p", "serverSecret": "s"}, "operatorSecret": "o"}}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"TLS": STATIC}, {"TLS": None}, "TLS cannot be turned off"),
        ({"auth": {}}, {"auth": None}, "auth cannot be turned off"),
        ({"TLS": STATIC}, {"TLS": {"static": None, "issued": {}}}, "come from where they came from"),
        ({"TLS": STATIC}, {"TLS": {"static": {"member": {"peerSecret": None}}}}, "TLS between members is chosen"),
        ({}, {"TLS": {"plainClients": True}}, "either static or issued"),
        ({}, {"TLS": {"static": {"operatorSecret": "o"}}}, "member.serverSecret and operatorSecret together"),
        ({}, {"TLS": {"static": {}}}, "expected member.peerSecret"),
        ({}, {"TLS": {"issued": {"validForDays": 0}}}, "validForDays"),
    ],
)
async def test_tls_and_users_make_sense_and_stay(
    client: Client, before: Mapping[str, Any], after: Mapping[str, Any], words: str
) -> None:
    """They are turned on as a whole, and never off."""
    await client.create(cluster_of({"size": 3, **before}))
    with pytest.raises(Invalid, match=words):
        await client.patch(EtcdCluster, "example", MergePatch({"spec": after}))
    await client.patch(EtcdCluster, "example", MergePatch({"spec": {"TLS": before.get("TLS", STATIC), "auth": {}}}))


async def test_a_version_that_goes_down_or_leaps_is_refused_at_the_door(client: Client) -> None:
    """Against the version that runs."""
    await client.create(cluster_of({"size": 0, "version": "3.5.21", "storage": STORAGE}))
    running = await client.get(EtcdCluster, "example")
    running.status.current_version = "3.5.21"
    await client.replace_status(running)
    for version in ("3.4.30", "3.7.0", "4.5.0"):
        with pytest.raises(Invalid, match="one minor version at a time"):
            await client.patch(EtcdCluster, "example", MergePatch({"spec": {"version": version}}))
    await client.patch(EtcdCluster, "example", MergePatch({"spec": {"version": "v3.6.8"}}))
