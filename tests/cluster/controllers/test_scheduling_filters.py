"""What pods ask for, and which nodes suit them by themselves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cluster.controllers.scheduler_objects import container, node, pod
from navarch.cluster.controllers.pod_info import RequestingContainers, at_least, requested
from navarch.cluster.controllers.scheduling.filters import matches_term, reason_against, tolerates
from navarch.cluster.controllers.scheduling.node_info import NodeState
from navarch.k8s.core.v1 import NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration


def spec(**fields: Any) -> RequestingContainers:
    return msgspec.convert(fields, type=RequestingContainers)


def test_containers_are_added_up() -> None:
    """In milli-CPUs and bytes; what is not asked for is not there."""
    found = requested(spec(containers=[container("250m", "1Mi"), container("1")]))
    assert found == {"cpu": 1250, "memory": 2**20}


def test_initial_containers_run_alone_before_the_others() -> None:
    """The larger of both counts; sidecars run beside all that come after them."""
    initial = [container("3"), container("1", restartPolicy="Always"), container("2")]
    assert requested(spec(containers=[container("1")], initContainers=initial)) == {"cpu": 3000}
    initial = [container("1", restartPolicy="Always"), container("4")]
    assert requested(spec(containers=[container("1")], initContainers=initial)) == {"cpu": 5000}


def test_overhead_and_amounts_of_the_whole_pod_count() -> None:
    """What is asked for the pod stands for what its containers ask for."""
    whole = spec(containers=[container("1")], resources={"requests": {"cpu": "2"}}, overhead={"cpu": "100m"})
    assert requested(whole) == {"cpu": 2100}


def test_pods_that_ask_for_nothing_weigh_something() -> None:
    """Only when nodes are compared."""
    nothing = spec(containers=[container()])
    assert requested(nothing) == {}
    assert at_least(nothing) == {"cpu": 100, "memory": 200 * 2**20}


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"key": "a", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "a", "value": "1"}, True),
        ({"key": "a", "value": "2"}, False),
        ({"key": "b", "operator": "Exists"}, False),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "a", "operator": "Lt", "value": "5"}, True),
        ({"key": "a", "operator": "Gt", "value": "5"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_tolerations_fit_taints(toleration: dict[str, str], *, is_tolerated: bool) -> None:
    """By key, operator, value and effect; what is left out fits all, but for an empty key without Exists."""
    taint = Taint(key="a", value="1", effect="NoSchedule")
    assert tolerates([Toleration(**toleration)], taint) is is_tolerated  # type: ignore[arg-type]  # texts


@pytest.mark.parametrize(
    ("operator", "values", "is_match"),
    [
        ("In", ["1", "7"], True),
        ("NotIn", ["7"], False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
        ("Gt", ["6"], True),
        ("Gt", ["7"], False),
        ("Lt", ["8"], True),
        ("Lt", ["many"], False),
    ],
)
def test_terms_match_labels(operator: str, values: list[str] | None, *, is_match: bool) -> None:
    """Numbers are compared as numbers, and an empty term matches nothing."""
    term = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key="a", operator=operator, values=values)])
    assert matches_term(term, {"a": "7"}, "n1") is is_match
    assert not matches_term(NodeSelectorTerm(), {"a": "7"}, "n1")


def test_nodes_can_be_meant_by_name() -> None:
    """As DaemonSets mean them."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=["n1"])
    assert matches_term(NodeSelectorTerm(match_fields=[field]), {}, "n1")
    assert not matches_term(NodeSelectorTerm(match_fields=[field]), {}, "n2")


def test_nodes_say_why_they_do_not_suit() -> None:
    """In Kubernetes' words."""
    assert reason_against(pod(), node("n1")) == ""
    assert reason_against(pod(), node("n1", unschedulable=True)) == "node(s) were unschedulable"
    tolerant = pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert reason_against(tolerant, node("n1", unschedulable=True)) == ""
    tainted = node("n1", taints=[{"key": "a", "effect": "NoSchedule"}])
    assert reason_against(pod(), tainted) == "node(s) had untolerated taint(s)"
    soft = node("n1", taints=[{"key": "a", "effect": "PreferNoSchedule"}])
    assert reason_against(pod(), soft) == ""
    selecting = pod(nodeSelector={"disk": "fast"})
    assert reason_against(selecting, node("n1")) == "node(s) didn't match Pod's node affinity/selector"


def test_room_of_a_node_is_kept_up_to_date() -> None:
    """Pods come and go, and the sums with them."""
    state = NodeState(node("n1", room={"cpu": "1", "pods": "2"}))
    first = pod("first", cpu="600m")
    state.add(first)
    assert state.shortages({"cpu": 500}) == ["Insufficient cpu"]
    state.add(pod("second", cpu="100m"))
    assert state.shortages({"cpu": 500}) == ["Too many pods", "Insufficient cpu"]
    state.remove(first.uid)
    assert state.shortages({"cpu": 500}) == []
    assert state.shortages({"example.com/gpu": 1}) == ["Insufficient example.com/gpu"]


def test_ports_of_a_node_collide_by_address() -> None:
    """All addresses collide with each of them, one only with itself; protocols are apart."""

    def at(address: str, protocol: str = "TCP") -> tuple[str, str, int]:
        return (address, protocol, 80)

    ports = [{"hostPort": 80, "hostIP": "10.0.0.1"}]
    state = NodeState(node("n1"), [pod(containers=[{"name": "main", "ports": ports}])])
    assert not state.has_free([at("10.0.0.1")])
    assert not state.has_free([at("0.0.0.0")])
    assert state.has_free([at("10.0.0.2"), at("10.0.0.1", "UDP")])
