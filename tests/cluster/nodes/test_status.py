"""A pod's phase and conditions follow from the records of its containers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from navarch.cluster.nodes.pods.container_record import ContainerRecord
from navarch.cluster.nodes.pods.status import PodState, pod_status
from navarch.cluster.nodes.runtime import Exit
from navarch.k8s.core.v1 import Container, Pod, PodSpec

_NOW = datetime(2030, 1, 1, tzinfo=UTC)


def _record(name: str, how: str) -> ContainerRecord:
    """A container that waits, runs, or has ended with a code; `1 waits` and `1 runs` after an end."""
    record = ContainerRecord(Container(name=name), None, lambda: None, "ContainerCreating")
    word, _, again = how.partition(" ")
    if word == "waits":
        return record
    record.begins()
    record.runs("id", _NOW)
    if word == "runs":
        return record
    record.ended(Exit(int(word)), _NOW, None)
    if again:
        record.waits("CrashLoopBackOff")
    if again == "runs":
        record.begins()
        record.runs("id", _NOW)
    return record


def _phase(policy: str, *main: str, init: tuple[str, ...] = (), over: bool = False) -> str | None:
    records = {f"m{index}": _record(f"m{index}", how) for index, how in enumerate(main)}
    first = {f"i{index}": _record(f"i{index}", how) for index, how in enumerate(init)}
    spec = PodSpec(
        restart_policy=policy,
        containers=[record.spec for record in records.values()],
        init_containers=[record.spec for record in first.values()] or None,
    )
    situation = PodState(start_time=_NOW, node_address="127.0.0.1", prepared=True, over=over)
    status = pod_status(Pod(name="p", spec=spec), {**records, **first}, situation, {}, _NOW)
    return status.phase


@pytest.mark.parametrize(
    ("policy", "main", "phase"),
    [
        ("Always", ("waits",), "Pending"),
        ("Always", ("runs",), "Running"),
        ("Always", ("runs", "waits"), "Pending"),
        ("Always", ("runs", "1 waits"), "Running"),
        ("Always", ("1 runs",), "Running"),
        ("Always", ("1 runs", "waits"), "Pending"),
        ("Always", ("0",), "Running"),
        ("Always", ("1 waits",), "Running"),
        ("OnFailure", ("0",), "Succeeded"),
        ("OnFailure", ("0", "1"), "Running"),
        ("OnFailure", ("0", "runs"), "Running"),
        ("Never", ("0", "0"), "Succeeded"),
        ("Never", ("0", "1"), "Failed"),
        ("Never", ("1", "runs"), "Running"),
    ],
)
def test_phases_follow_from_containers(policy: str, main: tuple[str, ...], phase: str) -> None:
    """Phases are those that Kubernetes' kubelet computes."""
    assert _phase(policy, *main) == phase


def test_phases_with_init_containers() -> None:
    """A pod is Pending until they have succeeded; one that fails for good fails the pod."""
    assert _phase("Always", "waits", init=("runs",)) == "Pending"
    assert _phase("Always", "waits", init=("1 waits",)) == "Pending"
    assert _phase("Always", "runs", init=("0",)) == "Running"
    assert _phase("Never", "waits", init=("1",)) == "Failed"


def test_a_pod_that_is_over_has_succeeded_or_failed() -> None:
    """No container restarts any more, whatever the policy."""
    assert _phase("Always", "0", over=True) == "Succeeded"
    assert _phase("Always", "137", over=True) == "Failed"
    assert _phase("Always", "waits", over=True) == "Failed"


def test_transition_times_are_kept() -> None:
    """A condition keeps the time of its last transition."""
    record = _record("m", "runs")
    pod = Pod(name="p", spec=PodSpec(containers=[record.spec]))
    situation = PodState(start_time=_NOW, node_address="127.0.0.1", prepared=True)
    pod.status = pod_status(pod, {"m": record}, situation, {}, _NOW)
    later = datetime(2030, 1, 2, tzinfo=UTC)
    record.is_ready(ready=False)
    again = {known.type: known for known in pod_status(pod, {"m": record}, situation, {}, later).conditions or []}
    assert again["Initialized"].last_transition_time == _NOW
    assert again["Ready"].last_transition_time == later
