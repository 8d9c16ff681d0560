"""Kinds that configure: claims, accounts, limits, leases, roles and events."""

from __future__ import annotations

from typing import Final

from differential.kinds import GONE, Kind
from differential.steps import Json

__all__ = ["CONFIGURING"]

_SELECTORS = [
    {"matchLabels": {"app": "b"}},
    {},
    None,
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
    {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]},
    {"matchLabels": {"app": "not valid!"}},
]
_CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_RULE: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_SUBJECT: Json = {"kind": "ServiceAccount", "name": "a", "namespace": "$ns"}
_RULES = [
    [{"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}],
    [],
    None,
    [{"verbs": ["get"]}],
    [{"apiGroups": [""], "resources": ["pods"]}],
    [{"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get", "list"]}],
    [{"nonResourceURLs": ["/x"], "verbs": ["get"]}],
]
_SUBJECTS = [
    [_SUBJECT],
    [],
    [{"kind": "ServiceAccount", "name": "a"}],
    [{"kind": "User", "name": "u"}],
    [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "Group", "name": ""}],
    [{"kind": "Odd", "name": "u"}],
    [{"kind": "ServiceAccount", "name": "BAD", "namespace": "$ns"}],
    [{"kind": "User", "name": "u", "apiGroup": "odd"}],
]

CONFIGURING: Final = (
    Kind(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        {"spec": _CLAIM},
        {
            "spec.accessModes": [["ReadOnlyMany"], [], ["Odd"], ["ReadWriteOncePod"], GONE],
            "spec.resources": [
                {"requests": {"storage": "2Gi"}},
                {"requests": {"storage": "0"}},
                {"requests": {}},
                {"requests": {"storage": "1Gi"}, "limits": {"storage": "512Mi"}},
                {"requests": {"storage": "1.5Gi", "cpu": "1"}},
                GONE,
            ],
            "spec.storageClassName": ["s", "", "BAD!", None],
            "spec.volumeMode": ["Block", "Filesystem", "Odd"],
            "spec.volumeName": ["v", ""],
            "spec.selector": _SELECTORS,
            "spec.dataSource": [
                {"kind": "PersistentVolumeClaim", "name": "b"},
                {"kind": "VolumeSnapshot", "name": "b", "apiGroup": "snapshot.storage.k8s.io"},
                {"kind": "Pod", "name": "b"},
                {"kind": "", "name": ""},
            ],
            "spec.dataSourceRef": [{"kind": "PersistentVolumeClaim", "name": "b"}, {"kind": "K", "name": "n"}],
            "spec": [{}, None],
        },
        status={
            "phase": ["Bound", "Odd"],
            "capacity": [{"storage": "1Gi"}, {"storage": "-1"}],
            "accessModes": [["ReadWriteOnce"]],
            "conditions": [[{"type": "Resizing", "status": "True"}]],
        },
    ),
    Kind(
        "ServiceAccount",
        "serviceaccounts",
        {},
        {
            "automountServiceAccountToken": [True, False, "x"],
            "secrets": [[{"name": "s"}], [{"name": "s"}, {"name": "s"}], []],
            "imagePullSecrets": [[{"name": "s"}], [{}], [{"name": "s"}, {"name": "t"}]],
            "metadata.annotations": [{"kubernetes.io/enforce-mountable-secrets": "true"}],
        },
    ),
    Kind(
        "LimitRange",
        "limitranges",
        {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
        {
            "spec.limits": [
                [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}],
                [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}],
                [{"type": "Pod", "default": {"cpu": "1"}}],
                [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}],
                [{"type": "PersistentVolumeClaim"}],
                [{"type": "Odd", "max": {"cpu": "1"}}],
                [{"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "1"}}],
                [{"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}}],
                [],
            ],
        },
    ),
    Kind(
        "ResourceQuota",
        "resourcequotas",
        {"spec": {"hard": {"pods": "10"}}},
        {
            "spec.hard": [
                {"requests.cpu": "1", "count/widgets.fuzz.example.com": "3"},
                {"odd": "1"},
                {"pods": "-1"},
                {"pods": "1.5"},
                {},
                {"pods": "x"},
            ],
            "spec.scopes": [["BestEffort"], ["Terminating", "NotTerminating"], ["Odd"], []],
            "spec.scopeSelector": [
                {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]},
                {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]},
                {"matchExpressions": [{"scopeName": "Odd", "operator": "Exists"}]},
            ],
        },
        status={"hard": [{"pods": "10"}, {"pods": "x"}], "used": [{"pods": "1"}, {"odd": "1"}]},
    ),
    Kind(
        "Lease",
        "leases",
        {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}},
        {
            "spec.holderIdentity": ["b", "", None],
            "spec.leaseDurationSeconds": [5, 0, -1, None],
            "spec.leaseTransitions": [1, -1],
            "spec.acquireTime": ["2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00Z", "soon"],
            "spec.renewTime": ["2020-01-01T00:00:00.123456Z", "2020-01-01T00:00:00.1Z"],
            "spec.strategy": ["OldestEmulationVersion", "Odd"],
            "spec.preferredHolder": ["c"],
            "spec": [None, {}],
        },
        group="coordination.k8s.io",
    ),
    Kind(
        "Role",
        "roles",
        {"rules": [_RULE]},
        {"rules": _RULES},
        group="rbac.authorization.k8s.io",
    ),
    Kind(
        "RoleBinding",
        "rolebindings",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [_SUBJECT],
        },
        {
            "subjects": _SUBJECTS,
            "roleRef": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                {"kind": "Role", "name": "r"},
                {"kind": "Odd", "name": ""},
                {"apiGroup": "odd", "kind": "Role", "name": "a/b"},
                GONE,
            ],
        },
        group="rbac.authorization.k8s.io",
    ),
    Kind(
        "Event",
        "events",
        {
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "$ns"},
            "reason": "R",
            "message": "m",
            "type": "Normal",
        },
        {
            "involvedObject": [
                {"kind": "Pod", "name": "q", "namespace": "other"},
                {"kind": "Node", "name": "n"},
                {},
                GONE,
            ],
            "type": ["Warning", "Odd", GONE],
            "count": [1, 2, -1],
            "reason": ["S", "", "x" * 130],
            "message": ["n", "x" * 1030],
            "firstTimestamp": ["2020-01-01T00:00:00Z", None],
            "eventTime": ["2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.000000Z"],
            "source": [{"component": "c", "host": "h"}],
            "reportingComponent": ["c", "bad component"],
            "action": ["A"],
        },
        fields=("metadata.name=a", "involvedObject.name=p", "reason=R", "type=Normal", "involvedObject.kind!=Pod"),
    ),
)
