"""The list of built-in kinds."""

from __future__ import annotations

from navarch.cluster.server.kinds.builtin import builtin_types
from navarch.cluster.server.objects.types import Catalog
from navarch.k8s.published import published

CATALOG = Catalog(builtin_types())


def test_every_resource_of_discovery_is_there() -> None:
    """The catalog has every published resource with its verbs and subresources."""
    listed = {
        (item["metadata"].get("name", ""), version["version"], resource["resource"])
        for root in ("api", "apis")
        for item in published().discovery(root)["items"]
        for version in item["versions"]
        for resource in version["resources"]
    }
    assert {(each.group, each.version, each.plural) for each in CATALOG} == listed


def test_objects_are_stored_under_kubernetes_own_keys() -> None:
    """The prefixes are those in the etcd of a real cluster."""
    keys = {
        (group, plural): CATALOG.find(group, "v1", plural)
        for group, plural in (
            ("", "pods"),
            ("", "services"),
            ("", "endpoints"),
            ("", "nodes"),
            ("", "replicationcontrollers"),
            ("apps", "deployments"),
            ("networking.k8s.io", "ingresses"),
            ("events.k8s.io", "events"),
            ("apiextensions.k8s.io", "customresourcedefinitions"),
        )
    }
    assert {plural: found and found.storage_prefix for (_, plural), found in keys.items()} == {
        "pods": "/registry/pods/",
        "services": "/registry/services/specs/",
        "endpoints": "/registry/services/endpoints/",
        "nodes": "/registry/minions/",
        "replicationcontrollers": "/registry/controllers/",
        "deployments": "/registry/deployments/",
        "ingresses": "/registry/ingress/",
        "events": "/registry/events/",
        "customresourcedefinitions": "/registry/apiextensions.k8s.io/customresourcedefinitions/",
    }


def test_a_pod_says_where_it_is_and_how_it_does_to_field_selectors() -> None:
    """A pod has its selectable fields, and an empty object has the same ones."""
    pods = CATALOG.find("", "v1", "pods")
    assert pods is not None
    value = {
        "spec": {"nodeName": "n", "hostNetwork": True},
        "status": {"phase": "Running", "podIPs": [{"ip": "1.2.3.4"}]},
    }
    found = pods.strategy.selectable_fields(value)
    assert (found["spec.nodeName"], found["status.phase"], found["status.podIP"]) == ("n", "Running", "1.2.3.4")
    assert found["spec.hostNetwork"] == "true"
    assert pods.strategy.selectable_fields({}).keys() == found.keys()


def test_a_pod_is_given_time_only_if_a_node_has_to_stop_it() -> None:
    """The grace period is the requested one, else the pod's own, else thirty seconds; 0 if no node runs the pod."""
    pods = CATALOG.find("", "v1", "pods")
    assert pods is not None
    grace = pods.strategy.grace_seconds
    placed = {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    assert grace({"spec": {}}, None) == 0
    assert grace(placed, None) == 30
    assert grace({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 5}}, None) == 5
    assert grace(placed, 7) == 7
    assert grace(placed, -1) == 1
    assert grace({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}}, 7) == 0
