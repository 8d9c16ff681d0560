"""Snapshots before upgrades, and clusters that go back to a backup or begin with one, whenever the operator is killed."""

from __future__ import annotations

import copy

import pytest

from etcd_operator.destinations import LocalSource
from etcd_operator.kinds import RestoreSource
from model_world import World
from test_sweep import Scenario, asks, loses_disks, loses_pods, new_world, nothing, swept


def asks_and_loses(version: str, ordinal: int) -> Scenario:
    def scenario(world: World) -> None:
        world.ask(version=version)
        world.lose_pod(f"example-{ordinal}")

    return scenario


def backed_up(world: World) -> World:
    """It has a place for backups and one in it, and may go back to it."""
    world.keeper.place, world.keeper.newest = True, "etcd.db"
    world.cluster.spec.healing.restore_from_backup = True
    return world


SCENARIOS: dict[str, tuple[World, Scenario]] = {
    "a new version": (new_world(), asks(version="3.5.2")),
    "a new version, in pods alone": (new_world(kept=False), asks(version="3.5.2")),
    "a version that is not there": (new_world(), asks(version="3.5.3")),
    "a version that is not there, of one": (new_world(size=1), asks(version="3.5.3")),
    "a pod is deleted before the snapshot": (new_world(), asks_and_loses("3.5.2", 1)),
    "all disks are lost": (new_world(), loses_disks(0, 1, 2)),
    "two disks of three are lost": (new_world(), loses_disks(0, 2)),
    "two of three are lost, in pods alone": (new_world(kept=False), loses_pods(0, 1)),
}


QUICK = ("a new version", "a version that is not there", "all disks are lost")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in SCENARIOS]
)
async def test_a_cluster_with_backups_gets_there_whenever_the_operator_is_killed(name: str) -> None:
    """No member starts with another version before its snapshot counts; what is lost comes back from the backup."""
    world, scenario = SCENARIOS[name]
    world = backed_up(copy.deepcopy(world))
    await world.live()
    assert await swept(world, scenario) > 0


async def test_a_cluster_begins_with_given_data_or_not_at_all_whenever_the_operator_is_killed() -> None:
    """No member ever starts without the given snapshot."""
    world = new_world()
    world.cluster.spec.restore_from = RestoreSource(local=LocalSource(path="some/etcd.db"))
    world.etcd.formed = True
    assert await swept(world, nothing) > 15


async def test_a_lost_quorum_is_left_alone_with_the_command_that_goes_back_to_the_backup() -> None:
    """Without permission nothing is restored; the status has the command."""
    world = new_world()
    world.keeper.newest = "etcd.db of yesterday"
    await world.live()
    loses_disks(0, 1, 2)(world)
    await world.live()
    assert world.cluster.status.phase == "Failed"
    assert "to restore etcd.db of yesterday: kubectl patch etcd example" in world.cluster.status.reason
    assert "restoreFromBackup" in world.cluster.status.reason
    assert world.keeper.restore_since is None


async def test_an_upgrade_without_a_place_says_that_no_snapshot_was_taken() -> None:
    """The status says so, and the upgrade continues."""
    world = new_world(size=1)
    await world.live()
    said = set()
    world.on_write = lambda now, _: said.add(now.cluster.status.snapshot_before_upgrade)
    world.ask(version="3.5.2")
    await world.live()
    assert any("none was taken" in message for message in said)


async def test_a_version_that_is_asked_for_again_has_another_snapshot() -> None:
    """One that was taken back, or given up before it began, does not count any more."""
    world = backed_up(new_world())
    await world.live()
    for version in ("3.5.3", "3.5.2"):
        world.ask(version=version)
        await world.live()
    assert len(world.keeper.asked) == 2
