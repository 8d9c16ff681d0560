"""Pods run and terminate as Kubernetes' do, with real processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from cluster.nodes.machines import (
    Machine,
    condition,
    end_of,
    is_ready,
    long_while,
    processes_with,
    shell,
    status_of,
    waits_for,
)
from navarch.k8s.core.v1 import ExecAction, Lifecycle, LifecycleHandler, Pod, SleepAction


async def test_pod_becomes_ready(machine: Machine) -> None:
    """A pod whose program runs is Running and Ready, with an address, times and all conditions."""
    pod = await machine.run(shell("sleep 100"))
    status = pod.status
    assert status.phase == "Running"
    assert status.pod_ip is not None
    assert status.pod_ip.startswith("127.")
    assert status.host_ip == "127.0.0.1"
    assert status.start_time is not None
    assert {known.type for known in status.conditions or []} == {
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    }
    main = status_of(pod)
    assert (main.ready, main.started, main.restart_count) == (True, True, 0)
    assert main.state is not None
    assert main.state.running is not None


async def test_deletion_ends_the_processes_and_leaves_nothing(machine: Machine) -> None:
    """A pod that is deleted is gone with its processes, those they forked, and its folder."""
    mark = f"sleep {long_while()}"
    pod = await machine.run(shell(f"(setsid {mark} &) ; {mark}"))
    await machine.cluster.eventually(_found(mark), lambda found: len(found) >= 2, what="both processes")
    await machine.cluster.delete(Pod, "pod")
    await machine.gone()
    assert not processes_with("\0".join(mark.split()))
    folder = machine.pod_folder(pod)
    await machine.cluster.eventually(_exists(folder), lambda there: not there, what=f"{folder} to be removed")


def _exists(folder: Path) -> Callable[[], Awaitable[bool]]:
    async def exists() -> bool:
        return await asyncio.to_thread(folder.exists)

    return exists


def _found(mark: str) -> Callable[[], Awaitable[list[int]]]:
    async def found() -> list[int]:
        return processes_with("\0".join(mark.split()))

    return found


async def test_grace_ends_with_a_kill(machine: Machine) -> None:
    """A program that ignores SIGTERM is killed at the end of the grace period: exit code 137."""
    await machine.run(shell("trap '' TERM; while :; do sleep 0.05; done"), termination_grace_period_seconds=1)
    ends = asyncio.Event()
    seen: list[int] = []

    async def watch() -> None:
        async with machine.cluster.client.watch(Pod) as changes:
            ends.set()
            async for change in changes:
                ended = status_of(change.object).state
                if ended is not None and ended.terminated is not None:
                    seen.append(ended.terminated.exit_code)
                if change.type == "DELETED":
                    return

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(watch())
        await ends.wait()
        await machine.cluster.delete(Pod, "pod")
    assert seen[-1] == 137
    assert await machine.noted("Killing") == "Stopping container main"


async def test_a_program_that_ends_on_sigterm_is_not_waited_for(machine: Machine) -> None:
    """A program that ends on SIGTERM ends long before the grace period does."""
    script = "trap 'exit 0' TERM; echo heeds; while :; do sleep 0.05; done"
    pod = await machine.run(shell(script), termination_grace_period_seconds=600)
    await machine.said(pod, "heeds")
    await machine.cluster.delete(Pod, "pod")
    await machine.gone()


async def test_a_shorter_grace_counts_from_the_second_deletion(machine: Machine) -> None:
    """Deleting again with less time shortens the wait."""
    await machine.run(shell("trap '' TERM; while :; do sleep 0.05; done"), termination_grace_period_seconds=600)
    await machine.cluster.client.delete(Pod, "pod")
    await machine.cluster.client.delete(Pod, "pod", grace_seconds=1)
    await machine.gone()


async def test_exit_code_decides_the_phase(machine: Machine) -> None:
    """Exit code 0 is Succeeded and Completed, any other Failed and Error."""
    good = await machine.ended(shell("exit 0"), name="good")
    bad = await machine.ended(shell("exit 3"), name="bad")
    for pod, phase, code, reason in ((good, "Succeeded", 0, "Completed"), (bad, "Failed", 3, "Error")):
        ended = end_of(pod)
        assert (pod.status.phase, ended.exit_code, ended.reason) == (phase, code, reason)
        assert ended.container_id


async def test_a_failing_container_is_restarted_with_growing_delays(machine: Machine) -> None:
    """With restart policy Always restarts are counted, the last end is reported, and the container waits in
    CrashLoopBackOff.
    """
    await machine.create(shell("exit 1"))
    waiting = await machine.until(lambda pod: waits_for(pod) == "CrashLoopBackOff")
    main = status_of(waiting)
    assert main.last_state is not None
    assert main.last_state.terminated is not None
    assert main.last_state.terminated.exit_code == 1
    assert main.restart_count >= 1
    assert waiting.status.phase == "Running"
    await machine.until(lambda pod: status_of(pod).restart_count >= 3)
    assert "Back-off restarting failed container main in pod pod_default" in await machine.noted("BackOff")


async def test_on_failure_restarts_until_success(machine: Machine) -> None:
    """Restart policy OnFailure ends with the first success; what a volume holds survives restarts."""
    script = "test -e /data/tried && exit 0; touch /data/tried; exit 1"
    pod = await machine.ended(
        shell(script, volume_mounts=[{"name": "data", "mountPath": "/data"}]),
        restart_policy="OnFailure",
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    assert pod.status.phase == "Succeeded"
    assert status_of(pod).restart_count == 1


async def test_init_containers_run_in_order_before_the_others(machine: Machine) -> None:
    """Each init container ends before the next begins, and a sidecar stays while the others run."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    pod = await machine.ended(
        shell(
            "until grep -q side /data/order; do sleep 0.05; done; echo main >> /data/order; cat /data/order",
            volume_mounts=mounts,
        ),
        init_containers=[
            shell("sleep 0.1; echo first >> /data/order", "first", volume_mounts=mounts),
            shell("echo side >> /data/order; sleep 100", "side", volume_mounts=mounts, restart_policy="Always"),
            shell("echo second >> /data/order", "second", volume_mounts=mounts),
        ],
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    assert pod.status.phase == "Succeeded"
    order = (await machine.log(pod)).split()
    assert [word for word in order if word != "side"] == ["first", "second", "main"]
    assert "side" in order
    assert end_of(pod, "side").exit_code != 0


async def test_a_failed_init_container_fails_the_pod(machine: Machine) -> None:
    """With restart policy Never the first failure is the last; the others never start."""
    pod = await machine.ended(shell("exit 0"), init_containers=[shell("exit 4", "first")])
    assert pod.status.phase == "Failed"
    assert waits_for(pod) == "PodInitializing"
    initialized = condition(pod, "Initialized")
    assert (initialized.status, initialized.reason) == ("False", "ContainersNotInitialized")
    assert initialized.message == "containers with incomplete status: [first]"


async def test_hooks_run(machine: Machine) -> None:
    """postStart runs before the pod is ready, preStop before SIGTERM."""
    container = shell(
        "trap 'cat /data/words >> /data/all; exit 0' TERM; echo heeds; while :; do sleep 0.05; done",
        volume_mounts=[{"name": "data", "mountPath": "/data"}],
        lifecycle=Lifecycle(
            post_start=LifecycleHandler(exec=ExecAction(command=["sh", "-c", "echo began > /data/words"])),
            pre_stop=LifecycleHandler(exec=ExecAction(command=["sh", "-c", "echo ends >> /data/words"])),
        ),
    )
    shared = machine.folder / "shared"
    pod = await machine.run(
        container,
        volumes=[{"name": "data", "hostPath": {"path": str(shared), "type": "DirectoryOrCreate"}}],
        termination_grace_period_seconds=600,
    )
    await machine.said(pod, "heeds")
    assert (shared / "words").read_text() == "began\n"
    await machine.cluster.delete(Pod, pod.name)
    await machine.gone()
    assert (shared / "all").read_text() == "began\nends\n"


async def test_a_sleeping_hook_does_not_outlast_the_grace(machine: Machine) -> None:
    """A preStop hook that takes longer than the grace is cut off."""
    hook = Lifecycle(pre_stop=LifecycleHandler(sleep=SleepAction(seconds=2)))
    await machine.run(
        shell("trap 'exit 0' TERM; while :; do sleep 0.05; done", lifecycle=hook), termination_grace_period_seconds=2
    )
    await machine.cluster.client.delete(Pod, "pod", grace_seconds=1)
    await machine.gone()


async def test_a_deadline_fails_the_pod(machine: Machine) -> None:
    """activeDeadlineSeconds: the pod fails with DeadlineExceeded and its processes end."""
    pod = await machine.ended(shell("sleep 100"), active_deadline_seconds=1)
    assert (pod.status.phase, pod.status.reason) == ("Failed", "DeadlineExceeded")


async def test_last_words_are_told(machine: Machine) -> None:
    """The status has the content of the message file or, if the policy says so, the end of the log."""
    pod = await machine.ended(
        shell("echo goodbye > /dev/termination-log; exit 1", "words"),
        shell("echo out of luck; exit 1", "log", termination_message_policy="FallbackToLogsOnError"),
    )
    assert end_of(pod, "words").message == "goodbye\n"
    assert end_of(pod, "log").message == "out of luck\n"


async def test_another_image_restarts_the_container(machine: Machine) -> None:
    """A container whose image is changed is started anew, once."""
    await machine.run(shell("trap 'exit 0' TERM; while :; do sleep 0.05; done"))
    await machine.cluster.client.update(Pod, "pod", _with_image("alpine"))
    pod = await machine.until(lambda pod: is_ready(pod) and status_of(pod).restart_count == 1)
    assert status_of(pod).image == "alpine"


def _with_image(image: str) -> Callable[[Pod], None]:
    def change(pod: Pod) -> None:
        pod.spec.containers[0].image = image

    return change


async def test_pods_that_vanish_are_ended(machine: Machine) -> None:
    """A pod that is deleted by force leaves no process behind."""
    mark = f"sleep {long_while()}"
    await machine.run(shell(mark))
    await machine.cluster.eventually(_found(mark), bool, timeout=60, what="the process to begin")
    await machine.cluster.client.delete(Pod, "pod", grace_seconds=0)
    await machine.cluster.eventually(_found(mark), lambda found: not found, timeout=60, what="the process to end")


async def test_pods_that_are_deleted_at_once_leave_nothing(machine: Machine) -> None:
    """A pod that is deleted at any moment of its start terminates."""
    mark = f"sleep {long_while()}"
    for number in range(8):
        await machine.create(shell(f"trap 'exit 0' TERM; {mark} & wait"), name=f"pod-{number}")
        if number % 2:
            await machine.until(lambda pod: pod.status.phase, name=f"pod-{number}")
        await machine.cluster.delete(Pod, f"pod-{number}")
    for number in range(8):
        await machine.gone(f"pod-{number}")
    await machine.cluster.eventually(_found(mark), lambda found: not found, what="the processes to end")
    await machine.cluster.eventually(_folders(machine), lambda found: not found, what="the folders to go")


def _folders(machine: Machine) -> Callable[[], Awaitable[list[str]]]:
    async def found() -> list[str]:
        return [path.name for path in (machine.folder / "pods").iterdir()]

    return found
