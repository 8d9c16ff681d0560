"""What of a Job is plain arithmetic: indexes, delays, policies, and how far it has come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api import ObjectMeta
from navarch.cluster.controllers.workloads.jobs.finalizer_tracking import Counting
from navarch.cluster.controllers.workloads.jobs.indexes import (
    INDEX,
    Indexes,
    format_indexes,
    parse_indexes,
    pending_indexes,
)
from navarch.cluster.controllers.workloads.jobs.pod_failures import delay_left, delay_of_pods, success_of
from navarch.cluster.controllers.workloads.jobs.tally import FINALIZER, Tally, completed, target_of
from navarch.k8s.batch.v1 import (
    Job,
    JobCondition,
    JobSpec,
    JobStatus,
    SuccessPolicy,
    SuccessPolicyRule,
    UncountedTerminatedPods,
)
from navarch.k8s.core.v1 import (
    Container,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def pod(name: str, phase: str, *, ago: float = 0, index: int | None = None, tracked: bool = True) -> Pod:
    ended = ContainerStateTerminated(exit_code=int(phase == "Failed"), finished_at=NOW - timedelta(seconds=ago))
    status = ContainerStatus(
        name="c", image="", image_id="", ready=False, restart_count=0, state=ContainerState(terminated=ended)
    )
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            creation_timestamp=NOW - timedelta(hours=1),
            annotations={} if index is None else {INDEX: str(index)},
            finalizers=[FINALIZER] if tracked else [],
        ),
        spec=PodSpec(containers=[Container(name="c")]),
        status=PodStatus(phase=phase, container_statuses=[status] if phase in {"Failed", "Succeeded"} else None),
    )


def job(status: JobStatus | None = None, **spec: Any) -> Job:
    template = PodTemplateSpec(spec=PodSpec(containers=[Container(name="c")]))
    return Job(name="work", spec=JobSpec(template=template, **spec), status=status or JobStatus())


@given(st.sets(st.integers(0, 60)))
def test_indexes_survive_being_written_and_read(indexes: set[int]) -> None:
    """In whatever runs they come."""
    assert parse_indexes(format_indexes(Indexes.of(indexes)), 61) == Indexes.of(indexes)


@pytest.mark.parametrize("text", [None, "", "a", "1-", "-1", "x-3,2"])
def test_indexes_that_cannot_be_read_are_left_out(text: str | None) -> None:
    """Nothing is made up."""
    assert parse_indexes(text, 10).common(Indexes.of({1, 2})) == len(parse_indexes(text, 10))


@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)), st.integers(0, 25), st.integers(0, 25))
def test_indexes_are_joined_and_told_apart_as_sets_are(one: set[int], other: set[int], end: int, count: int) -> None:
    """Though only their runs are kept."""
    first, second = Indexes.of(one), Indexes.of(other)
    assert first | second == Indexes.of(one | other)
    assert first.common(second) == len(one & other)
    assert {index for index in range(-1, 22) if index in first} == one
    assert pending_indexes(end, first, count) == [index for index in range(end) if index not in one][:count]


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (50, 600)])
def test_delay_doubles_up_to_ten_minutes(failures: int, seconds: float) -> None:
    """From ten seconds on; what has passed is taken off."""
    assert delay_left(failures, NOW, NOW) == seconds
    assert delay_left(failures, NOW - timedelta(seconds=4), NOW) == max(seconds - 4, 0)


def test_failures_before_the_last_success_do_not_count() -> None:
    """A success begins anew."""
    failed = [pod("a", "Failed", ago=300), pod("b", "Failed", ago=5)]
    assert delay_of_pods([pod("s", "Succeeded", ago=100)], failed, NOW) == 5
    assert delay_of_pods([], failed, NOW) == 15
    assert delay_of_pods([pod("s", "Succeeded", ago=1)], failed, NOW) == 0


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        (SuccessPolicyRule(succeeded_count=2), True),
        (SuccessPolicyRule(succeeded_count=3), False),
        (SuccessPolicyRule(succeeded_indexes="0,2"), True),
        (SuccessPolicyRule(succeeded_indexes="0-2"), False),
        (SuccessPolicyRule(succeeded_indexes="0-2", succeeded_count=2), True),
        (SuccessPolicyRule(succeeded_indexes="1,3", succeeded_count=1), False),
    ],
)
def test_success_policy_looks_at_indexes_and_numbers(rule: SuccessPolicyRule, met: bool) -> None:
    """Indexes 0 and 2 of 5 have succeeded."""
    found = success_of(SuccessPolicy(rules=[SuccessPolicyRule(succeeded_count=5), rule]), 5, Indexes.of({0, 2}))
    assert found == ("Matched rules at index 1" if met else "")


def test_pods_are_counted_on_top_of_what_is_counted() -> None:
    """What the status names is not counted again, nor what has no finalizer any more."""
    known = UncountedTerminatedPods(succeeded=["s1"], failed=["f1"])
    status = JobStatus(succeeded=2, failed=1, uncounted_terminated_pods=known)
    pods = [
        pod("s1", "Succeeded"),
        pod("s2", "Succeeded"),
        pod("old", "Succeeded", tracked=False),
        pod("f1", "Failed"),
        pod("f2", "Failed"),
        pod("r", "Running"),
    ]
    tally = Tally(job(status, completions=10), pods)
    assert (tally.succeeded, tally.failed, len(tally.active)) == (4, 3, 1)


def settled(tally: Tally, target: JobCondition | None = None, *, written: bool = False) -> list[str]:
    return [each.name for each in Counting(tally, target, written).settled]


def test_finalizer_goes_only_from_pods_that_the_status_names() -> None:
    """A crash between the two must not lose a pod."""
    named = UncountedTerminatedPods(succeeded=["s1"])
    pods = [pod("s1", "Succeeded"), pod("s2", "Succeeded"), pod("f", "Failed"), pod("r", "Running")]
    assert settled(Tally(job(JobStatus(uncounted_terminated_pods=named)), pods)) == ["s1"]


def test_finalizer_of_an_index_goes_when_it_is_written_as_done() -> None:
    """The index stands for the pod."""
    pods = [pod("a", "Succeeded", index=0), pod("b", "Succeeded", index=1), pod("c", "Succeeded", index=9)]
    spec = {"completion_mode": "Indexed", "completions": 3}
    assert settled(Tally(job(JobStatus(completed_indexes="1"), **spec), pods)) == ["b", "c"]


def test_running_pods_are_let_go_once_success_is_written() -> None:
    """In a Job that fails they are named as failed first."""
    tally = Tally(job(), [pod("r", "Running")])
    success, failure = (JobCondition(type=kind, status="True") for kind in ("SuccessCriteriaMet", "FailureTarget"))
    assert settled(tally, success) == []
    assert settled(tally, success, written=True) == ["r"]
    assert settled(tally, failure, written=True) == []


def test_failed_pod_stays_until_its_successor_knows_it() -> None:
    """Of an index whose failures are counted; the last of several."""
    first, second = pod("a", "Failed", index=0, ago=9), pod("b", "Failed", index=0, ago=1)
    second.annotations["batch.kubernetes.io/job-index-failure-count"] = "1"
    spec = {"completion_mode": "Indexed", "completions": 2, "backoff_limit_per_index": 5}
    tally = Tally(job(None, **spec), [first, second])
    assert tally.to_replace == {0: second}
    assert tally.failed_indexes == Indexes()


@pytest.mark.parametrize(
    ("spec", "pods", "reason"),
    [
        ({"backoff_limit": 1}, [pod("a", "Failed"), pod("b", "Failed")], "BackoffLimitExceeded"),
        ({"backoff_limit": 2}, [pod("a", "Failed"), pod("b", "Failed")], None),
        ({"active_deadline_seconds": 10}, [], "DeadlineExceeded"),
        ({"active_deadline_seconds": 30}, [], None),
        ({"active_deadline_seconds": 10, "suspend": True}, [], None),
    ],
    ids=["failures", "not yet", "deadline", "in time", "suspended"],
)
def test_job_that_has_to_end_says_why(spec: dict[str, Any], pods: list[Pod], reason: str | None) -> None:
    """And one that has not goes on."""
    found = target_of(Tally(job(JobStatus(start_time=NOW - timedelta(seconds=20)), **spec), pods), NOW)
    assert (found.reason if found else None) == reason


@pytest.mark.parametrize(
    ("completions", "succeeded", "active", "done"),
    [(2, 2, 0, True), (2, 2, 1, False), (2, 1, 0, False), (None, 1, 0, True), (None, 0, 0, False), (0, 0, 0, True)],
)
def test_job_is_done_when_enough_has_succeeded_and_nothing_runs(
    completions: int | None, succeeded: int, active: int, done: bool
) -> None:
    """Where no number is asked for, one success is enough."""
    tally = Tally(job(JobStatus(succeeded=succeeded), completions=completions), [])
    assert (completed(tally, active, NOW) is not None) == done
