"""Defaults of the kinds outside the core group that run no pods."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.wire.request import Json

__all__ = [
    "default_api_service",
    "default_autoscaler",
    "default_autoscaler_v1",
    "default_binding",
    "default_claim",
    "default_claim_template",
    "default_csi_driver",
    "default_endpoint_slice",
    "default_flow_schema",
    "default_ingress_class",
    "default_mutating_webhooks",
    "default_network_policy",
    "default_policy",
    "default_policy_binding",
    "default_priority_class",
    "default_priority_level",
    "default_storage_class",
    "default_webhooks",
]

RBAC: Final = "rbac.authorization.k8s.io"
_SUBJECT_GROUPS: Final = {"User": RBAC, "Group": RBAC}


def default_binding(value: Json) -> None:
    """A RoleBinding or ClusterRoleBinding."""
    role = value["roleRef"]
    role["apiGroup"] = role.get("apiGroup") or RBAC
    for subject in value.get("subjects") or ():
        if not subject.get("apiGroup") and (group := _SUBJECT_GROUPS.get(subject.get("kind", ""))):
            subject["apiGroup"] = group


def default_webhooks(value: Json) -> None:
    """A ValidatingWebhookConfiguration."""
    for webhook in value.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        _default_matching(webhook)
        webhook.setdefault("timeoutSeconds", 10)
        _default_scopes(webhook.get("rules"))
        if (service := webhook["clientConfig"].get("service")) is not None:
            service.setdefault("port", 443)


def default_mutating_webhooks(value: Json) -> None:
    """A MutatingWebhookConfiguration."""
    default_webhooks(value)
    for webhook in value.get("webhooks") or ():
        webhook.setdefault("reinvocationPolicy", "Never")


def _default_matching(match: Json) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})


def _default_scopes(rules: list[Json] | None) -> None:
    for rule in rules or ():
        rule.setdefault("scope", "*")


def default_policy(value: Json) -> None:
    """A ValidatingAdmissionPolicy or MutatingAdmissionPolicy."""
    value["spec"].setdefault("failurePolicy", "Fail")
    _default_match_resources(value["spec"].get("matchConstraints"))


def default_policy_binding(value: Json) -> None:
    """A binding of such a policy."""
    _default_match_resources(value["spec"].get("matchResources"))


def _default_match_resources(match: Json | None) -> None:
    if match is not None:
        _default_matching(match)
        _default_scopes(match.get("resourceRules"))
        _default_scopes(match.get("excludeResourceRules"))


_PODS_POLICY: Final = {"type": "Pods", "value": 4, "periodSeconds": 15}
_PERCENT_POLICY: Final = {"type": "Percent", "value": 100, "periodSeconds": 15}


def default_autoscaler(value: Json) -> None:
    """A HorizontalPodAutoscaler."""
    spec = value["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        _default_scaling(behavior.setdefault("scaleUp", {}), [_PODS_POLICY, _PERCENT_POLICY], 0)
        _default_scaling(behavior.setdefault("scaleDown", {}), [_PERCENT_POLICY], None)


def default_autoscaler_v1(value: Json) -> None:
    """A HorizontalPodAutoscaler of the first version."""
    value["spec"].setdefault("minReplicas", 1)
    value["spec"].setdefault("targetCPUUtilizationPercentage", 80)


def _default_scaling(rules: Json, policies: list[Json], window: int | None) -> None:
    if window is not None:
        rules.setdefault("stabilizationWindowSeconds", window)
    rules.setdefault("selectPolicy", "Max")
    if rules.get("policies") is None:
        rules["policies"] = [{**policy} for policy in policies]


def default_network_policy(value: Json) -> None:
    """A NetworkPolicy."""
    spec = value["spec"]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def default_ingress_class(value: Json) -> None:
    """An IngressClass."""
    parameters = value["spec"].get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def default_storage_class(value: Json) -> None:
    """A StorageClass."""
    value.setdefault("reclaimPolicy", "Delete")
    value.setdefault("volumeBindingMode", "Immediate")


def default_csi_driver(value: Json) -> None:
    """A CSIDriver."""
    spec = value["spec"]
    spec.setdefault("attachRequired", True)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    for name in ("podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"):
        spec.setdefault(name, False)
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def default_priority_class(value: Json) -> None:
    """A PriorityClass."""
    value.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_endpoint_slice(value: Json) -> None:
    """An EndpointSlice."""
    for port in value.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def default_flow_schema(value: Json) -> None:
    """A FlowSchema."""
    spec = value["spec"]
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def default_priority_level(value: Json) -> None:
    """A PriorityLevelConfiguration."""
    spec = value["spec"]
    if (exempt := spec.get("exempt")) is not None:
        exempt.setdefault("nominalConcurrencyShares", 0)
        exempt.setdefault("lendablePercent", 0)
    if (limited := spec.get("limited")) is not None:
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        limited.setdefault("lendablePercent", 0)
        if (queuing := limited["limitResponse"].get("queuing")) is not None:
            for name, most in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
                queuing[name] = queuing.get(name) or most


def default_claim(value: Json) -> None:
    """A ResourceClaim."""
    _default_device_requests(value["spec"])


def default_claim_template(value: Json) -> None:
    """A ResourceClaimTemplate."""
    _default_device_requests(value["spec"]["spec"])


def _default_device_requests(spec: Json) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for wanted in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if wanted is not None and wanted.setdefault("allocationMode", "ExactCount") == "ExactCount":
                wanted.setdefault("count", 1)


def default_api_service(value: Json) -> None:
    """An APIService."""
    if (service := value["spec"].get("service")) is not None:
        service.setdefault("port", 443)
