"""Which row each kind has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.cells import core, others, pods, workloads
from navarch.cluster.server.kinds.builtin.cells.age import Ages
from navarch.cluster.server.kinds.builtin.cells.others import row
from navarch.cluster.server.kinds.builtin.cells.texts import joined, selector
from navarch.cluster.server.wire.request import Json

__all__ = ["CELLS"]

Cells = Callable[[Json, Ages], list[Any]]

_ADMISSION: Final = "admissionregistration.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_STORAGE: Final = "storage.k8s.io"


def _of(*path: str, default: Any = "") -> Callable[[Json], Any]:
    """What stands at a path."""

    def found(value: Json) -> Any:
        part: Any = value
        for step in path:
            part = part.get(step) if isinstance(part, dict) else None
        return default if part is None else part

    return found


def _count(*path: str) -> Callable[[Json], int]:
    find = _of(*path, default=())
    return lambda value: len(find(value))


CELLS: Final[dict[tuple[str, str], Cells]] = {
    ("v1", "pods"): pods.pod_cells,
    ("v1", "configmaps"): core.config_map_cells,
    ("v1", "secrets"): core.secret_cells,
    ("v1", "namespaces"): core.namespace_cells,
    ("v1", "serviceaccounts"): core.service_account_cells,
    ("v1", "services"): core.service_cells,
    ("v1", "endpoints"): core.endpoints_cells,
    ("v1", "nodes"): core.node_cells,
    ("v1", "persistentvolumeclaims"): core.claim_cells,
    ("v1", "persistentvolumes"): core.volume_cells,
    ("v1", "resourcequotas"): core.quota_cells,
    ("v1", "events"): core.event_cells,
    ("events.k8s.io/v1", "events"): core.events_v1_cells,
    ("v1", "replicationcontrollers"): workloads.replication_controller_cells,
    ("v1", "podtemplates"): workloads.pod_template_cells,
    ("apps/v1", "deployments"): workloads.deployment_cells,
    ("apps/v1", "replicasets"): workloads.replica_set_cells,
    ("apps/v1", "statefulsets"): workloads.stateful_set_cells,
    ("apps/v1", "daemonsets"): workloads.daemon_set_cells,
    ("apps/v1", "controllerrevisions"): workloads.revision_cells,
    ("batch/v1", "jobs"): workloads.job_cells,
    ("batch/v1", "cronjobs"): workloads.cron_job_cells,
    ("autoscaling/v2", "horizontalpodautoscalers"): others.autoscaler_cells,
    ("autoscaling/v1", "horizontalpodautoscalers"): others.autoscaler_v1_cells,
    ("policy/v1", "poddisruptionbudgets"): others.budget_cells,
    ("rbac.authorization.k8s.io/v1", "rolebindings"): others.binding_cells,
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings"): others.binding_cells,
    (f"{_ADMISSION}/v1", "validatingwebhookconfigurations"): row(_count("webhooks")),
    (f"{_ADMISSION}/v1", "mutatingwebhookconfigurations"): row(_count("webhooks")),
    (f"{_ADMISSION}/v1", "validatingadmissionpolicies"): others.policy_cells("validations"),
    (f"{_ADMISSION}/v1", "mutatingadmissionpolicies"): others.policy_cells("mutations"),
    (f"{_ADMISSION}/v1", "validatingadmissionpolicybindings"): others.policy_binding_cells,
    (f"{_ADMISSION}/v1", "mutatingadmissionpolicybindings"): others.policy_binding_cells,
    (f"{_NETWORKING}/v1", "ingresses"): others.ingress_cells,
    (f"{_NETWORKING}/v1", "ingressclasses"): others.ingress_class_cells,
    (f"{_NETWORKING}/v1", "ipaddresses"): others.ip_address_cells,
    (f"{_NETWORKING}/v1", "networkpolicies"): row(lambda value: selector(value["spec"].get("podSelector"))),
    (f"{_NETWORKING}/v1", "servicecidrs"): row(lambda value: joined(value["spec"].get("cidrs") or ())),
    (f"{_STORAGE}/v1", "storageclasses"): row(
        _of("provisioner"),
        _of("reclaimPolicy", default="Delete"),
        _of("volumeBindingMode", default="Immediate"),
        _of("allowVolumeExpansion", default=False),
    ),
    (f"{_STORAGE}/v1", "csidrivers"): others.csi_driver_cells,
    (f"{_STORAGE}/v1", "csinodes"): row(_count("spec", "drivers")),
    (f"{_STORAGE}/v1", "volumeattachments"): row(
        _of("spec", "attacher"),
        _of("spec", "source", "persistentVolumeName"),
        _of("spec", "nodeName"),
        _of("status", "attached", default=False),
    ),
    (f"{_STORAGE}/v1", "volumeattributesclasses"): row(_of("driverName")),
    ("scheduling.k8s.io/v1", "priorityclasses"): lambda value, ages: [
        value["metadata"]["name"],
        value.get("value", 0),
        value.get("globalDefault", False),
        ages.of(value),
        value.get("preemptionPolicy", ""),
    ],
    ("coordination.k8s.io/v1", "leases"): row(_of("spec", "holderIdentity")),
    ("discovery.k8s.io/v1", "endpointslices"): others.slice_cells,
    ("node.k8s.io/v1", "runtimeclasses"): row(_of("handler")),
    ("certificates.k8s.io/v1", "certificatesigningrequests"): others.signing_request_cells,
    ("flowcontrol.apiserver.k8s.io/v1", "flowschemas"): others.flow_schema_cells,
    ("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations"): others.priority_level_cells,
    ("resource.k8s.io/v1", "resourceclaims"): others.resource_claim_cells,
    ("resource.k8s.io/v1", "resourceslices"): row(
        _of("spec", "nodeName"), _of("spec", "driver"), _of("spec", "pool", "name")
    ),
    ("apiregistration.k8s.io/v1", "apiservices"): others.api_service_cells,
}
"""By apiVersion and resource; the rest has name and age."""
