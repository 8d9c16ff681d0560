"""Kinds that run pods, and that say how many: those of `builtin` aside."""

from __future__ import annotations

from typing import Final

from differential.kinds import GONE, Kind
from differential.steps import Json

__all__ = ["RUNNING"]

_CONTAINER: Json = {"name": "c", "image": "i"}
_TEMPLATE: Json = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [_CONTAINER]}}
_LABELS: Json = {"matchLabels": {"app": "a"}}
_SELECTORS = [
    {"matchLabels": {"app": "b"}},
    {},
    None,
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
    {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]},
    {"matchLabels": {"app": "not valid!"}},
]
_CONDITION: Json = {
    "type": "A",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2020-01-01T00:00:00Z",
}
_CPU: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}

RUNNING: Final = (
    Kind(
        "DaemonSet",
        "daemonsets",
        {"spec": {"selector": _LABELS, "template": _TEMPLATE}},
        {
            "spec.selector": _SELECTORS,
            "spec.template.spec.containers.0.image": ["i:2", "", " i"],
            "spec.template.spec.restartPolicy": ["Always", "Never"],
            "spec.template.spec.activeDeadlineSeconds": [5],
            "spec.template.metadata.labels": [{"app": "a", "b": "c"}, {"app": "b"}, None],
            "spec.updateStrategy": [
                {"type": "OnDelete"},
                {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "20%"}},
                {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
                {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                {"type": "Other"},
                {"rollingUpdate": {"maxUnavailable": 0}},
                {"rollingUpdate": {"maxUnavailable": "200%"}},
                {"type": "OnDelete", "rollingUpdate": {}},
            ],
            "spec.minReadySeconds": [1, -1],
            "spec.revisionHistoryLimit": [0, -1],
        },
        group="apps",
        status={
            "currentNumberScheduled": [1, -1],
            "desiredNumberScheduled": [2],
            "numberReady": [1],
            "observedGeneration": [1, -1],
            "collisionCount": [1, -1],
            "conditions": [[{"type": "A", "status": "True"}]],
        },
    ),
    Kind(
        "ReplicaSet",
        "replicasets",
        {"spec": {"selector": _LABELS, "template": _TEMPLATE}},
        {
            "spec.replicas": [0, 3, -1, None, "2"],
            "spec.selector": _SELECTORS,
            "spec.template": [None, GONE, {"metadata": {"labels": {"app": "a"}}}],
            "spec.template.spec.containers.0.image": ["i:2", ""],
            "spec.template.spec.restartPolicy": ["Always", "Never"],
            "spec.template.metadata.labels": [{"app": "a", "b": "c"}, {"app": "b"}, None],
            "spec.minReadySeconds": [1, -1],
        },
        group="apps",
        status={
            "replicas": [1, -1],
            "readyReplicas": [1, 5],
            "fullyLabeledReplicas": [1, 7],
            "availableReplicas": [1, 9],
            "observedGeneration": [1, -1],
            "conditions": [[{"type": "ReplicaFailure", "status": "True"}]],
        },
        scales=True,
        fields=("metadata.name=a", "status.replicas=0", "status.replicas=1"),
    ),
    Kind(
        "CronJob",
        "cronjobs",
        {
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [_CONTAINER]}}}},
            }
        },
        {
            "spec.schedule": ["*/5 1 * * 0", "@hourly", "", "* * *", "61 * * * *", "TZ=UTC * * * * *", "@every 1h"],
            "spec.timeZone": ["Europe/Berlin", "", "Local", "Nowhere/Land", "UTC"],
            "spec.concurrencyPolicy": ["Forbid", "Replace", "Odd", ""],
            "spec.suspend": [True, False, None],
            "spec.startingDeadlineSeconds": [10, 0, -1],
            "spec.successfulJobsHistoryLimit": [0, 5, -1],
            "spec.failedJobsHistoryLimit": [0, -1],
            "spec.jobTemplate.metadata": [{"labels": {"a": "b"}}, {"name": "n"}],
            "spec.jobTemplate.spec.completions": [1, -1],
            "spec.jobTemplate.spec.manualSelector": [True],
            "spec.jobTemplate.spec.template.spec.restartPolicy": ["OnFailure", "Always", GONE],
            "spec.jobTemplate.spec.template.spec.containers.0.image": ["i:2", ""],
        },
        group="batch",
        status={
            "active": [[{"kind": "Job", "name": "a-1"}], []],
            "lastScheduleTime": ["2020-01-01T00:00:00Z", "soon"],
        },
    ),
    Kind(
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            }
        },
        {
            "spec.maxReplicas": [5, 1, 0, -1, None],
            "spec.minReplicas": [1, 2, 0, 9, None],
            "spec.scaleTargetRef": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s"},
                {"kind": "Deployment", "name": "d"},
                {"apiVersion": "apps/v1", "kind": "a/b", "name": ""},
                {},
                None,
            ],
            "spec.metrics": [
                [_CPU],
                [],
                [{"type": "Odd"}],
                [{"type": "Resource"}],
                [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}],
                [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "100m"}},
                    }
                ],
                [
                    {
                        "type": "Pods",
                        "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1k"}},
                    }
                ],
                [
                    {
                        "type": "External",
                        "external": {"metric": {"name": "m/"}, "target": {"type": "Value", "value": "-1"}},
                    }
                ],
                [{"type": "Pods", "resource": _CPU["resource"]}],
            ],
            "spec.behavior": [
                {"scaleDown": {"stabilizationWindowSeconds": 60}},
                {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}},
                {"scaleUp": {"policies": []}},
                {"scaleDown": {"selectPolicy": "Odd"}},
                {"scaleDown": {"stabilizationWindowSeconds": 5000}},
                {"scaleUp": {"policies": [{"type": "Odd", "value": 0, "periodSeconds": 5000}]}},
                {},
            ],
        },
        group="autoscaling",
        versions=("v2",),
        status={"currentReplicas": [1, -1], "desiredReplicas": [2, -1], "observedGeneration": [1]},
    ),
    Kind(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": _LABELS}},
        {
            "spec.minAvailable": [2, "50%", "150%", -1, "x", None, GONE],
            "spec.maxUnavailable": [1, "0%", -1],
            "spec.selector": _SELECTORS,
            "spec.unhealthyPodEvictionPolicy": ["AlwaysAllow", "IfHealthyBudget", "Odd"],
        },
        group="policy",
        status={
            "disruptionsAllowed": [1, -1],
            "currentHealthy": [1, -1],
            "desiredHealthy": [1],
            "expectedPods": [2],
            "observedGeneration": [1],
            "conditions": [[_CONDITION], [{"type": "A", "status": "Odd"}]],
        },
    ),
)
