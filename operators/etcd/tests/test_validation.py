"""What the API server takes and refuses, and what old manifests become."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar

import pytest

import rig
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import EtcdCluster
from namespaces import in_new_namespace
from navarch._base.clock import SystemClock
from navarch.api import Dynamic
from navarch.client import Client, MergePatch, connect, load
from navarch.errors import Invalid, NotFound
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, Service
from navarch.k8s.policy.v1 import PodDisruptionBudget
from navarch.operator.crds import prepare_crds
from navarch.testing.cluster import in_process
from operated import running

STORAGE = {"size": "1Gi"}
SECONDS = 60.0

T = TypeVar("T")


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
    """A manifest with size and version alone is accepted."""
    await client.create(cluster_of({"size": 3, "version": "3.2.13"}))
    found = await client.get(EtcdCluster, "example")
    assert (found.spec.size, found.spec.version, found.spec.repository) == (3, "3.2.13", "quay.io/coreos/etcd")


async def test_every_field_of_coreos_is_kept(client: Client) -> None:
    """Every field of CoreOS' API is stored, also those that are ignored."""
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
    ("spec", "message"),
    [
        ({"size": -1}, "spec.size"),
        ({"size": 1000}, "spec.size"),
        ({"size": 0}, "there are none: set storage"),
        ({"version": "newest"}, "spec.version"),
        ({"size": 3, "storage": {}}, "spec.storage.size"),
    ],
)
async def test_nonsense_is_refused_at_the_door(client: Client, spec: Mapping[str, Any], message: str) -> None:
    """The API server refuses it, and names the field or the remedy."""
    with pytest.raises(Invalid, match=message):
        await client.create(cluster_of(spec))


async def test_a_name_that_is_too_long_for_pods_is_refused_at_the_door(client: Client) -> None:
    """A name whose pods would be too long is refused, instead of ignored."""
    with pytest.raises(Invalid, match="at most 52"):
        await client.create(cluster_of({"size": 1}, "x" * 53))


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
COREOS_CLAIM = {"pod": {"persistentVolumeClaimSpec": CLAIM}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"storage": STORAGE}, {"storage": None}),
        ({}, {"storage": STORAGE}),
        (COREOS_CLAIM, {"pod": {"persistentVolumeClaimSpec": None}}),
        ({"pod": {"labels": {"a": "b"}}}, COREOS_CLAIM),
    ],
)
async def test_claims_cannot_be_taken_from_a_cluster(
    client: Client, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Nor given to one that has none, in whichever way that is said; it may be said in the other way."""
    await client.create(cluster_of({"size": 1, **before}))
    with pytest.raises(Invalid, match="would lose their data"):
        await client.patch(EtcdCluster, "example", MergePatch({"spec": dict(after)}))
    if before is COREOS_CLAIM:
        await client.patch(EtcdCluster, "example", MergePatch({"spec": {"storage": STORAGE, "pod": None}}))


STATIC = {"static": {"member": {"peerSecret": "p", "serverSecret": "s"}, "operatorSecret": "o"}}


@pytest.mark.parametrize(
    ("before", "after", "message"),
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
    client: Client, before: Mapping[str, Any], after: Mapping[str, Any], message: str
) -> None:
    """TLS and authentication are enabled as a whole, and cannot be disabled."""
    await client.create(cluster_of({"size": 3, **before}))
    with pytest.raises(Invalid, match=message):
        await client.patch(EtcdCluster, "example", MergePatch({"spec": after}))
    await client.patch(EtcdCluster, "example", MergePatch({"spec": {"TLS": before.get("TLS", STATIC), "auth": {}}}))


async def test_a_version_that_goes_down_or_leaps_is_refused_at_the_door(client: Client) -> None:
    """The API server compares spec.version with the running version."""
    await client.create(cluster_of({"size": 0, "version": "3.5.21", "storage": STORAGE}))
    running = await client.get(EtcdCluster, "example")
    running.status.current_version = "3.5.21"
    await client.replace_status(running)
    for version in ("3.4.30", "3.7.0", "4.5.0"):
        with pytest.raises(Invalid, match="one minor version at a time"):
            await client.patch(EtcdCluster, "example", MergePatch({"spec": {"version": version}}))
    await client.patch(EtcdCluster, "example", MergePatch({"spec": {"version": "v3.6.8"}}))


async def test_an_old_manifest_becomes_a_seed_and_what_is_edited_is_put_right(client: Client) -> None:
    """With the flags of its version, a claim, two services and a budget, which somebody edits."""
    async with running(client, etcd_operator()):
        await client.create(cluster_of({"size": 3, "version": "3.2.13", "storage": STORAGE}, "old"))
        seed = await eventually("a seed", lambda: client.get(Pod, "old-0"), lambda _: True)
        assert seed.spec.containers[0].image == "quay.io/coreos/etcd:v3.2.13"
        assert not [flag for flag in seed.spec.containers[0].command or [] if "metrics" in flag]
        await client.get(PersistentVolumeClaim, "old-0")
        await is_put_right(client)
        told = await eventually(
            "a status that says who is waited for",
            lambda: client.get(EtcdCluster, "old"),
            lambda found: found.status.next_step.startswith("waiting for old-0 to answer"),
        )
        assert (told.status.phase, told.status.is_true("Available")) == ("Creating", False)


async def is_put_right(client: Client) -> None:
    """What does not go together with what is wanted goes."""
    ports = {"ports": [{"name": "client", "port": 1}], "selector": {"app": "other"}}
    await client.patch(Service, "old-client", MergePatch({"spec": ports}))
    budget = {"minAvailable": None, "maxUnavailable": 3}
    await client.patch(PodDisruptionBudget, "old", MergePatch({"spec": budget}))
    await eventually(
        "the service as it was",
        lambda: client.get(Service, "old-client"),
        lambda found: [each.port for each in found.spec.ports or ()] == [2379],
    )
    await eventually(
        "the budget as it was",
        lambda: client.get(PodDisruptionBudget, "old"),
        lambda found: found.spec.min_available == 2 and found.spec.max_unavailable is None,
    )


async def eventually(what: str, read: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    """What is read, once it holds; looked at until it does."""
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    found = await read()
                    if holds(found):
                        return found
                except NotFound:
                    pass
                await SystemClock().sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"expected {what} within {SECONDS:g} s") from None
