"""What the kinds that operators make beside pods are refused for, and what the server makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.errors import Invalid, NotFound
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import Event, ResourceQuota, Service
from navarch.k8s.discovery.v1 import EndpointSlice
from navarch.k8s.scheduling.v1 import PriorityClass

_CONTAINERS = [{"name": "c", "image": "i"}]
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": _CONTAINERS}}
_SELECTED = {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}
_ODD = {"selector": {"matchLabels": {"app": "not valid!"}}, "template": _TEMPLATE}
_JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": _CONTAINERS}}}
_TIMED = {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}}
_SCALED = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_PRIORITY = {"scopeName": "PriorityClass", "operator": "In"}
_BACKEND = {"service": {"name": "s"}}
_TAINT = {"key": "a", "effect": "NoSchedule"}
_NOBODYS = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["nones"]}
_HOOK = {
    "name": "hook.example.com",
    "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/a//b"}},
    "sideEffects": "None",
    "rules": [_NOBODYS],
}
_NOTE = {"key": "k", "valueExpression": "'v'"}
_POLICY = {"matchConstraints": {"resourceRules": [_NOBODYS]}, "auditAnnotations": [_NOTE, _NOTE]}
_LONG_AGO = "2020-01-01T00:00:00.000000Z"

_SPECS: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("v1", "ResourceQuota", {"scopes": ["Terminating", "NotTerminating"]}, {"scopes"}),
    ("v1", "ResourceQuota", {"scopes": ["BestEffort"], "hard": {"requests.cpu": "1"}}, {"scopes"}),
    (
        "v1",
        "ResourceQuota",
        {"scopeSelector": {"matchExpressions": [_PRIORITY]}},
        {"scopeSelector.matchExpressions.values"},
    ),
    (
        "v1",
        "LimitRange",
        {"limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}}]},
        {"limits[0].maxLimitRequestRatio[cpu]"},
    ),
    (
        "v1",
        "LimitRange",
        {"limits": [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}}]},
        {"limits[0].defaultRequest[cpu]"},
    ),
    ("v1", "LimitRange", {"limits": [{"type": "PersistentVolumeClaim"}]}, {"limits[0].limits"}),
    (
        "v1",
        "PersistentVolumeClaim",
        {**_CLAIM, "dataSourceRef": {"kind": "K", "name": "n"}},
        {"dataSource", "dataSourceRef"},
    ),
    ("batch/v1", "CronJob", {**_TIMED, "timeZone": ""}, {"timeZone"}),
    ("batch/v1", "CronJob", {**_TIMED, "schedule": "TZ=UTC * * * * *"}, {"schedule"}),
    (
        "batch/v1",
        "CronJob",
        {**_TIMED, "jobTemplate": {"spec": {**_JOB, "manualSelector": True}}},
        {"jobTemplate.spec.manualSelector"},
    ),
    ("apps/v1", "ReplicaSet", _ODD, {"selector", "selector.matchLabels"}),
    ("apps/v1", "Deployment", _ODD, {"selector", "selector.matchLabels"}),
    ("autoscaling/v2", "HorizontalPodAutoscaler", {**_SCALED, "maxReplicas": -1}, {"maxReplicas"}),
    (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        {**_SCALED, "metrics": [{"type": "Resource", "pods": {"metric": {"name": "m"}, "target": {"type": "Odd"}}}]},
        {"metrics[0].resource", "metrics[0].pods.target.type", "metrics[0].pods.target.averageValue"},
    ),
    (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        {**_SCALED, "behavior": {"scaleUp": {"policies": []}}},
        {"behavior.scaleUp.policies"},
    ),
    (
        "networking.k8s.io/v1",
        "Ingress",
        {"defaultBackend": _BACKEND, "tls": [{"hosts": ["*"]}]},
        {
            "defaultBackend",
            "tls[0].hosts[0]",
        },
    ),
    ("networking.k8s.io/v1", "IngressClass", {}, {"controller"}),
    (
        "networking.k8s.io/v1",
        "NetworkPolicy",
        {"podSelector": {}, "ingress": [{"ports": [{"endPort": 70}], "from": [{"ipBlock": {"cidr": ""}}]}]},
        {"ingress[0].ports[0].endPort", "ingress[0].from[0].ipBlock.cidr"},
    ),
    (
        "networking.k8s.io/v1",
        "NetworkPolicy",
        {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]}]},
        {"egress[0].to[0].ipBlock.except[0]"},
    ),
]
_OTHERS: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("v1", "Node", {"spec": {"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]}}, {"spec.podCIDRs"}),
    ("v1", "Node", {"spec": {"taints": [_TAINT, _TAINT]}}, {"metadata.taints[1]"}),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        {"webhooks": [{**_HOOK, "admissionReviewVersions": ["v1", "v1"]}]},
        {"webhooks[0].admissionReviewVersions[1]", "webhooks[0].clientConfig.service.path"},
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        {"spec": {**_POLICY, "paramKind": {"apiVersion": "a/b/c", "kind": "K"}}},
        {"spec.paramKind.apiVersion", "spec.auditAnnotations[1].key"},
    ),
    (
        "v1",
        "Event",
        {"involvedObject": {"kind": "Node", "name": "n"}, "eventTime": _LONG_AGO},
        {"involvedObject.namespace", "reportingComponent", "reportingInstance", "action", "reason"},
    ),
    (
        "discovery.k8s.io/v1",
        "EndpointSlice",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["169.254.0.1"], "hostname": "BAD"}]},
        {"endpoints[0].addresses[0]", "endpoints[0].hostname"},
    ),
    (
        "storage.k8s.io/v1",
        "StorageClass",
        {"provisioner": "x.io/p", "parameters": {"": "x"}, "allowedTopologies": [{}]},
        {"parameters", "allowedTopologies[0].matchLabelExpressions"},
    ),
    (
        "node.k8s.io/v1",
        "RuntimeClass",
        {"handler": "", "scheduling": {"tolerations": [{}]}},
        {
            "handler",
            "scheduling.tolerations[0].operator",
        },
    ),
]


def _object(api_version: str, kind: str, name: str = "checked", **members: Any) -> Dynamic:
    return Dynamic({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **members})


async def _refused_for(client: Client, given: Dynamic) -> set[str]:
    with pytest.raises(Invalid) as refused:
        await client.using(dry_run=True).create(given)
    return {cause.field for cause in refused.value.causes}


async def test_each_kind_is_refused_for_what_makes_no_sense_in_it(client: Client) -> None:
    """In the fields that Kubernetes names."""
    cases = [(version, kind, {"spec": spec}, {f"spec.{at}" for at in fields}) for version, kind, spec, fields in _SPECS]
    for version, kind, members, fields in (*cases, *_OTHERS):
        assert await _refused_for(client, _object(version, kind, **members)) == fields, (kind, members)


async def test_budget_is_refused_for_its_metadata_last(client: Client) -> None:
    """Only if nothing else is wrong with it; and its name need not be one of a domain."""
    owners = {"name": "checked", "ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "o", "uid": "u"}]}
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": owners}
    assert await _refused_for(client, Dynamic({**head, "spec": {"minAvailable": "x"}})) == {"spec.minAvailable"}
    assert await _refused_for(client, Dynamic(head)) == {"metadata.ownerReferences.kind"}
    assert (await client.create(_object("policy/v1", "PodDisruptionBudget", "Upper"))).name == "Upper"


async def test_account_of_pods_is_told_in_its_old_field_too(client: Client) -> None:
    """Whatever was there before."""
    await client.create(_object("apps/v1", "Deployment", "accounts", spec={**_SELECTED, "replicas": 0}))
    for name in ("one", "other"):
        patch = MergePatch({"spec": {"template": {"spec": {"serviceAccountName": name}}}})
        pod = (await client.patch(Deployment, "accounts", patch)).spec.template.spec
        assert (pod.service_account_name, pod.service_account) == (name, name)


async def test_load_balancer_for_local_traffic_has_a_port_for_health(client: Client) -> None:
    """As long as it is for that."""
    spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}
    created = await client.create(_object("v1", "Service", "local", spec=spec))
    port: int = created["spec"]["healthCheckNodePort"]
    labelled = await client.patch(Service, "local", MergePatch({"metadata": {"labels": {"a": "b"}}}))
    assert labelled.spec.health_check_node_port == port
    with pytest.raises(Invalid):
        await client.patch(Service, "local", MergePatch({"spec": {"healthCheckNodePort": 30000 + (port + 1) % 2768}}))
    changed = await client.patch(Service, "local", MergePatch({"spec": {"externalTrafficPolicy": "Cluster"}}))
    assert not changed.spec.health_check_node_port


async def test_claim_says_its_source_in_both_ways(client: Client) -> None:
    """Unless the older one names what it cannot."""
    source = {"kind": "PersistentVolumeClaim", "name": "b"}
    for name, given, kept in (("cloned", source, True), ("odd", {"kind": "Pod", "name": "b"}, False)):
        claim = _object("v1", "PersistentVolumeClaim", name, spec={**_CLAIM, "dataSource": given})
        spec = (await client.create(claim))["spec"]
        assert ["dataSource" in spec, "dataSourceRef" in spec] == [kept, kept]


async def test_scopes_of_a_quota_never_change(client: Client) -> None:
    """They say what it counts."""
    await client.create(_object("v1", "ResourceQuota", "scoped", spec={"scopes": ["BestEffort"]}))
    with pytest.raises(Invalid) as refused:
        await client.patch(ResourceQuota, "scoped", MergePatch({"spec": {"scopes": None}}))
    assert [cause.field for cause in refused.value.causes] == ["spec.scopes"]


async def test_daemon_set_counts_its_templates_for_whoever_writes(client: Client) -> None:
    """The annotation belongs to him."""
    note = "deprecated.daemonset.template.generation"
    never = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": _CONTAINERS, "nodeSelector": {"no": "where"}}}
    given = _object("apps/v1", "DaemonSet", "counted", spec={**_SELECTED, "template": never})
    metadata = (await client.create(given))["metadata"]
    assert metadata["annotations"][note] == "1"
    assert f"f:{note}" in metadata["managedFields"][0]["fieldsV1"]["f:metadata"]["f:annotations"]


async def test_empty_list_of_rules_belongs_to_whoever_sends_it(client: Client) -> None:
    """Though none is kept."""
    created = await client.create(_object("rbac.authorization.k8s.io/v1", "Role", "empty", rules=[]))
    [entry] = created["metadata"]["managedFields"]
    assert (entry["fieldsV1"], created["rules"]) == ({"f:rules": {}}, None)


async def test_lease_has_no_preferred_holder(client: Client) -> None:
    """Nobody decides that: it is switched off."""
    given = _object("coordination.k8s.io/v1", "Lease", "held", spec={"holderIdentity": "a", "preferredHolder": "b"})
    assert (await client.create(given))["spec"] == {"holderIdentity": "a"}


async def test_event_goes_at_once_however_it_is_deleted(client: Client) -> None:
    """Nothing waits for what it owns."""
    about = {"kind": "Pod", "name": "p", "namespace": client.options.namespace}
    await client.create(_object("v1", "Event", "gone", involvedObject=about))
    await client.delete(Event, "gone", propagation="Foreground")
    with pytest.raises(NotFound):
        await client.get(Event, "gone")


async def test_generation_counts_what_the_kind_counts(client: Client) -> None:
    """The labels of a slice, and nothing of a class of priorities."""
    await client.create(_object("discovery.k8s.io/v1", "EndpointSlice", "counted", addressType="IPv4", endpoints=[]))
    slice_ = await client.patch(EndpointSlice, "counted", MergePatch({"metadata": {"labels": {"a": "b"}}}))
    name = f"{client.options.namespace}-counted"
    await client.create(_object("scheduling.k8s.io/v1", "PriorityClass", name, value=5))
    class_ = await client.patch(PriorityClass, name, MergePatch({"description": "d"}))
    await client.delete(PriorityClass, name)
    assert (slice_.metadata.generation, class_.metadata.generation) == (2, 1)
