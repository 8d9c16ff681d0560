"""The rules of pods and of what runs them."""

from __future__ import annotations

from typing import Final

from navarch.api.names import DNS_LABEL
from navarch.cluster.server.kinds.builtin import creating, selecting, template_generations
from navarch.cluster.server.kinds.builtin.checks import jobs, statuses
from navarch.cluster.server.kinds.builtin.checks import pod_warnings as warnings
from navarch.cluster.server.kinds.builtin.checks import workloads as checks
from navarch.cluster.server.kinds.builtin.checks.pods import check_pod, check_pod_update
from navarch.cluster.server.kinds.builtin.defaults import workloads as defaults
from navarch.cluster.server.kinds.builtin.defaults.pods import default_pod
from navarch.cluster.server.kinds.builtin.rules import Rules

__all__ = ["WORKLOADS"]

_LABELS: Final = ("spec", "template", "metadata", "labels")

WORKLOADS: Final[dict[tuple[str, str], Rules]] = {
    ("v1", "pods"): Rules(
        default=default_pod,
        create=creating.create_pod,
        check=check_pod,
        check_update=check_pod_update,
        warnings=warnings.pod_warnings,
        counts_generation=True,
        grace_seconds=selecting.pod_grace_seconds,
        fields=selecting.pod_fields,
    ),
    ("v1", "podtemplates"): Rules(
        default=defaults.default_pod_template, check=checks.check_pod_template, counts_generation=True
    ),
    ("v1", "replicationcontrollers"): Rules(
        default=defaults.default_replication_controller,
        check=checks.check_replication_controller,
        warnings=warnings.workload_warnings,
        counts_generation=True,
        fields=selecting.replication_controller_fields,
    ),
    ("apps/v1", "deployments"): Rules(
        never_empty=_LABELS,
        default=defaults.default_deployment,
        check=checks.check_deployment,
        check_status=statuses.deployment_status,
        check_update=checks.check_selector_update,
        warnings=warnings.workload_warnings,
        counts_generation=True,
    ),
    ("apps/v1", "replicasets"): Rules(
        never_empty=_LABELS,
        default=defaults.default_replica_set,
        check=checks.check_replica_set,
        check_status=statuses.replica_set_status,
        check_update=checks.check_selector_update,
        warnings=warnings.workload_warnings,
        counts_generation=True,
    ),
    ("apps/v1", "statefulsets"): Rules(
        never_empty=_LABELS,
        default=defaults.default_stateful_set,
        check=checks.check_stateful_set,
        check_status=statuses.stateful_set_status,
        check_update=checks.check_stateful_set_update,
        warnings=warnings.template_warnings,
        name_faults=DNS_LABEL.faults,
        counts_generation=True,
    ),
    ("apps/v1", "daemonsets"): Rules(
        never_empty=_LABELS,
        default=defaults.default_daemon_set,
        create=template_generations.begin_template_generation,
        update=template_generations.count_template_generation,
        update_status=template_generations.keep_template_generation,
        check=checks.check_daemon_set,
        check_status=statuses.daemon_set_status,
        check_update=checks.check_selector_update,
        warnings=warnings.template_warnings,
        counts_generation=True,
    ),
    ("batch/v1", "jobs"): Rules(
        default=defaults.default_job,
        create=creating.create_job,
        check=jobs.check_job,
        check_status=statuses.job_status,
        check_update=jobs.check_job_update,
        warnings=warnings.workload_warnings,
        counts_generation=True,
        fields=selecting.job_fields,
    ),
    ("batch/v1", "cronjobs"): Rules(
        default=defaults.default_cron_job,
        check=jobs.check_cron_job,
        warnings=warnings.cron_job_warnings,
        name_faults=jobs.cron_job_name_faults,
        counts_generation=True,
    ),
}
