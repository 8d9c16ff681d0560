"""Every scenario, and then again with the operator killed after each of its writes: it always gets there, unharmed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from etcd_operator.kinds import (
    AuthPolicy,
    EtcdCluster,
    EtcdClusterSpec,
    EtcdSettings,
    Healing,
    IssuedTls,
    MemberStorage,
    TlsPolicy,
)
from model_world import World
from navarch.api import Quantity

Scenario = Callable[[World], None]


def new_world(*, size: int = 3, kept: bool = True, learners: bool = True, force: bool = False) -> World:
    storage = MemberStorage(size=Quantity("1Gi")) if kept else None
    spec = EtcdClusterSpec(
        size=size,
        version="3.5.1",
        storage=storage,
        learners=learners,
        healing=Healing(force_new_cluster=force, replace_lost_after_seconds=5),
    )
    return World(EtcdCluster(name="example", spec=spec))


def nothing(world: World) -> None:
    """Only what is asked for from the beginning."""


def asks(**fields: Any) -> Scenario:
    return lambda world: world.ask(**fields)


def loses_pods(*ordinals: int) -> Scenario:
    def scenario(world: World) -> None:
        for ordinal in ordinals:
            world.lose_pod(f"example-{ordinal}")

    return scenario


def loses_disks(*ordinals: int) -> Scenario:
    def scenario(world: World) -> None:
        for ordinal in ordinals:
            world.lose_disk(f"example-{ordinal}")
            world.lose_pod(f"example-{ordinal}")

    return scenario


def loses_claims(*ordinals: int) -> Scenario:
    def scenario(world: World) -> None:
        for ordinal in ordinals:
            world.lose_claim(f"example-{ordinal}")

    return scenario


def wipes(ordinal: int) -> Scenario:
    return lambda world: world.wipe_and_crash(f"example-{ordinal}")


def is_corrupt(ordinal: int) -> Scenario:
    def scenario(world: World) -> None:
        number = world.etcd.processes[f"example-{ordinal}"].member
        world.etcd.alarmed.append((number, "CORRUPT"))

    return scenario


def differs(ordinal: int) -> Scenario:
    def scenario(world: World) -> None:
        world.etcd.differ.add(world.etcd.processes[f"example-{ordinal}"].member)
        world.elapsed += world.cluster.spec.healing.compare_every_seconds

    return scenario


def loses_nodes(*ordinals: int) -> Scenario:
    def scenario(world: World) -> None:
        for ordinal in ordinals:
            world.lose_node(f"example-{ordinal}")

    return scenario


def wakes(world: World) -> None:
    """Asleep first, and then back."""
    world.ask(size=3)


ISSUED = TlsPolicy(issued=IssuedTls())

SCENARIOS: dict[str, tuple[World, Scenario]] = {
    "1 to 3": (new_world(size=1), asks(size=3)),
    "3 to 5": (new_world(), asks(size=5)),
    "5 to 3": (new_world(size=5), asks(size=3)),
    "3 to 1": (new_world(), asks(size=1)),
    "3 to 0": (new_world(), asks(size=0)),
    "1 to 3, voters at once": (new_world(size=1, learners=False), asks(size=3)),
    "3 to 5, in pods alone": (new_world(kept=False), asks(size=5)),
    "a pod is deleted": (new_world(), loses_pods(1)),
    "the leader's pod is deleted": (new_world(), loses_pods(0)),
    "two pods are deleted": (new_world(), loses_pods(0, 1)),
    "all pods are deleted": (new_world(), loses_pods(0, 1, 2)),
    "a pod is deleted with its data": (new_world(kept=False), loses_pods(1)),
    "a disk is lost": (new_world(), loses_disks(1)),
    "the seed's disk is lost": (new_world(), loses_disks(0)),
    "two disks of five are lost": (new_world(size=5), loses_disks(1, 3)),
    "the seed's disk is wiped": (new_world(), wipes(0)),
    "another disk is wiped": (new_world(), wipes(2)),
    "a disk is wiped, in pods alone": (new_world(kept=False), wipes(1)),
    "a member is corrupt": (new_world(), is_corrupt(1)),
    "the leader is corrupt": (new_world(), is_corrupt(0)),
    "a member has other data": (new_world(), differs(1)),
    "the leader has other data": (new_world(), differs(0)),
    "a node is gone": (new_world(), loses_nodes(1)),
    "the leader's node is gone, in pods alone": (new_world(kept=False), loses_nodes(0)),
    "a new version": (new_world(), asks(version="3.5.2")),
    "a new version, in pods alone": (new_world(kept=False), asks(version="3.5.2")),
    "TLS and users are turned on": (new_world(), asks(tls=ISSUED, auth=AuthPolicy())),
    "TLS is turned on and one more, in pods alone": (new_world(size=1, kept=False), asks(tls=ISSUED, size=2)),
    "a new version of one": (new_world(size=1), asks(version="3.5.2")),
    "a version that is not there": (new_world(), asks(version="3.5.3")),
    "a new version and two more": (new_world(), asks(version="3.5.2", size=5)),
    "two disks of three are lost, and that is allowed": (new_world(force=True), loses_disks(0, 2)),
    "three disks of five are lost, and that is allowed": (new_world(size=5, force=True), loses_disks(0, 2, 4)),
    "all claims are deleted": (new_world(), loses_claims(0, 1, 2)),
    "the only claim is deleted": (new_world(size=1), loses_claims(0)),
}


def is_secure(world: World) -> bool:
    """Whether nobody can be reached in plain text."""
    urls = [member.peer_url for member in world.etcd.members.values()]
    listen = [process.listens for process in world.etcd.processes.values()]
    return all(url.startswith("https:") for url in urls) and all(each == {"https"} for each in listen)


def is_as_asked(world: World) -> None:
    """The members that are asked for run, and nothing is left of others."""
    assert is_secure(world) == (world.cluster.spec.tls is not None)
    assert world.etcd.knows_root == (world.cluster.spec.auth is not None)
    status, size = world.cluster.status, world.cluster.spec.size
    assert len(world.etcd.voters) == (size or len(world.claims)), f"got {world.etcd.members}"
    assert len(world.pods) == size == len(world.etcd.processes)
    assert len(status.members.ready) == size
    names = {member.name for member in world.etcd.members.values()}
    assert not world.cluster.spec.storage or set(world.claims) == names
    assert status.is_true("Available") == bool(size)
    assert all(
        pod.annotations["etcd.database.coreos.com/initial-cluster-state"] == "existing" for pod in world.pods.values()
    )


async def swept(world: World, scenario: Scenario) -> int:
    """Runs the scenario in a copy of the world, once, and once for each write; how many that were."""
    whole = copy.deepcopy(world)
    before = len(whole.writes)
    scenario(whole)
    await whole.live()
    is_as_asked(whole)
    for last in range(before + 1, len(whole.writes) + 1):
        again = copy.deepcopy(world)
        scenario(again)
        again.dies_after = last
        await again.live()
        is_as_asked(again)
    return len(whole.writes) - before


@pytest.mark.parametrize("learners", [True, False])
@pytest.mark.parametrize("kept", [True, False])
async def test_a_cluster_forms_whenever_the_operator_is_killed(*, kept: bool, learners: bool) -> None:
    """A cluster forms three members, with or without claims, as learners or as voters."""
    assert await swept(new_world(kept=kept, learners=learners), nothing) > 15


QUICK = (
    "1 to 3",
    "3 to 1",
    "3 to 0",
    "the leader's pod is deleted",
    "a pod is deleted with its data",
    "the seed's disk is lost",
    "another disk is wiped",
    "the leader is corrupt",
    "a node is gone",
    "a new version",
    "two disks of three are lost, and that is allowed",
    "the only claim is deleted",
)
"""One scenario of each sort; `make e2e` sweeps through all of them."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in SCENARIOS]
)
async def test_a_cluster_gets_there_whenever_the_operator_is_killed(name: str) -> None:
    """What is asked for comes about, no quorum is given away, and no voter is removed that could be kept."""
    world, scenario = SCENARIOS[name]
    world = copy.deepcopy(world)
    await world.live()
    assert await swept(world, scenario) > 0


async def test_a_cluster_wakes_up_with_its_members_whenever_the_operator_is_killed() -> None:
    """A cluster that was stopped starts with its former members."""
    world = new_world()
    await world.live()
    members = dict(world.etcd.members)
    world.ask(size=0)
    await world.live()
    await swept(world, wakes)
    world.ask(size=3)
    await world.live()
    assert world.etcd.members == members


async def test_all_pods_may_be_lost_while_tls_is_turned_on() -> None:
    """Whenever that is: whoever is started anew is found by the others, in the way that they know."""
    world = new_world()
    await world.live()
    before = len(world.writes)
    for last in range(before + 1, before + 36, 3):
        again = copy.deepcopy(world)
        again.on_write = lambda lost, count, last=last: loses_pods(0, 1, 2)(lost) if count == last else None
        again.ask(tls=ISSUED)
        await again.live()
        is_as_asked(again)


async def test_a_quorum_that_is_lost_for_good_is_left_alone_and_said() -> None:
    """Nothing is forced that is not allowed; the command that would is in the status."""
    world = new_world()
    await world.live()
    loses_disks(0, 2)(world)
    await world.live()
    assert world.cluster.status.phase == "Failed"
    assert "forceNewCluster" in world.cluster.status.reason
    assert not world.cluster.status.is_true("Available")
    assert world.claims.keys() == {"example-1"}


async def test_what_was_seen_long_ago_is_not_acted_upon() -> None:
    """The operator was stopped after it looked, and another one may have gone on: it looks again first."""
    world = new_world()
    await world.live()
    world.slowness = 20.0
    world.ask(size=1)
    before = len(world.writes)
    for _ in range(5):
        await world.look_once()
    assert all(write.startswith("status") for write in world.writes[before:])
    world.slowness = 0.0
    await world.live()
    is_as_asked(world)


async def test_no_pod_is_restarted_beside_one_that_goes_unnoticed() -> None:
    """Nobody tells the operator that a pod is being deleted, which serves a moment longer: the roll-out waits."""
    world = new_world()
    await world.live()
    world.lose_sight()
    world.lose_pod("example-1")
    world.ask(options=EtcdSettings(snapshot_count=5000))
    for _ in range(5):
        await world.look_once()
    assert not [write for write in world.writes if write.startswith("delete")]
    world.stale = None
    await world.live()
    is_as_asked(world)


async def test_a_version_that_does_not_work_is_taken_back() -> None:
    """The member that could not start runs again with the version before, and the status says so."""
    world = new_world()
    await world.live()
    world.ask(version="3.5.3")
    await world.live()
    assert {process.version for process in world.etcd.processes.values()} == {"3.5.1"}
    degraded = world.cluster.status.condition("Degraded")
    assert degraded is not None
    assert degraded.reason == "RolloutFailed"
    world.ask(version="3.5.2")
    await world.live()
    assert {process.version for process in world.etcd.processes.values()} == {"3.5.2"}


@pytest.mark.parametrize("seed", range(8))
async def test_a_spec_that_changes_all_the_time_harms_nothing(seed: int) -> None:
    """The size changes with every write; the cluster ends with the last one."""
    sizes = [3, 5, 1, 4, 2, 7, 3, 1]
    world = new_world()

    def edit(world: World, count: int) -> None:
        if count < 60:
            world.ask(size=sizes[(count * (seed + 1)) % len(sizes)])

    world.on_write = edit
    await world.live()
    world.on_write = None
    world.ask(size=3)
    await world.live()
    is_as_asked(world)
