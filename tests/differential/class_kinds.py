"""Classes and bindings, which are cluster-wide."""

from __future__ import annotations

from typing import Final

from differential.kinds import GONE, Kind
from differential.steps import Json

__all__ = ["CLASSES"]

_SUBJECT: Json = {"kind": "ServiceAccount", "name": "a", "namespace": "$ns"}
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

CLASSES: Final = (
    Kind(
        "ClusterRoleBinding",
        "clusterrolebindings",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [_SUBJECT],
        },
        {
            "subjects": _SUBJECTS,
            "roleRef": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                {"kind": "ClusterRole", "name": "edit"},
                GONE,
            ],
        },
        group="rbac.authorization.k8s.io",
        namespaced=False,
    ),
    Kind(
        "StorageClass",
        "storageclasses",
        {"provisioner": "x.io/p"},
        {
            "provisioner": ["x.io/q", "", "bad provisioner"],
            "reclaimPolicy": ["Retain", "Delete", "Odd"],
            "volumeBindingMode": ["WaitForFirstConsumer", "Immediate", "Odd"],
            "parameters": [{"a": "b"}, {"": "x"}, {}, {"a": 1}],
            "allowVolumeExpansion": [True, False],
            "mountOptions": [["a"], []],
            "allowedTopologies": [
                [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
                [{"matchLabelExpressions": [{"key": "zone", "values": []}]}],
                [{}],
                [],
            ],
        },
        group="storage.k8s.io",
        namespaced=False,
    ),
    Kind(
        "PriorityClass",
        "priorityclasses",
        {"value": 5},
        {
            "value": [7, -1, 1000000001, "x"],
            "description": ["d", ""],
            "preemptionPolicy": ["Never", "PreemptLowerPriority", "Odd"],
            "globalDefault": [False, "x"],
        },
        group="scheduling.k8s.io",
        namespaced=False,
    ),
    Kind(
        "IngressClass",
        "ingressclasses",
        {"spec": {"controller": "x.io/c"}},
        {
            "spec.controller": ["x.io/d", "", "bad", "x" * 251],
            "spec.parameters": [
                {"kind": "K", "name": "n"},
                {"kind": "K", "name": "n", "scope": "Namespace"},
                {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "a", "apiGroup": "x.io"},
                {"kind": "", "name": ""},
                {"kind": "K", "name": "n", "scope": "Odd"},
                {"kind": "K", "name": "n", "scope": "Cluster", "namespace": "a"},
            ],
        },
        group="networking.k8s.io",
        namespaced=False,
    ),
    Kind(
        "RuntimeClass",
        "runtimeclasses",
        {"handler": "h"},
        {
            "handler": ["i", "", "BAD"],
            "overhead": [{"podFixed": {"cpu": "1"}}, {"podFixed": {"cpu": "-1"}}],
            "scheduling": [
                {"nodeSelector": {"a": "b"}},
                {"nodeSelector": {"a": "not valid!"}},
                {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            ],
        },
        group="node.k8s.io",
        namespaced=False,
    ),
)
