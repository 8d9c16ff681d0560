"""Defaults of what runs pods."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.kinds.builtin.defaults.pods import default_claim_spec, default_pod_spec
from navarch.cluster.server.kinds.builtin.template_generations import noted
from navarch.cluster.server.wire.request import Json

__all__ = [
    "default_cron_job",
    "default_daemon_set",
    "default_deployment",
    "default_job",
    "default_pod_template",
    "default_replica_set",
    "default_replication_controller",
    "default_stateful_set",
]

_ROLLING: Final = "RollingUpdate"
_NO_LIMIT: Final = 2**31 - 1


def default_deployment(value: Json) -> None:
    """A Deployment."""
    spec = value["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec["strategy"]
    if strategy.setdefault("type", _ROLLING) == _ROLLING:
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    default_pod_spec(spec["template"]["spec"])


def default_replica_set(value: Json) -> None:
    """A ReplicaSet."""
    value["spec"].setdefault("replicas", 1)
    default_pod_spec(value["spec"].get("template", {}).get("spec", {}))


def default_replication_controller(value: Json) -> None:
    """A ReplicationController: labels and selector are its template's if it says nothing."""
    spec = value["spec"]
    template = spec.get("template")
    labels = ((template or {}).get("metadata") or {}).get("labels")
    if labels:
        spec.setdefault("selector", {**labels})
        value["metadata"].setdefault("labels", {**labels})
    spec.setdefault("replicas", 1)
    if template is not None:
        default_pod_spec(template["spec"])


def default_stateful_set(value: Json) -> None:
    """A StatefulSet."""
    spec = value["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    _default_stateful_update(spec["updateStrategy"])
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    default_pod_spec(spec["template"]["spec"])
    for claim in spec.get("volumeClaimTemplates") or ():
        default_claim_spec(claim["spec"])
        claim["status"].setdefault("phase", "Pending")
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"


def _default_stateful_update(strategy: Json) -> None:
    """How many pods may be away at once is a feature that is off."""
    if "type" not in strategy:
        strategy["type"] = _ROLLING
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == _ROLLING and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
        strategy["rollingUpdate"].pop("maxUnavailable", None)


def default_daemon_set(value: Json) -> None:
    """A DaemonSet."""
    noted(value)
    spec = value["spec"]
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", _ROLLING) == _ROLLING:
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    default_pod_spec(spec["template"]["spec"])


def default_job(value: Json) -> None:
    """A Job: its labels are its template's if it has none."""
    spec = value["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _NO_LIMIT if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels:
        value["metadata"].setdefault("labels", {**labels})
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    _default_job_spec(spec)


def _default_job_spec(spec: Json) -> None:
    default_pod_spec(spec["template"]["spec"])
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition["status"] = condition.get("status") or "True"


def default_cron_job(value: Json) -> None:
    """A CronJob. The template of its jobs gets what any pod template gets, but not what jobs do."""
    spec = value["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    _default_job_spec(spec["jobTemplate"]["spec"])


def default_pod_template(value: Json) -> None:
    """A PodTemplate."""
    default_pod_spec(value["template"]["spec"])
