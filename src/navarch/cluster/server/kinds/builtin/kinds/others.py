"""The rules of the kinds outside the core group that run no pods."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from navarch.cluster.server.kinds.builtin import creating, selecting
from navarch.cluster.server.kinds.builtin.checks import (
    admission,
    autoscalers,
    ingresses,
    networking,
    policies,
    rbac,
    statuses,
)
from navarch.cluster.server.kinds.builtin.checks import others as checks
from navarch.cluster.server.kinds.builtin.defaults import others as defaults
from navarch.cluster.server.kinds.builtin.rules import Rules, path_segment_faults
from navarch.cluster.server.kinds.builtin.signing_requests import check_signing_request

__all__ = ["OTHERS"]

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_NETWORKING: Final = "networking.k8s.io/v1"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_STORAGE: Final = "storage.k8s.io/v1"
_FLOW: Final = "flowcontrol.apiserver.k8s.io/v1"
_RESOURCE: Final = "resource.k8s.io/v1"

_POLICY: Final = Rules(
    default=defaults.default_policy,
    counts_generation=True,
    allows_unconditional_update=False,
    qualifies_finalizers=False,
)
_POLICY_BINDING: Final = Rules(
    default=defaults.default_policy_binding,
    counts_generation=True,
    allows_unconditional_update=False,
    qualifies_finalizers=False,
)

OTHERS: Final[dict[tuple[str, str], Rules]] = {
    ("coordination.k8s.io/v1", "leases"): Rules(
        create=creating.create_lease,
        update=creating.update_lease,
        check=checks.check_lease,
        allows_unconditional_update=False,
        qualifies_finalizers=False,
    ),
    ("policy/v1", "poddisruptionbudgets"): Rules(
        check=checks.check_budget,
        check_status=statuses.budget_status,
        name_faults=path_segment_faults,
        counts_generation=True,
        allows_unconditional_update=False,
        checks_metadata=False,
        qualifies_finalizers=False,
    ),
    (_RBAC, "roles"): Rules(check=rbac.check_role, name_faults=path_segment_faults, empty_lists=(("rules",),)),
    (_RBAC, "clusterroles"): Rules(
        check=rbac.check_cluster_role, name_faults=path_segment_faults, empty_lists=(("rules",),)
    ),
    (_RBAC, "rolebindings"): Rules(
        default=defaults.default_binding,
        check=rbac.check_binding,
        check_update=rbac.check_binding_update,
        name_faults=path_segment_faults,
    ),
    (_RBAC, "clusterrolebindings"): Rules(
        default=defaults.default_binding,
        check=rbac.check_cluster_binding,
        check_update=rbac.check_binding_update,
        name_faults=path_segment_faults,
    ),
    (_ADMISSION, "validatingwebhookconfigurations"): Rules(
        default=defaults.default_webhooks,
        check=admission.check_webhooks,
        counts_generation=True,
        allows_unconditional_update=False,
        qualifies_finalizers=False,
    ),
    (_ADMISSION, "mutatingwebhookconfigurations"): Rules(
        default=defaults.default_mutating_webhooks,
        check=admission.check_mutating_webhooks,
        counts_generation=True,
        allows_unconditional_update=False,
        qualifies_finalizers=False,
    ),
    (_ADMISSION, "validatingadmissionpolicies"): replace(_POLICY, check=policies.check_validating_policy),
    (_ADMISSION, "mutatingadmissionpolicies"): replace(_POLICY, check=policies.check_mutating_policy),
    (_ADMISSION, "validatingadmissionpolicybindings"): replace(
        _POLICY_BINDING, check=policies.check_validating_binding
    ),
    (_ADMISSION, "mutatingadmissionpolicybindings"): replace(_POLICY_BINDING, check=policies.check_mutating_binding),
    ("autoscaling/v2", "horizontalpodautoscalers"): Rules(
        default=defaults.default_autoscaler,
        empty_lists=tuple(("spec", "behavior", name, "policies") for name in ("scaleUp", "scaleDown")),
        check=autoscalers.check_autoscaler,
        check_status=autoscalers.check_autoscaler_status,
    ),
    ("autoscaling/v1", "horizontalpodautoscalers"): Rules(
        default=defaults.default_autoscaler_v1,
        check=autoscalers.check_autoscaler,
        check_status=autoscalers.check_autoscaler_status,
    ),
    (_NETWORKING, "ingresses"): Rules(
        check=ingresses.check_ingress,
        check_new=ingresses.check_new_ingress,
        check_status=ingresses.check_ingress_status,
        warnings=ingresses.ingress_warnings,
        counts_generation=True,
    ),
    (_NETWORKING, "ingressclasses"): Rules(
        default=defaults.default_ingress_class,
        check=ingresses.check_ingress_class,
        check_update=ingresses.check_ingress_class_update,
        counts_generation=True,
    ),
    (_NETWORKING, "servicecidrs"): Rules(check_update=networking.check_service_range_update),
    (_NETWORKING, "ipaddresses"): Rules(name_faults=networking.address_name_faults),
    (_NETWORKING, "networkpolicies"): Rules(
        default=defaults.default_network_policy, check=networking.check_network_policy, counts_generation=True
    ),
    ("discovery.k8s.io/v1", "endpointslices"): Rules(
        default=defaults.default_endpoint_slice,
        check=networking.check_slice,
        check_new=networking.check_endpoints,
        check_update=networking.check_slice_update,
        warnings=networking.slice_warnings,
        counts_generation=True,
        counts_labels=True,
        empty_lists=(("endpoints",), ("ports",)),
    ),
    (_STORAGE, "storageclasses"): Rules(
        default=defaults.default_storage_class,
        check=checks.check_storage_class,
        check_update=checks.check_storage_class_update,
    ),
    (_STORAGE, "volumeattributesclasses"): Rules(create=creating.create_attributes_class),
    (_STORAGE, "csidrivers"): Rules(default=defaults.default_csi_driver, allows_unconditional_update=False),
    (_STORAGE, "csinodes"): Rules(allows_unconditional_update=False),
    (_STORAGE, "csistoragecapacities"): Rules(allows_unconditional_update=False),
    (_STORAGE, "volumeattachments"): Rules(allows_unconditional_update=False),
    ("scheduling.k8s.io/v1", "priorityclasses"): Rules(
        default=defaults.default_priority_class,
        create=creating.begin_generation,
        check_new=checks.check_priority_class,
        check_update=checks.check_priority_class_update,
    ),
    ("node.k8s.io/v1", "runtimeclasses"): Rules(
        check=checks.check_runtime_class,
        check_update=checks.check_runtime_class_update,
        allows_unconditional_update=False,
        qualifies_finalizers=False,
    ),
    ("certificates.k8s.io/v1", "certificatesigningrequests"): Rules(
        create=creating.create_signing_request,
        check_new=check_signing_request,
        name_faults=path_segment_faults,
        fields=selecting.signing_request_fields,
    ),
    (_FLOW, "flowschemas"): Rules(default=defaults.default_flow_schema, counts_generation=True),
    (_FLOW, "prioritylevelconfigurations"): Rules(default=defaults.default_priority_level, counts_generation=True),
    (_RESOURCE, "deviceclasses"): Rules(counts_generation=True),
    (_RESOURCE, "resourceslices"): Rules(counts_generation=True),
    (_RESOURCE, "resourceclaims"): Rules(default=defaults.default_claim),
    (_RESOURCE, "resourceclaimtemplates"): Rules(default=defaults.default_claim_template),
    ("apiregistration.k8s.io/v1", "apiservices"): Rules(
        default=defaults.default_api_service, name_faults=path_segment_faults, qualifies_finalizers=False
    ),
}
