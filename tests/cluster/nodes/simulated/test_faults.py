"""Simulated nodes fail and return."""

from __future__ import annotations

from datetime import timedelta

from cluster.nodes.simulated.worlds import World, main, ready, world
from navarch.cluster.nodes.simulated.stages import Life, Stage
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import Node, Pod

NODE = "simulated-1"
LATER = Life(stages=(Stage(becomes="running"), Stage(becomes="ready", after=60)))


async def age(here: World, name: str = NODE) -> timedelta:
    """How long ago the node gave its last sign of life."""
    lease = await here.client.get(Lease, name, namespace="kube-node-lease")
    assert lease.spec.renew_time is not None
    return here.clock.now() - lease.spec.renew_time


async def test_nodes_join_and_give_signs_of_life() -> None:
    """All nodes of one process register and send heartbeats."""
    async with world(20) as here:
        nodes = [node async for node in here.client.list(Node)]
        assert {node.name for node in nodes} == set(here.nodes.names)
        assert len({(node.status.addresses or [])[0].address for node in nodes}) == 20
        await here.clock.advance(60)
        assert max([await age(here, name) for name in here.nodes.names]) <= timedelta(seconds=11)


async def test_node_that_is_cut_off_is_silent_and_its_pods_live_on() -> None:
    """Their status is written when the node returns."""
    async with world() as here:
        await here.create(life=LATER)
        here.nodes.cut_off(NODE)
        assert not ready(await here.after(120))
        assert await age(here) >= timedelta(seconds=119)
        here.nodes.restore(NODE)
        pod = await here.after(0)
        assert ready(pod)
        assert main(pod).restart_count == 0
        assert await age(here) == timedelta(0)


async def test_node_that_is_frozen_stands_still() -> None:
    """Its pods do not change; they continue where they were after the thaw."""
    async with world() as here:
        await here.create(life=LATER)
        here.nodes.freeze(NODE)
        await here.after(120)
        assert await age(here) >= timedelta(seconds=119)
        here.nodes.restore(NODE)
        assert not ready(await here.after(59))
        assert ready(await here.after(1))


async def test_pods_that_came_or_were_to_go_while_their_node_stood_still_begin_when_it_goes_on() -> None:
    """They take as long as other pods, from the thaw on."""
    async with world() as here:
        await here.create("old")
        here.nodes.freeze(NODE)
        await here.clock.advance(100)
        await here.client.delete(Pod, "old")
        new = await here.create("new", life=LATER)
        assert not new.status.container_statuses
        await here.clock.advance(100)
        here.nodes.restore(NODE)
        assert await here.is_gone_after(0, "old")
        assert not ready(await here.after(59, "new"))
        assert ready(await here.after(1, "new"))


async def test_node_that_was_killed_starts_its_pods_again() -> None:
    """Pods restart by their restart policy."""
    async with world() as here:
        await here.create()
        await here.create("once", restart_policy="Never")
        here.nodes.kill(NODE)
        assert ready(await here.after(120)), "expected nothing to be said by a dead node"
        here.nodes.restore(NODE)
        pod = await here.after(0)
        assert (main(pod).restart_count, ready(pod)) == (1, True)
        last = main(pod).last_state
        assert last is not None
        assert last.terminated is not None
        assert last.terminated.exit_code == 137
        assert (await here.after(0, "once")).status.phase == "Failed"


async def test_node_that_returns_cleans_up() -> None:
    """Pods that were deleted meanwhile terminate when the node returns."""
    async with world() as here:
        await here.create()
        here.nodes.cut_off(NODE)
        await here.client.delete(Pod, "pod")
        assert not await here.is_gone_after(120)
        here.nodes.restore(NODE)
        assert await here.is_gone_after(0)


async def test_pods_live_on_when_the_simulation_is_started_again() -> None:
    """Pods continue from their status, and keep their addresses."""
    async with world(2) as here:
        first = await here.create()
        await here.create("later", life=LATER)
        slow = Life(stages=(Stage(becomes="running", after=20), Stage(becomes="ready", after=60)))
        await here.create("slow", life=slow)
        await here.create("crashed", life=Life(stages=(Stage(), Stage(becomes="exited", after=15, exit_code=1))))
        await here.clock.advance(30)
        await here.stop()
        await here.start(2)
        new = await here.create("new", node="simulated-2")
        pod = await here.after(29)
        assert (pod.status.pod_ip, main(pod).restart_count) == (first.status.pod_ip, 0)
        assert new.status.pod_ip != pod.status.pod_ip
        assert not ready(await here.after(0, "later"))
        assert ready(await here.after(1, "later"))
        slow_pod, crashed = await here.after(0, "slow"), await here.after(0, "crashed")
        assert (slow_pod.status.phase, ready(slow_pod)) == ("Running", False)
        assert ready(await here.after(20, "slow"))
        assert main(crashed).restart_count >= 1
        assert main(crashed).last_state is not None
