"""The rules of the core group, but for what runs pods."""

from __future__ import annotations

from typing import Final

from navarch.api.names import DNS_LABEL
from navarch.cluster.server.kinds.builtin import claiming, creating, selecting
from navarch.cluster.server.kinds.builtin.checks import claims, nodes, quotas, statuses
from navarch.cluster.server.kinds.builtin.checks import core as checks
from navarch.cluster.server.kinds.builtin.checks.events import check_event, check_event_update
from navarch.cluster.server.kinds.builtin.checks.services import check_service, check_service_update, service_warnings
from navarch.cluster.server.kinds.builtin.defaults import core as defaults
from navarch.cluster.server.kinds.builtin.rules import Rules, path_segment_faults

__all__ = ["CORE"]

CORE: Final[dict[tuple[str, str], Rules]] = {
    ("v1", "services"): Rules(
        default=defaults.default_service,
        create=creating.create_service,
        update=creating.update_service,
        check=check_service,
        check_update=check_service_update,
        check_status=statuses.service_status,
        warnings=service_warnings,
        name_faults=DNS_LABEL.faults,
        fields=selecting.service_fields,
    ),
    ("v1", "configmaps"): Rules(check=checks.check_config_map, check_update=checks.check_immutable),
    ("v1", "secrets"): Rules(
        default=defaults.default_secret,
        check=checks.check_secret,
        check_update=checks.check_secret_update,
        warnings=checks.secret_warnings,
        fields=selecting.secret_fields,
    ),
    ("v1", "namespaces"): Rules(
        default=defaults.default_namespace,
        create=creating.create_namespace,
        check=checks.check_namespace,
        name_faults=DNS_LABEL.faults,
        fields=selecting.namespace_fields,
    ),
    ("v1", "persistentvolumeclaims"): Rules(
        default=defaults.default_persistent_volume_claim,
        create=claiming.create_claim,
        update=claiming.update_claim,
        check=claims.check_claim,
        check_update=claims.check_claim_update,
        check_status=claims.check_claim_status,
        warnings=claims.claim_warnings,
    ),
    ("v1", "persistentvolumes"): Rules(
        never_empty=("spec", "capacity"),
        default=defaults.default_persistent_volume,
        create=creating.create_persistent_volume,
        update_status=creating.update_persistent_volume_status,
        check=claims.check_volume,
        check_update=claims.check_volume_update,
    ),
    ("v1", "limitranges"): Rules(
        default=defaults.default_limit_range,
        check=quotas.check_limit_range,
        empty_lists=(("spec", "limits"),),
    ),
    ("v1", "resourcequotas"): Rules(
        check=quotas.check_quota,
        check_update=quotas.check_quota_update,
        check_status=quotas.check_quota_status,
        warnings=quotas.quota_warnings,
    ),
    ("v1", "serviceaccounts"): Rules(
        create=creating.create_service_account,
        update=creating.update_service_account,
        warnings=checks.service_account_warnings,
    ),
    ("v1", "endpoints"): Rules(
        default=defaults.default_endpoints, check=checks.check_endpoints, warnings=checks.endpoints_warnings
    ),
    ("v1", "nodes"): Rules(
        default=defaults.default_node,
        check=nodes.check_node,
        check_update=nodes.check_node_update,
        check_status=nodes.check_node_status,
        fields=selecting.node_fields,
    ),
    ("v1", "events"): Rules(
        check=check_event,
        name_faults=path_segment_faults,
        fields=selecting.event_fields,
        checks_metadata=False,
        qualifies_finalizers=False,
    ),
    ("events.k8s.io/v1", "events"): Rules(
        check=check_event,
        check_update=check_event_update,
        fields=selecting.events_v1_fields,
        qualifies_finalizers=False,
    ),
}
