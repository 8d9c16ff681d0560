"""The rules of each built-in kind."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.builtin import creating
from navarch.cluster.server.builtin.defaults import core, others, pods, workloads
from navarch.cluster.server.builtin.rules import Rules, path_segment_faults

__all__ = ["rules_of"]

_ADMISSION: Final = "admissionregistration.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_STORAGE: Final = "storage.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_RESOURCE: Final = "resource.k8s.io"

_PLAIN = Rules()
_RULES: dict[tuple[str, str], Rules] = {
    ("", "pods"): Rules(default=pods.default_pod, create=creating.create_pod, counts_generation=True),
    ("", "services"): Rules(default=core.default_service),
    ("", "secrets"): Rules(default=core.default_secret),
    ("", "namespaces"): Rules(
        default=core.default_namespace, create=creating.create_namespace, update=creating.update_namespace
    ),
    ("", "persistentvolumeclaims"): Rules(default=core.default_persistent_volume_claim, create=creating.create_claim),
    ("", "persistentvolumes"): Rules(default=core.default_persistent_volume, create=creating.create_persistent_volume),
    ("", "replicationcontrollers"): Rules(default=workloads.default_replication_controller, counts_generation=True),
    ("", "podtemplates"): Rules(default=workloads.default_pod_template, counts_generation=True),
    ("", "limitranges"): Rules(default=core.default_limit_range),
    ("", "endpoints"): Rules(default=core.default_endpoints),
    ("", "nodes"): Rules(default=core.default_node, resets_status=False),
    ("apps", "deployments"): Rules(default=workloads.default_deployment, counts_generation=True),
    ("apps", "replicasets"): Rules(default=workloads.default_replica_set, counts_generation=True),
    ("apps", "statefulsets"): Rules(default=workloads.default_stateful_set, counts_generation=True),
    ("apps", "daemonsets"): Rules(
        default=workloads.default_daemon_set,
        create=creating.create_daemon_set,
        update=creating.update_daemon_set,
        counts_generation=True,
    ),
    ("batch", "jobs"): Rules(default=workloads.default_job, create=creating.create_job, counts_generation=True),
    ("batch", "cronjobs"): Rules(default=workloads.default_cron_job, counts_generation=True),
    ("policy", "poddisruptionbudgets"): Rules(counts_generation=True),
    (_RBAC, "roles"): Rules(name_faults=path_segment_faults),
    (_RBAC, "clusterroles"): Rules(name_faults=path_segment_faults),
    (_RBAC, "rolebindings"): Rules(default=others.default_binding, name_faults=path_segment_faults),
    (_RBAC, "clusterrolebindings"): Rules(default=others.default_binding, name_faults=path_segment_faults),
    (_ADMISSION, "validatingwebhookconfigurations"): Rules(default=others.default_webhooks, counts_generation=True),
    (_ADMISSION, "mutatingwebhookconfigurations"): Rules(
        default=others.default_mutating_webhooks, counts_generation=True
    ),
    (_ADMISSION, "validatingadmissionpolicies"): Rules(default=others.default_policy, counts_generation=True),
    (_ADMISSION, "mutatingadmissionpolicies"): Rules(default=others.default_policy, counts_generation=True),
    (_ADMISSION, "validatingadmissionpolicybindings"): Rules(
        default=others.default_policy_binding, counts_generation=True
    ),
    (_ADMISSION, "mutatingadmissionpolicybindings"): Rules(
        default=others.default_policy_binding, counts_generation=True
    ),
    ("autoscaling", "horizontalpodautoscalers"): Rules(default=others.default_autoscaler),
    (_NETWORKING, "ingresses"): Rules(counts_generation=True),
    (_NETWORKING, "ingressclasses"): Rules(default=others.default_ingress_class, counts_generation=True),
    (_NETWORKING, "networkpolicies"): Rules(default=others.default_network_policy, counts_generation=True),
    (_STORAGE, "storageclasses"): Rules(default=others.default_storage_class),
    (_STORAGE, "volumeattributesclasses"): Rules(create=creating.create_attributes_class),
    (_STORAGE, "csidrivers"): Rules(default=others.default_csi_driver),
    ("scheduling.k8s.io", "priorityclasses"): Rules(default=others.default_priority_class, counts_generation=True),
    ("discovery.k8s.io", "endpointslices"): Rules(default=others.default_endpoint_slice, counts_generation=True),
    ("certificates.k8s.io", "certificatesigningrequests"): Rules(create=creating.create_signing_request),
    (_FLOW, "flowschemas"): Rules(default=others.default_flow_schema, counts_generation=True),
    (_FLOW, "prioritylevelconfigurations"): Rules(default=others.default_priority_level, counts_generation=True),
    (_RESOURCE, "deviceclasses"): Rules(counts_generation=True),
    (_RESOURCE, "resourceslices"): Rules(counts_generation=True),
    (_RESOURCE, "resourceclaims"): Rules(default=others.default_claim),
    (_RESOURCE, "resourceclaimtemplates"): Rules(default=others.default_claim_template),
    ("apiregistration.k8s.io", "apiservices"): Rules(default=others.default_api_service),
}


def rules_of(group: str, version: str, plural: str) -> Rules:
    """The rules of a kind; those that most kinds share if there are none of its own."""
    if (group, version, plural) == ("autoscaling", "v1", "horizontalpodautoscalers"):
        return Rules(default=others.default_autoscaler_v1)
    return _RULES.get((group, plural), _PLAIN)
