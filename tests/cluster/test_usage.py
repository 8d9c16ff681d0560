"""What objects use of a quota."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.api import Quantity
from navarch.cluster.usage import in_scope, kind_behind, unspecified, usage


def pod(*containers: dict[str, Any], phase: str = "Pending", **spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": list(containers), **spec}, "status": {"phase": phase}}


def container(name: str = "main", requests: dict[str, str] | None = None, **limits: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits}}


def texts(amounts: dict[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def test_pod_uses_what_its_containers_ask_for() -> None:
    """Under all names that quotas have for it."""
    found = usage("", "pods", pod(container("a", {"cpu": "250m"}, memory="1Mi"), container("b", {"cpu": "1"})))
    assert texts(found) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1250m",
        "requests.cpu": "1250m",
        "limits.memory": "1Mi",
    }


def test_initial_containers_use_the_larger_part() -> None:
    """Sidecars stay."""
    initial = [container("big", {"cpu": "2"}), {**container("side", {"cpu": "1"}), "restartPolicy": "Always"}]
    found = usage("", "pods", pod(container("a", {"cpu": "500m"}), initContainers=initial, overhead={"cpu": "1m"}))
    assert str(found["requests.cpu"]) == "2001m"


def test_pod_that_has_ended_uses_its_place_alone() -> None:
    """It is still an object."""
    assert texts(usage("", "pods", pod(container("a", {"cpu": "1"}), phase="Failed"))) == {"count/pods": "1"}


def test_extended_resources_and_huge_pages_have_names() -> None:
    """Extended ones only as requests."""
    found = usage("", "pods", pod(container("a", {"example.com/gpu": "2", "hugepages-2Mi": "4Mi"})))
    assert texts(found) == {
        "count/pods": "1",
        "pods": "1",
        "requests.example.com/gpu": "2",
        "requests.hugepages-2Mi": "4Mi",
        "hugepages-2Mi": "4Mi",
    }


@pytest.mark.parametrize(
    ("spec", "nodeports", "loadbalancers"),
    [
        ({"type": "ClusterIP", "ports": [{}, {}]}, 0, 0),
        ({"type": "NodePort", "ports": [{}, {}]}, 2, 0),
        ({"type": "LoadBalancer", "ports": [{}]}, 1, 1),
        ({"type": "LoadBalancer", "ports": [{}], "allocateLoadBalancerNodePorts": False}, 0, 1),
    ],
    ids=str,
)
def test_services_use_ports_by_type(spec: dict[str, Any], nodeports: int, loadbalancers: int) -> None:
    """Node ports, and balancers."""
    found = usage("", "services", {"metadata": {}, "spec": spec})
    assert (found["services.nodeports"].value, found["services.loadbalancers"].value) == (nodeports, loadbalancers)


def test_claims_use_storage_of_their_class() -> None:
    """And of all classes together."""
    spec = {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}
    assert texts(usage("", "persistentvolumeclaims", {"metadata": {}, "spec": spec})) == {
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "1Gi",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pods", ("", "pods")),
        ("requests.example.com/gpu", ("", "pods")),
        ("requests.storage", ("", "persistentvolumeclaims")),
        ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", ("", "persistentvolumeclaims")),
        ("services.loadbalancers", ("", "services")),
        ("configmaps", ("", "configmaps")),
        ("count/widgets.example.com", ("example.com", "widgets")),
    ],
)
def test_names_of_quotas_mean_kinds(name: str, kind: tuple[str, str]) -> None:
    """What is not named otherwise is used by pods."""
    assert kind_behind(name) == kind


def test_containers_have_to_say_what_is_limited() -> None:
    """Each of them, initial ones too; only CPU and memory."""
    incomplete = pod(container("a", {"cpu": "1"}), container("b"), initContainers=[container("c")])
    assert unspecified(["requests.cpu", "pods", "requests.ephemeral-storage"], incomplete) == "requests.cpu for: b,c"
    assert unspecified(["limits.cpu"], pod(container("a", cpu="1"))) == ""


@pytest.mark.parametrize(
    ("scope", "spec", "is_in"),
    [
        ({"scopes": ["BestEffort"]}, {}, True),
        ({"scopes": ["NotBestEffort"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, True),
        ({"scopes": ["NotTerminating"]}, {"activeDeadlineSeconds": 5}, False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, {}, False),
    ],
    ids=str,
)
def test_scopes_choose_pods(scope: dict[str, Any], spec: dict[str, Any], *, is_in: bool) -> None:
    """And nothing but pods."""
    assert in_scope(scope, "", "pods", pod(container(), **spec)) is is_in
    assert not in_scope(scope, "", "secrets", {"metadata": {}})
    assert in_scope({}, "", "secrets", {"metadata": {}})


@pytest.mark.parametrize(
    ("operator", "values", "is_in"),
    [("In", ["high"], True), ("NotIn", ["high"], False), ("Exists", None, True), ("DoesNotExist", None, False)],
)
def test_scope_of_priority_classes(operator: str, values: list[str] | None, *, is_in: bool) -> None:
    """By the name of the class."""
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    scope = {"scopeSelector": {"matchExpressions": [expression]}}
    assert in_scope(scope, "", "pods", pod(container(), priorityClassName="high")) is is_in


def test_claim_of_devices_uses_the_most_that_it_may_be_given() -> None:
    """Of each class; whoever asks for all is taken to get as many as there can be."""
    exact = {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}}
    either = {
        "name": "b",
        "firstAvailable": [
            {"name": "c", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
            {"name": "d", "deviceClassName": "nic", "allocationMode": "All"},
        ],
    }
    found = usage("resource.k8s.io", "resourceclaims", {"spec": {"devices": {"requests": [exact, either]}}})
    assert texts(found) == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "3",
        "nic.deviceclass.resource.k8s.io/devices": "32",
    }
    assert kind_behind("gpu.deviceclass.resource.k8s.io/devices") == ("resource.k8s.io", "resourceclaims")


@pytest.mark.parametrize(
    ("operator", "values", "is_meant"),
    [("In", ["gold"], True), ("In", ["silver"], True), ("In", ["lead"], False), ("Exists", None, True)],
)
def test_scope_of_attributes_means_claims(operator: str, values: list[str] | None, is_meant: bool) -> None:
    """By the class that they ask for, and by the one that they have."""
    claim = {
        "spec": {"volumeAttributesClassName": "gold"},
        "status": {"currentVolumeAttributesClassName": "silver"},
    }
    scope = {"scopeName": "VolumeAttributesClass", "operator": operator, **({"values": values} if values else {})}
    spec = {"scopeSelector": {"matchExpressions": [scope]}}
    assert in_scope(spec, "", "persistentvolumeclaims", claim) is is_meant
    assert not in_scope(spec, "", "pods", pod(container()))
