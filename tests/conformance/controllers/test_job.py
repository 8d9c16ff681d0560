"""Jobs: pods that run to their end, each counted once."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any, Literal

import pytest

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import template
from conformance.controllers.watching import active_pods, for_a_while, pods_of, until, until_event, until_gone
from navarch.api import controller_of
from navarch.client import Client, MergePatch
from navarch.errors import NotFound
from navarch.k8s.batch.v1 import (
    Job,
    JobCondition,
    JobSpec,
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicy,
    SuccessPolicyRule,
)
from navarch.k8s.core.v1 import Pod

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


def job(**spec: Any) -> Job:
    return Job(name="work", spec=JobSpec(**{"template": template(restart_policy="Never"), **spec}))


def conditions(found: Job) -> list[tuple[str, str]]:
    return [(each.type, each.status) for each in found.status.conditions or ()]


def condition(found: Job, kind: str) -> JobCondition:
    return next(each for each in found.status.conditions or () if each.type == kind)


async def until_pods(client: Client, count: int) -> list[Pod]:
    pods = await until(lambda: active_pods(client), lambda pods: len(pods) == count, f"{count} pods")
    return sorted(pods, key=lambda pod: int(pod.annotations.get(INDEX, 0)))


async def until_status(client: Client, what: str, **fields: Any) -> Job:
    return await until(
        lambda: client.get(Job, "work"),
        lambda found: all(getattr(found.status, name) == value for name, value in fields.items()),
        f"{what}: {fields}",
    )


async def until_condition(client: Client, kind: str) -> Job:
    return await until(
        lambda: client.get(Job, "work"), lambda found: (kind, "True") in conditions(found), f"the Job to be {kind}"
    )


async def nothing_waits(client: Client) -> None:
    await until(
        lambda: pods_of(client),
        lambda pods: not any(FINALIZER in pod.metadata.finalizers for pod in pods),
        "no finalizer to be left",
    )


async def test_job_is_complete_when_its_pod_has_succeeded(client: Client, kubelet: Kubelet) -> None:
    """It is counted, its finalizer goes, and the conditions come in order."""
    made = await client.create(job())
    (pod,) = await until_pods(client, 1)
    owner = controller_of(pod)
    assert owner is not None
    assert (owner.uid, pod.metadata.finalizers, pod.name[:5]) == (made.metadata.uid, [FINALIZER], "work-")
    assert pod.labels["batch.kubernetes.io/job-name"] == "work"
    running = await until_status(client, "one runs", active=1, ready=1, terminating=0)
    assert running.status.start_time is not None
    await kubelet.finish(pod)
    done = await until_condition(client, "Complete")
    assert conditions(done) == [("SuccessCriteriaMet", "True"), ("Complete", "True")]
    assert condition(done, "Complete").reason == "CompletionsReached"
    assert (done.status.succeeded, done.status.failed, done.status.active, done.status.ready) == (1, None, None, 0)
    ended = condition(done, "Complete").last_transition_time
    assert done.status.completion_time is not None
    assert ended is not None
    assert timedelta() <= ended - done.status.completion_time <= timedelta(seconds=2)
    assert done.status.uncounted_terminated_pods is not None
    assert not done.status.uncounted_terminated_pods.succeeded
    await nothing_waits(client)
    await until_event(client, "work", "SuccessfulCreate", f"Created pod: {pod.name}")
    await until_event(client, "work", "Completed", "Job completed")


async def test_so_many_pods_run_at_once_until_enough_have_succeeded(client: Client, kubelet: Kubelet) -> None:
    """Towards the end no more are made than are still needed."""
    await client.create(job(parallelism=2, completions=3))
    first, second = await until_pods(client, 2)
    await kubelet.finish(first)
    await until(lambda: active_pods(client), lambda pods: len(pods) == 2 and first.name not in str(pods), "another pod")
    await until_status(client, "one done", succeeded=1, active=2)
    await kubelet.finish(second)
    (third,) = await until_pods(client, 1)
    await kubelet.finish(third)
    done = await until_condition(client, "Complete")
    assert done.status.succeeded == 3
    assert len(await pods_of(client)) == 3


async def test_job_fails_when_pods_have_failed_too_often(client: Client, kubelet: Kubelet) -> None:
    """Those that still run are ended."""
    await client.create(job(backoff_limit=0, parallelism=2, completions=2))
    first, _ = await until_pods(client, 2)
    await until_status(client, "both run", active=2, ready=2)
    await kubelet.finish(first, code=1)
    failed = await until_condition(client, "Failed")
    assert conditions(failed) == [("FailureTarget", "True"), ("Failed", "True")]
    assert condition(failed, "Failed").reason == "BackoffLimitExceeded"
    assert condition(failed, "Failed").message == "Job has reached the specified backoff limit"
    assert (failed.status.failed, failed.status.active, failed.status.completion_time) == (2, None, None)
    await nothing_waits(client)
    await until_event(client, "work", "BackoffLimitExceeded", "Job has reached the specified backoff limit")


async def test_pod_that_failed_is_replaced_after_a_delay(client: Client, kubelet: Kubelet) -> None:
    """Ten seconds after the first failure."""
    await client.create(job(backoff_limit=1))
    (first,) = await until_pods(client, 1)
    await kubelet.finish(first, code=1)
    await until_status(client, "one failed", failed=1, active=None)
    await for_a_while(lambda: active_pods(client), lambda pods: not pods, "no pod yet", seconds=1)
    (second,) = await until_pods(client, 1)
    await kubelet.finish(second)
    done = await until_condition(client, "Complete")
    assert (done.status.failed, done.status.succeeded) == (1, 1)


async def test_each_index_is_done_once(client: Client, kubelet: Kubelet) -> None:
    """A pod knows its index by annotation, label, host name and environment."""
    await client.create(job(completion_mode="Indexed", completions=3, parallelism=3))
    pods = await until_pods(client, 3)
    assert [pod.annotations[INDEX] for pod in pods] == ["0", "1", "2"]
    for number, pod in enumerate(pods):
        assert (pod.labels[INDEX], pod.spec.hostname, pod.name[:7]) == (
            str(number),
            f"work-{number}",
            f"work-{number}-",
        )
        (variable,) = pod.spec.containers[0].env or []
        assert variable.name == "JOB_COMPLETION_INDEX"
        assert variable.value_from is not None
        assert variable.value_from.field_ref is not None
        assert variable.value_from.field_ref.field_path == f"metadata.labels['{INDEX}']"
    await kubelet.finish(pods[2])
    await until_status(client, "the last is done", completed_indexes="2", succeeded=1)
    await kubelet.finish(pods[0])
    await kubelet.finish(pods[1])
    done = await until_condition(client, "Complete")
    assert (done.status.completed_indexes, done.status.succeeded) == ("0-2", 3)
    await nothing_waits(client)


async def test_failures_can_be_limited_for_each_index(client: Client, kubelet: Kubelet) -> None:
    """The others go on; in the end the Job has failed because one has."""
    await client.create(job(completion_mode="Indexed", completions=2, parallelism=2, backoff_limit_per_index=0))
    first, second = await until_pods(client, 2)
    assert first.annotations["batch.kubernetes.io/job-index-failure-count"] == "0"
    await kubelet.finish(first, code=1)
    await until_status(client, "index 0 failed", failed_indexes="0", active=1)
    await kubelet.finish(second)
    failed = await until_condition(client, "Failed")
    assert condition(failed, "Failed").reason == "FailedIndexes"
    assert (failed.status.failed_indexes, failed.status.completed_indexes, failed.status.failed) == ("0", "1", 1)


async def test_success_policy_ends_a_job_early(client: Client, kubelet: Kubelet) -> None:
    """What still runs is ended, and not counted as failed."""
    policy = SuccessPolicy(rules=[SuccessPolicyRule(succeeded_indexes="0")])
    await client.create(job(completion_mode="Indexed", completions=3, parallelism=3, success_policy=policy))
    leader, *_ = await until_pods(client, 3)
    await until_status(client, "all run", ready=3)
    await kubelet.finish(leader)
    done = await until_condition(client, "Complete")
    assert condition(done, "SuccessCriteriaMet").reason == condition(done, "Complete").reason == "SuccessPolicy"
    assert condition(done, "Complete").message == "Matched rules at index 0"
    assert (done.status.succeeded, done.status.completed_indexes) == (1, "0")
    await nothing_waits(client)


def rule(action: str, *codes: int) -> PodFailurePolicy:
    requirement = PodFailurePolicyOnExitCodesRequirement(operator="In", values=list(codes))
    return PodFailurePolicy(rules=[PodFailurePolicyRule(action=action, on_exit_codes=requirement)])


async def test_failure_policy_ends_a_job_at_once(client: Client, kubelet: Kubelet) -> None:
    """And says which rule did."""
    await client.create(job(backoff_limit=6, pod_failure_policy=rule("FailJob", 42)))
    (pod,) = await until_pods(client, 1)
    await kubelet.finish(pod, code=42)
    failed = await until_condition(client, "Failed")
    assert condition(failed, "Failed").reason == "PodFailurePolicy"
    where = f"{pod.namespace}/{pod.name}"
    assert (
        condition(failed, "Failed").message
        == f"Container main for pod {where} failed with exit code 42 matching FailJob rule at index 0"
    )


async def test_failure_that_is_ignored_does_not_count(client: Client, kubelet: Kubelet) -> None:
    """Though the next pod waits all the same."""
    await client.create(job(backoff_limit=0, pod_failure_policy=rule("Ignore", 42)))
    (pod,) = await until_pods(client, 1)
    await kubelet.finish(pod, code=42)
    await until_status(client, "none runs", active=None)
    await nothing_waits(client)
    found = await client.get(Job, "work")
    assert (found.status.failed, conditions(found)) == (None, [])


async def test_time_of_a_job_can_be_limited(client: Client, kubelet: Kubelet) -> None:
    """Counted from its start."""
    await client.create(job(active_deadline_seconds=1))
    failed = await until_condition(client, "Failed")
    assert condition(failed, "Failed").reason == "DeadlineExceeded"
    assert condition(failed, "Failed").message == "Job was active longer than specified deadline"
    assert failed.status.active is None


async def test_suspended_job_has_no_pods_and_goes_on_later(client: Client, kubelet: Kubelet) -> None:
    """What was ended for it does not count as failed."""
    await client.create(job(suspend=True, parallelism=2, completions=2))
    resting = await until_condition(client, "Suspended")
    assert (resting.status.start_time, await pods_of(client)) == (None, [])
    await until_event(client, "work", "Suspended", "Job suspended")
    await client.patch(Job, "work", MergePatch({"spec": {"suspend": False}}))
    await until_pods(client, 2)
    resumed = await until_status(client, "both run", active=2, ready=2)
    assert conditions(resumed) == [("Suspended", "False")]
    assert resumed.status.start_time is not None
    await client.patch(Job, "work", MergePatch({"spec": {"suspend": True}}))
    await until_condition(client, "Suspended")
    await until_pods(client, 0)
    again = await until_status(client, "none runs", active=None, terminating=0)
    assert again.status.failed is None


async def test_fewer_pods_run_when_parallelism_is_lowered(client: Client, kubelet: Kubelet) -> None:
    """The others go, and are not counted."""
    await client.create(job(parallelism=3))
    await until_pods(client, 3)
    await client.patch(Job, "work", MergePatch({"spec": {"parallelism": 1}}))
    await until_pods(client, 1)
    found = await until_status(client, "one runs", active=1, terminating=0)
    assert found.status.failed is None
    await until_event(client, "work", "SuccessfulDelete", "Deleted pod: work-")


async def test_finished_job_goes_when_its_time_has_come(client: Client, kubelet: Kubelet) -> None:
    """With its pods, which the garbage collector takes."""
    await client.create(job(ttl_seconds_after_finished=1))
    (pod,) = await until_pods(client, 1)
    assert await states(client) == ["there"]
    await kubelet.finish(pod)
    # Its end is told in whole seconds, so that it may go in the moment after it.
    await until(lambda: states(client), lambda found: found != ["there"], "the Job to go")


async def states(client: Client) -> list[str]:
    """Of all Jobs."""
    return ["going" if each.metadata.deletion_timestamp else "there" async for each in client.list(Job)]


async def test_pods_of_a_job_that_is_gone_are_let_go(client: Client, kubelet: Kubelet) -> None:
    """Nobody would count them any more."""
    kubelet.node = "node-1"
    await client.create(job())
    (pod,) = await until_pods(client, 1)
    await client.delete(Job, "work", propagation="Background")
    await until_gone(client, Job, "work")
    with contextlib.suppress(NotFound):  # the garbage collector may have been faster
        await client.delete(Pod, pod.name)
    await until_gone(client, Pod, pod.name)


async def test_pod_that_is_deleted_counts_as_failed(client: Client, kubelet: Kubelet) -> None:
    """Whoever did it."""
    await client.create(job(backoff_limit=3))
    (pod,) = await until_pods(client, 1)
    await client.delete(Pod, pod.name)
    await until_status(client, "one failed", failed=1)
    await until_gone(client, Pod, pod.name)


@pytest.mark.parametrize("completions", [None, 2])
async def test_job_without_a_number_ends_with_the_first_success(
    client: Client, kubelet: Kubelet, completions: int | None
) -> None:
    """Pods that run may end; none is made any more."""
    await client.create(job(parallelism=2, completions=completions))
    first, second = await until_pods(client, 2)
    await kubelet.finish(first)
    await until_status(client, "one done", succeeded=1, active=1)
    await kubelet.finish(second)
    done = await until_condition(client, "Complete")
    assert (done.status.succeeded, len(await pods_of(client))) == (2, 2)


async def test_job_of_another_controller_is_left_alone(client: Client, kubelet: Kubelet) -> None:
    """Somebody else says that he manages it."""
    await client.create(job(managed_by="example.org/other"))
    await for_a_while(lambda: pods_of(client), lambda pods: not pods, "no pods", seconds=0.5)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@pytest.mark.parametrize("running", [True, False])
async def test_pods_go_with_their_job(
    client: Client, kubelet: Kubelet, propagation: Literal["Background", "Foreground"], running: bool
) -> None:
    """Nothing waits for a finalizer that nobody takes off."""
    await client.create(job(parallelism=2, completions=2))
    first, second = await until_pods(client, 2)
    if not running:
        await kubelet.finish(first)
        await kubelet.finish(second)
        await until_condition(client, "Complete")
    await client.delete(Job, "work", propagation=propagation)
    await until_gone(client, Job, "work")
    await until(lambda: pods_of(client), lambda found: not found, "no pods")


@pytest.mark.parametrize("completions", [0, 1])
async def test_job_that_asks_for_nothing_is_done(client: Client, kubelet: Kubelet, completions: int) -> None:
    """Without pods if none have to succeed; none comes while none may run."""
    await client.create(job(completions=completions, parallelism=0))
    if not completions:
        assert (await until_condition(client, "Complete")).status.succeeded is None
    await for_a_while(lambda: pods_of(client), lambda pods: not pods, "no pods", seconds=0.3)
