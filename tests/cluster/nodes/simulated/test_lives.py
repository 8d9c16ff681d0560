"""Simulated pods pass through their stages, in virtual time."""

from __future__ import annotations

import pytest

from cluster.nodes.simulated.worlds import conditions, main, ready, world
from navarch.client import MergePatch, StrategicPatch
from navarch.cluster.nodes.simulated.stages import LIFE, Life, Stage
from navarch.k8s.core.v1 import Container, Pod, PodReadinessGate

SLOWLY = Life(stages=(Stage(becomes="running", after=2), Stage(becomes="ready", after=3)))


async def test_pod_is_ready_at_once() -> None:
    """One write sets an address and the whole status."""
    async with world() as here:
        pod = await here.create()
        assert ready(pod)
        assert (pod.status.phase, here.writes()) == ("Running", 1)
        other = await here.create("other")
        assert pod.status.pod_ip
        assert pod.status.pod_ip != other.status.pod_ip
        state = main(pod).state
        assert state is not None
        assert state.running is not None


async def test_pod_walks_through_its_stages() -> None:
    """Each stage comes at its time, with one write."""
    async with world() as here:
        pod = await here.create(life=SLOWLY)
        assert (pod.status.phase, ready(pod)) == ("Pending", False)
        pod = await here.after(2)
        assert (pod.status.phase, ready(pod)) == ("Running", False)
        assert not ready(await here.after(2.9))
        assert ready(await here.after(0.1))
        assert here.writes() == 3


async def test_stages_that_coincide_are_one_write() -> None:
    """Stages of the same moment are written together."""
    stages = (Stage(becomes="running", after=5), Stage(becomes="unready"), Stage(becomes="ready"))
    async with world() as here:
        await here.create(life=Life(stages=stages))
        assert ready(await here.after(5))
        assert here.writes() == 2


async def test_pod_that_exits_is_over_by_its_policy() -> None:
    """The status has the declared exit code and reason."""
    async with world() as here:
        life = Life(stages=(Stage(), Stage(becomes="exited", after=5, exit_code=3, reason="Broken", message="alas")))
        await here.create("never", life=life, restart_policy="Never")
        done = Life(stages=(Stage(), Stage(becomes="exited", after=5)))
        await here.create("done", life=done, restart_policy="OnFailure")
        failed = await here.after(5, "never")
        assert failed.status.phase == "Failed"
        state = main(failed).state
        assert state is not None
        assert state.terminated is not None
        ended = state.terminated
        assert (ended.exit_code, ended.reason, ended.message) == (3, "Broken", "alas")
        assert (await here.after(0, "done")).status.phase == "Succeeded"


async def test_pod_that_crashes_starts_again() -> None:
    """The first restart is immediate, later ones back off; restarts are counted."""
    async with world() as here:
        await here.create(life=Life(stages=(Stage(), Stage(becomes="exited", after=5, exit_code=1))))
        pod = await here.after(5)
        assert (main(pod).restart_count, ready(pod)) == (1, True)
        pod = await here.after(5)
        state = main(pod).state
        assert state is not None
        assert state.waiting is not None
        assert (state.waiting.reason, pod.status.phase) == ("CrashLoopBackOff", "Running")
        assert main(await here.after(9.9)).restart_count == 1
        assert main(await here.after(0.1)).restart_count == 2


async def test_pod_can_fail_as_a_whole() -> None:
    """The pod fails as in an eviction, with its own conditions."""
    stage = Stage(
        becomes="failed", after=1, reason="Evicted", message="too large", conditions={"DisruptionTarget": "True"}
    )
    async with world() as here:
        await here.create(life=Life(stages=(Stage(), stage)))
        pod = await here.after(1)
        assert (pod.status.phase, pod.status.reason, pod.status.message) == ("Failed", "Evicted", "too large")
        assert conditions(pod)["DisruptionTarget"] == "True"


async def test_jitter_spreads_pods() -> None:
    """All are ready between the earliest and the latest time, not all at once."""
    async with world() as here:
        life = Life(stages=(Stage(after=1, jitter=10),))
        for number in range(10):
            await here.create(f"pod-{number}", life=life)
        await here.after(6, "pod-0")
        middle = sum([ready(await here.after(0, f"pod-{number}")) for number in range(10)])
        assert 0 < middle < 10
        await here.after(5, "pod-0")
        assert all([ready(await here.after(0, f"pod-{number}")) for number in range(10)])


async def test_lives_are_chosen_by_labels_and_nodes() -> None:
    """The first life that matches applies; the pod's annotation overrides all."""
    waits = Life(labels="app=slow", stages=(Stage(becomes="waiting", reason="ImagePullBackOff"),))
    runs = Life(nodes=("*-2",), stages=(Stage(becomes="running"),))
    async with world(2, (waits, runs)) as here:
        slow = await here.create("slow", labels={"app": "slow"}, node="simulated-2")
        assert slow.status.phase == "Pending"
        second = await here.create("second", node="simulated-2")
        assert (second.status.phase, ready(second)) == ("Running", False)
        assert ready(await here.create("first"))
        assert ready(await here.create("own", node="simulated-2", life=Life()))


@pytest.mark.parametrize("said", ["[", '{"stages": [{"becomes": "better"}]}', '{"labels": "=="}', '{"backoff": 0}'])
async def test_annotation_that_makes_no_sense_is_reported(said: str) -> None:
    """The pod does not start, and its status has the reason."""
    async with world() as here:
        spec = (await here.create("other")).spec
        await here.client.create(Pod(name="pod", annotations={LIFE: said}, spec=spec))
        state = main(await here.after(0)).state
        assert state is not None
        assert state.waiting is not None
        assert state.waiting.reason == "CreateContainerConfigError"
        assert LIFE in (state.waiting.message or "")


async def test_pod_that_is_deleted_goes() -> None:
    """It terminates after its stopping time, and is killed at the end of the grace period."""
    async with world() as here:
        await here.create("quick")
        await here.client.delete(Pod, "quick")
        assert await here.is_gone_after(0, "quick")
        await here.create("slow", life=Life(stopping=5))
        await here.client.delete(Pod, "slow")
        assert not await here.is_gone_after(4.9, "slow")
        assert await here.is_gone_after(0.1, "slow")
        await here.create("stubborn", life=Life(stopping=60))
        await here.client.delete(Pod, "stubborn", grace_seconds=2)
        assert not await here.is_gone_after(1.9, "stubborn")
        assert await here.is_gone_after(0.1, "stubborn")


async def test_pod_that_somebody_waits_for_says_how_it_ended() -> None:
    """A pod with a finalizer shows that its containers have ended."""
    async with world() as here:
        await here.create(finalizers=["example.com/wait"], life=Life(stopping=60))
        await here.client.delete(Pod, "pod", grace_seconds=2)
        pod = await here.after(2)
        state = main(pod).state
        assert state is not None
        assert state.terminated is not None
        assert (pod.status.phase, state.terminated.exit_code) == ("Failed", 137)
        await here.client.patch(Pod, "pod", MergePatch({"metadata": {"finalizers": None}}))
        assert await here.is_gone_after(0)


async def test_readiness_gates_are_waited_for() -> None:
    """A pod is ready when what others say of it is true as well."""
    async with world() as here:
        gate = PodReadinessGate(condition_type="example.com/gate")
        assert not ready(await here.create(readiness_gates=[gate]))
        condition = {"type": "example.com/gate", "status": "True"}
        patch = StrategicPatch({"status": {"conditions": [condition]}})
        await here.client.patch(Pod, "pod", patch, subresource="status")
        pod = await here.after(0)
        assert ready(pod)
        assert conditions(pod)["example.com/gate"] == "True"


async def test_init_containers_have_done_their_work() -> None:
    """Init containers have succeeded, and sidecars run."""
    init = [Container(name="first", image="none"), Container(name="beside", image="none", restart_policy="Always")]
    async with world() as here:
        pod = await here.create(init_containers=init)
        first, beside = pod.status.init_container_statuses or []
        assert first.state is not None
        assert first.state.terminated is not None
        assert beside.state is not None
        assert beside.state.running is not None
        assert first.ready
