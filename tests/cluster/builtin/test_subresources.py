"""Subresources and addresses, with the answers that the real server gave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cluster.builtin.serving import MERGE, Asking, serving

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
NAMESPACES = "/api/v1/namespaces"
STRATEGIC = "application/strategic-merge-patch+json"
CONTAINERS = [{"name": "c", "image": "i"}]


@pytest.fixture
async def ask() -> AsyncIterator[Asking]:
    """A server of its own."""
    async with serving() as asking:
        yield asking


def _pod(**spec: Any) -> Json:
    metadata = {"name": "p", "labels": {"e": "f"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": CONTAINERS, **spec}}


def _service(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def _binding(**target: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p", "labels": {"l": "m"}}, "target": target}


def _eviction(name: str = "p") -> Json:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


async def test_a_pod_is_bound_once(ask: Asking) -> None:
    """A binding sets the node, its labels and a condition; a second one is a conflict."""
    await ask("POST", PODS, _pod())
    assert await ask("POST", f"{PODS}/p/binding", _binding(kind="Node", name="n1")) == (
        201,
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
    )
    _, pod = await ask("GET", f"{PODS}/p")
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["metadata"]["labels"] == {"e": "f", "l": "m"}
    assert pod["status"]["conditions"][0]["type"] == "PodScheduled"
    code, refused = await ask("POST", f"{PODS}/p/binding", _binding(kind="Node", name="n1"))
    assert (code, refused["message"]) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
    )


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ({}, 500, "target.name: Required value"),
        (
            {"kind": "Pod", "name": "n"},
            500,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
    ],
)
async def test_a_binding_needs_a_node(ask: Asking, target: Json, code: int, said: str) -> None:
    """A binding without a node gets 500, as from the real server."""
    await ask("POST", PODS, _pod())
    status, refused = await ask("POST", f"{PODS}/p/binding", _binding(**target))
    assert (status, refused["message"]) == (code, said)


async def test_bindings_name_their_pod(ask: Asking) -> None:
    """The path `bindings` binds the pod that the body names."""
    await ask("POST", PODS, _pod())
    code, _ = await ask("POST", "/api/v1/namespaces/default/bindings", _binding(name="n2"))
    _, pod = await ask("GET", f"{PODS}/p")
    assert (code, pod["spec"]["nodeName"]) == (201, "n2")


async def test_a_pending_pod_is_evicted_at_once(ask: Asking) -> None:
    """The eviction of a pending pod ignores its budget."""
    await ask("POST", PODS, _pod())
    code, _ = await ask("POST", f"{PODS}/p/eviction", _eviction())
    assert code == 201
    assert (await ask("GET", f"{PODS}/p"))[0] == 404


async def test_a_pod_on_a_node_gets_its_grace(ask: Asking) -> None:
    """The pod is marked for deletion with its grace period, and has the condition DisruptionTarget."""
    await ask("POST", PODS, _pod(nodeName="n1"))
    await ask("POST", f"{PODS}/p/eviction", _eviction())
    _, pod = await ask("GET", f"{PODS}/p")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pod["status"]["conditions"][0]["reason"] == "EvictionByEvictionAPI"


async def test_a_budget_that_allows_nothing_keeps_its_pods(ask: Asking) -> None:
    """The eviction gets 429 with the reason; once the budget allows one, it is decremented and reports InsufficientPods."""
    await ask("POST", PODS, _pod(nodeName="n1"))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await ask("PATCH", f"{PODS}/p/status", {"status": ready}, MERGE)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"e": "f"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
    await ask("POST", BUDGETS, budget)
    status = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}
    await ask("PATCH", f"{BUDGETS}/b/status", {"status": status}, MERGE)
    code, refused = await ask("POST", f"{PODS}/p/eviction", _eviction())
    assert (code, refused["reason"]) == (429, "TooManyRequests")
    assert refused["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    said = "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert refused["details"]["causes"] == [{"reason": "DisruptionBudget", "message": said}]
    await ask("PATCH", f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 1}}, MERGE)
    assert (await ask("POST", f"{PODS}/p/eviction", _eviction()))[0] == 201
    _, counted = await ask("GET", f"{BUDGETS}/b")
    assert counted["status"]["disruptionsAllowed"] == 0
    assert "p" in counted["status"]["disruptedPods"]
    [condition] = counted["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionAllowed", "InsufficientPods")
    owned = [each["fieldsV1"] for each in counted["metadata"]["managedFields"] if each["manager"] == "kube-apiserver"]
    assert [{*each["f:status"]} for each in owned] == [{"f:conditions", "f:disruptedPods", "f:disruptionsAllowed"}]


async def test_an_eviction_is_of_the_pod_of_its_path(ask: Asking) -> None:
    """An eviction of another name than that in the path is refused."""
    await ask("POST", PODS, _pod())
    code, refused = await ask("POST", f"{PODS}/p/eviction", _eviction("q"))
    assert (code, refused["message"]) == (400, "name in URL does not match name in Eviction object")


async def test_ephemeral_containers_are_added_and_stay(ask: Asking) -> None:
    """The subresource accepts only new ephemeral containers; existing ones cannot change."""
    await ask("POST", PODS, _pod())
    patch = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}], "restartPolicy": "Never"}}
    code, pod = await ask("PATCH", f"{PODS}/p/ephemeralcontainers", patch, STRATEGIC)
    assert (code, pod["metadata"]["generation"], pod["spec"]["restartPolicy"]) == (200, 2, "Always")
    changed = {"spec": {"ephemeralContainers": [{"name": "e", "image": "j"}]}}
    code, refused = await ask("PATCH", f"{PODS}/p/ephemeralcontainers", changed, STRATEGIC)
    assert code == 422
    assert 'existing ephemeral containers "e" may not be changed' in refused["message"]
    named = {"spec": {"ephemeralContainers": [{"name": "c", "image": "j"}]}}
    code, refused = await ask("PATCH", f"{PODS}/p/ephemeralcontainers", named, STRATEGIC)
    assert "spec.ephemeralContainers[0].name: Duplicate value" in str(refused["message"])


async def test_a_pod_stays_in_its_class_when_it_is_resized(ask: Asking) -> None:
    """A resize that changes the QoS class is refused."""
    await ask("POST", PODS, _pod())
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    code, refused = await ask("PATCH", f"{PODS}/p/resize", patch, STRATEGIC)
    said = 'Pod "p" is invalid: spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'
    assert (code, refused["message"]) == (422, said)


async def test_a_namespace_loses_what_it_waits_for_by_finalize(ask: Asking) -> None:
    """`finalize` removes the finalizer of a namespace; a plain update does not."""
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    await ask("POST", NAMESPACES, namespace)
    _, kept = await ask("PUT", f"{NAMESPACES}/n", {**namespace, "spec": {"finalizers": ["x.y/w"]}})
    assert kept["spec"] == {"finalizers": ["kubernetes"]}
    _, changed = await ask("PUT", f"{NAMESPACES}/n/finalize", {**namespace, "spec": {"finalizers": ["x.y/w"]}})
    assert changed["spec"] == {"finalizers": ["x.y/w"]}
    assert changed["status"] == {"phase": "Active"}


async def test_replicas_are_read_and_written_through_scale(ask: Asking) -> None:
    """Scale shows and sets the replicas as an autoscaling/v1 Scale, with the selector as text."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await ask(
        "POST", DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    )
    _, found = await ask("GET", f"{DEPLOYMENTS}/d/scale")
    assert (found["kind"], found["spec"], found["status"]) == (
        "Scale",
        {"replicas": 2},
        {"replicas": 0, "selector": "a=b"},
    )
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
    code, found = await ask("PUT", f"{DEPLOYMENTS}/d/scale", scale)
    assert (code, found["spec"]) == (200, {"replicas": 3})
    _, found = await ask("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 0}}, MERGE)
    assert found["spec"] == {}
    _, deployment = await ask("GET", f"{DEPLOYMENTS}/d")
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (0, 3)


async def test_negative_replicas_are_refused_in_the_name_of_scale(ask: Asking) -> None:
    """The error names the Scale, not the Deployment."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await ask(
        "POST", DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    )
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": -3}}
    code, refused = await ask("PUT", f"{DEPLOYMENTS}/d/scale", scale)
    said = 'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -3: must be greater than or equal to 0'
    assert (code, refused["message"]) == (422, said)


async def test_an_address_and_a_node_port_belong_to_one_service(ask: Asking) -> None:
    """A taken address or port is refused until its Service is deleted."""
    _, first = await ask("POST", SERVICES, _service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30500}]))
    address = first["spec"]["clusterIP"]
    assert address.startswith("10.0.0.")
    code, refused = await ask("POST", SERVICES, _service("b", clusterIP=address))
    said = f'spec.clusterIPs: Invalid value: ["{address}"]: failed to allocate IP {address}: provided IP is already allocated'
    assert (code, refused["message"]) == (422, f'Service "b" is invalid: {said}')
    code, refused = await ask("POST", SERVICES, _service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30500}]))
    said = "spec.ports[0].nodePort: Invalid value: 30500: provided port is already allocated"
    assert (code, refused["message"]) == (422, f'Service "b" is invalid: {said}')


async def test_a_service_changes_its_type_as_on_the_real_server(ask: Asking) -> None:
    """A changed type drops the fields that it does not use, and allocates those that it needs."""
    await ask("POST", SERVICES, _service("a", type="NodePort"))
    _, inside = await ask("PATCH", f"{SERVICES}/a", {"spec": {"type": "ClusterIP"}}, MERGE)
    assert inside["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert "externalTrafficPolicy" not in inside["spec"]
    _, outside = await ask("PATCH", f"{SERVICES}/a", {"spec": {"type": "ExternalName", "externalName": "x.y"}}, MERGE)
    assert outside["spec"].keys() == {"ports", "type", "sessionAffinity", "externalName"}
    _, back = await ask("PATCH", f"{SERVICES}/a", {"spec": {"type": "ClusterIP"}}, MERGE)
    assert back["spec"]["clusterIP"].startswith("10.0.0.")
    assert ask.warnings == ['spec.externalName is ignored when spec.type is not "ExternalName"']


async def test_an_event_is_seen_in_both_groups(ask: Asking) -> None:
    """Each group shows the event with its own field names."""
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    about = {"kind": "Pod", "namespace": "default", "name": "x"}
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "z"},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "a/b",
        "reportingInstance": "c",
        "action": "d",
        "reason": "e",
        "type": "Normal",
        "regarding": about,
        "note": "n",
    }
    assert (await ask("POST", path, event))[0] == 201
    _, seen = await ask("GET", "/api/v1/namespaces/default/events/z")
    for value in (seen, event):
        value.pop("metadata")
    assert seen == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": about,
        "reason": "e",
        "message": "n",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "action": "d",
        "reportingComponent": "a/b",
        "reportingInstance": "c",
    }


async def test_an_autoscaler_is_seen_in_both_versions(ask: Asking) -> None:
    """The CPU target of v1 is a metric of v2."""
    first, second = (
        f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers" for version in ("v1", "v2")
    )
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 55}
    value = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "z"}, "spec": spec}
    assert (await ask("POST", first, value))[0] == 201
    _, seen = await ask("GET", f"{second}/z")
    wanted = {"type": "Utilization", "averageUtilization": 55}
    assert seen["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": wanted}}]
    assert seen["status"] == {"desiredReplicas": 0, "currentMetrics": None}
    _, again = await ask("GET", f"{first}/z")
    assert again["spec"] == {**spec, "minReplicas": 1}
    assert again["status"] == {"currentReplicas": 0, "desiredReplicas": 0}


@pytest.mark.parametrize(("made", "asked"), [("events.k8s.io", ""), ("", "events.k8s.io")])
async def test_an_event_is_selected_by_what_it_is_about_in_both_groups(ask: Asking, made: str, asked: str) -> None:
    """Field selectors of both groups find the event, whichever group it was created in."""
    paths = {
        "": "/api/v1/namespaces/default/events",
        "events.k8s.io": "/apis/events.k8s.io/v1/namespaces/default/events",
    }
    names = {"": ("involvedObject", "v1"), "events.k8s.io": ("regarding", "events.k8s.io/v1")}
    event = {
        "apiVersion": names[made][1],
        "kind": "Event",
        "metadata": {"name": "z"},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingInstance": "c",
        "reportingComponent" if not made else "reportingController": "a/b",
        "action": "d",
        "reason": "e",
        "type": "Normal",
        names[made][0]: {"kind": "Pod", "namespace": "default", "name": "x"},
    }
    assert (await ask("POST", paths[made], event))[0] == 201
    for name, count in (("x", 1), ("y", 0)):
        _, found = await ask("GET", f"{paths[asked]}?fieldSelector={names[asked][0]}.name={name}")
        assert len(found["items"]) == count
