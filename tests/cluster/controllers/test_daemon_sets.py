"""What of a DaemonSet is plain arithmetic: which pods come and go next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from navarch.api import ObjectMeta
from navarch.cluster.controllers.workloads.daemonsets.controller import FailureDelays
from navarch.cluster.controllers.workloads.daemonsets.plan import (
    DaemonPlan,
    Fit,
    RolloutLimits,
    Sight,
    fit_of,
    to_keep_up,
    to_renew,
)
from navarch.k8s.apps.v1 import DaemonSet, DaemonSetSpec
from navarch.k8s.core.v1 import (
    Node,
    NodeSpec,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    Taint,
    Toleration,
)
from navarch.k8s.meta.v1 import LabelSelector

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RUNS, STAYS, GOES = Fit(runs=True, stays=True), Fit(runs=False, stays=True), Fit(runs=False, stays=False)


def pod(name: str, phase: str = "Running", *, deleting: bool = False, node: str | None = "n") -> Pod:
    """`new...` is of the template as it is now; what begins with `x` inside its name does not serve."""
    ready = PodCondition(type="Ready", status="False" if "x" in name else "True")
    metadata = ObjectMeta(name=name, creation_timestamp=NOW, deletion_timestamp=NOW if deleting else None)
    status = PodStatus(phase=phase, conditions=[ready])
    return Pod(metadata=metadata, spec=PodSpec(containers=[], node_name=node), status=status)


def sight(fits: dict[str, Fit], **pods: list[Pod]) -> Sight:
    return Sight(
        fits=fits,
        pods=pods,
        is_current=lambda each: each.name.startswith("new"),
        is_available=lambda each: "x" not in each.name,
    )


def told(plan: DaemonPlan) -> tuple[list[str], list[str]]:
    return plan.create, [each.name for each in plan.delete]


@pytest.mark.parametrize(
    ("fit", "pods", "expected"),
    [
        (RUNS, [], (["n"], [])),
        (RUNS, [pod("new")], ([], [])),
        (RUNS, [pod("new-a"), pod("new-b")], ([], ["new-b"])),
        (RUNS, [pod("a", deleting=True)], ([], [])),
        (RUNS, [pod("a", "Succeeded")], ([], ["a"])),
        (RUNS, [pod("a", "Failed")], ([], ["a"])),
        (STAYS, [], ([], [])),
        (STAYS, [pod("a")], ([], [])),
        (GOES, [pod("a"), pod("b", deleting=True)], ([], ["a"])),
    ],
    ids=["missing", "there", "two", "going", "ended", "failed", "closed", "closed, there", "unfit"],
)
def test_every_node_has_the_pod_that_it_should_have(
    fit: Fit, pods: list[Pod], expected: tuple[list[str], list[str]]
) -> None:
    """One, or none; a pod on its way out is waited for."""
    assert told(to_keep_up(sight({"n": fit}, n=pods), surging=False, may_replace=lambda *_: True)) == expected


def test_pod_that_failed_too_lately_stays() -> None:
    """Whoever counts the delays says when."""
    plan = to_keep_up(sight({"n": RUNS}, n=[pod("a", "Failed")]), surging=False, may_replace=lambda *_: False)
    assert not plan


def test_pod_that_waits_for_a_node_that_is_gone_goes() -> None:
    """One that is on the node is for others to delete."""
    seen = sight({}, n=[pod("waiting", node=None), pod("there")])
    assert told(to_keep_up(seen, surging=False, may_replace=lambda *_: True)) == ([], ["waiting"])


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([pod("old"), pod("new-x")], []),
        ([pod("old"), pod("new")], ["old"]),
        ([pod("old-x"), pod("new-x")], ["old-x"]),
        ([pod("old"), pod("old-b"), pod("new-x")], ["old-b"]),
    ],
)
def test_surging_node_has_both_until_the_new_one_serves(pods: list[Pod], expected: list[str]) -> None:
    """Or until the old one no longer does."""
    plan = to_keep_up(sight({"n": RUNS}, n=pods), surging=True, may_replace=lambda *_: True)
    assert told(plan) == ([], expected)


def test_old_pods_are_renewed_as_many_as_may_be_missing() -> None:
    """Those that do not serve go at once, and count."""
    fits = dict.fromkeys("abcd", RUNS)
    seen = sight(fits, a=[pod("old-a")], b=[pod("old-b")], c=[pod("old-x")], d=[pod("new-d")])
    assert told(to_renew(seen, RolloutLimits(0, 1))) == ([], ["old-x"])
    assert told(to_renew(seen, RolloutLimits(0, 2))) == ([], ["old-x", "old-a"])
    assert told(to_renew(seen, RolloutLimits(0, 9))) == ([], ["old-x", "old-a", "old-b"])


def test_new_pods_come_first_where_surge_is_allowed() -> None:
    """As many as the surge allows; nodes whose pod does not serve need none of it."""
    fits = dict.fromkeys("abcd", RUNS)
    seen = sight(fits, a=[pod("old-a")], b=[pod("old-b")], c=[pod("old-x")], d=[pod("old-d"), pod("new-x")])
    assert told(to_renew(seen, RolloutLimits(1, 0))) == (["c"], [])
    assert told(to_renew(seen, RolloutLimits(2, 0))) == (["c", "a"], [])
    done = sight(fits, d=[pod("old-d"), pod("new-d")])
    assert told(to_renew(done, RolloutLimits(1, 0))) == ([], ["old-d"])


def test_taints_that_befall_every_node_are_tolerated() -> None:
    """Others only if the template says so."""

    def fit(*taints: tuple[str, str], tolerated: str = "") -> Fit:
        tolerations = [Toleration(key=tolerated, operator="Exists")] if tolerated else None
        template = PodTemplateSpec(spec=PodSpec(containers=[], tolerations=tolerations))
        daemon_set = DaemonSet(name="d", spec=DaemonSetSpec(selector=LabelSelector(), template=template))
        spec = NodeSpec(taints=[Taint(key=key, effect=effect) for key, effect in taints])
        return fit_of(daemon_set, Node(name="n", spec=spec))

    assert (
        fit(("node.kubernetes.io/not-ready", "NoExecute"), ("node.kubernetes.io/unschedulable", "NoSchedule")) == RUNS
    )
    assert fit(("a", "NoSchedule")) == STAYS
    assert fit(("a", "NoExecute")) == GOES
    assert fit(("a", "NoExecute"), tolerated="a") == RUNS
    assert fit(("a", "PreferNoSchedule")) == RUNS


def test_failures_on_a_node_wait_for_longer_each_time() -> None:
    """Until nothing has failed for as long again."""
    delays = FailureDelays()
    waits, now = [], NOW
    for _ in range(4):
        assert delays.may_replace("uid", "n", now)
        assert not delays.may_replace("uid", "n", now)
        left = delays.seconds_left("uid", now)
        assert left is not None
        waits.append(left)
        now += timedelta(seconds=left)
    assert waits == [1, 2, 4, 8]
    assert delays.may_replace("uid", "other", now)
    assert delays.may_replace("uid", "n", now + timedelta(minutes=1))
    assert delays.seconds_left("uid", now + timedelta(minutes=1)) == 1
