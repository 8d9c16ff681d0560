"""The built-in kinds that sequences are about."""

from __future__ import annotations

from typing import Final

from differential.kinds import GONE, Edits, Kind
from differential.steps import Json

__all__ = ["BUILTIN"]

_CONTAINER: Json = {"name": "c", "image": "i"}
_POD_SPEC: Edits = {
    "containers": [
        [_CONTAINER],
        [],
        None,
        [_CONTAINER, _CONTAINER],
        [_CONTAINER, {"name": "d", "image": "j"}],
        [{"name": "c"}],
        [{"name": "C", "image": "i"}],
        "x",
    ],
    "containers.0.image": ["i:2", "", " i", "i:latest", 3],
    "containers.0.env": [
        [{"name": "A", "value": "1"}],
        [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        [{"name": ""}],
        [{"name": "A", "value": "1", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}],
    ],
    "containers.0.ports": [
        [{"containerPort": 80}],
        [{"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}],
        [{"containerPort": 0}],
        [{"containerPort": 80, "name": "Bad_Name"}],
        [{"containerPort": 80}, {"containerPort": 80}],
    ],
    "containers.0.resources": [
        {"limits": {"cpu": "1"}},
        {"requests": {"memory": "1Gi"}, "limits": {"memory": "512Mi"}},
        {"requests": {"cpu": "0.5", "memory": "1e3"}},
        {"limits": {"cpu": "much"}},
        {"limits": {"cpu": "-1"}},
    ],
    "containers.0.imagePullPolicy": ["Always", "Never", "Sometimes"],
    "containers.0.livenessProbe": [
        {"httpGet": {"path": "/", "port": 80}},
        {"tcpSocket": {"port": "http"}, "periodSeconds": 0},
        {"exec": {"command": []}},
        {},
    ],
    "containers.0.securityContext": [
        {"runAsUser": 1},
        {"runAsUser": -1},
        {"privileged": True, "allowPrivilegeEscalation": False},
    ],
    "containers.0.volumeMounts": [[{"name": "v", "mountPath": "/v"}], [{"name": "none", "mountPath": "/v"}]],
    "initContainers": [
        [{"name": "i", "image": "i"}],
        [{"name": "c", "image": "i"}],
        [{"name": "i", "image": "i", "restartPolicy": "Always"}],
    ],
    "volumes": [
        [{"name": "v", "emptyDir": {}}],
        [{"name": "v", "configMap": {"name": "m"}}],
        [{"name": "v"}],
        [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}],
        [{"name": "v", "secret": {"secretName": ""}}],
    ],
    "restartPolicy": ["Always", "OnFailure", "Never", "Sometimes"],
    "terminationGracePeriodSeconds": [0, 5, -1],
    "nodeSelector": [{"a": "b"}, {"a": "not valid!"}],
    "tolerations": [
        [{"key": "a", "operator": "Exists"}],
        [{"key": "a", "operator": "Exists", "value": "b"}],
        [{"operator": "Equal"}],
    ],
    "dnsPolicy": ["ClusterFirst", "Default", "None"],
    "hostNetwork": [True],
    "serviceAccountName": ["default", "other"],
    "activeDeadlineSeconds": [1, 0],
    "priority": [1],
    "unheardOf": ["x"],
}


def _under(prefix: str, edits: Edits) -> Edits:
    return {f"{prefix}.{path}": values for path, values in edits.items()}


_TEMPLATE: Json = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [_CONTAINER]}}
_REPLICAS = [0, 1, 3, -1, "2", None, 2147483648]
_SELECTORS = [
    {"matchLabels": {"app": "a"}},
    {"matchLabels": {"app": "b"}},
    {},
    None,
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
    {"matchExpressions": [{"key": "app", "operator": "Has"}]},
]

BUILTIN: Final = (
    Kind(
        "ConfigMap",
        "configmaps",
        {"data": {"k": "v"}},
        {
            "data": [{"k": "w"}, {"k": "v", "l": "m"}, {"bad key": "x"}, {"k": None}, {"k": 1}, {}, "x", {"..": "x"}],
            "data.k": ["w", "", None, 1],
            "binaryData": [{"b": "aGk="}, {"b": "not base64"}, {"k": "aGk="}],
            "immutable": [True, False, "true"],
            "unheardOf": [1],
        },
    ),
    Kind(
        "Secret",
        "secrets",
        {"data": {"k": "dg=="}},
        {
            "data": [{"k": "dw=="}, {"k": "not base64"}, {"bad key": "dg=="}],
            "stringData": [{"k": "w"}, {"n": "1", "k": "2"}, {"bad key": "x"}],
            "type": [
                "Opaque",
                "kubernetes.io/tls",
                "kubernetes.io/basic-auth",
                "x.io/mine",
                "kubernetes.io/dockerconfigjson",
                "kubernetes.io/service-account-token",
            ],
            "immutable": [True, False],
        },
        fields=("metadata.name=a", "type=Opaque", "type!=Opaque"),
    ),
    Kind(
        "Service",
        "services",
        {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}},
        {
            "spec.ports": [
                [{"port": 80}],
                [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}],
                [{"port": 80}, {"port": 81}],
                [{"port": 0}],
                [{"port": 80, "targetPort": "http"}],
                [{"port": 80, "name": "a", "protocol": "UDP"}, {"port": 80, "name": "b"}],
                [],
                None,
                [{"port": 80, "targetPort": "BAD NAME"}],
                [{"port": 80, "protocol": "ICMP"}],
            ],
            "spec.type": ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Other"],
            "spec.clusterIP": ["None", "", "bad"],
            "spec.selector": [{"app": "b"}, None, {"app": "not valid!"}],
            "spec.externalName": ["example.com", "bad name"],
            "spec.sessionAffinity": ["ClientIP", "None", "Some"],
            "spec.externalTrafficPolicy": ["Local", "Cluster", "Some"],
            "spec.internalTrafficPolicy": ["Local", "Cluster"],
            "spec.publishNotReadyAddresses": [True],
            "spec": [None, {}],
        },
        status={
            "loadBalancer": [{"ingress": [{"ip": "1.2.3.4"}]}, {"ingress": [{"ip": "bad"}]}, {}],
            "conditions": [
                [
                    {
                        "type": "A",
                        "status": "True",
                        "reason": "R",
                        "message": "",
                        "lastTransitionTime": "2020-01-01T00:00:00Z",
                    }
                ]
            ],
        },
    ),
    Kind(
        "Pod",
        "pods",
        {"spec": {"containers": [_CONTAINER]}},
        _under("spec", _POD_SPEC),
        status={
            "phase": ["Running", "Pending", "Odd"],
            "conditions": [[{"type": "Ready", "status": "True"}], [{"type": "Ready"}]],
            "podIP": ["10.1.1.1"],
            "message": ["m"],
        },
        fields=("metadata.name=a", "status.phase=Pending", "spec.nodeName=", "spec.restartPolicy=Never"),
    ),
    Kind(
        "Deployment",
        "deployments",
        {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}},
        {
            "spec.replicas": _REPLICAS,
            "spec.selector": _SELECTORS,
            "spec.template.metadata.labels": [{"app": "a", "b": "c"}, {"app": "b"}, None],
            "spec.strategy": [
                {"type": "Recreate"},
                {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "30%"}},
                {"type": "Other"},
                {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
                {"type": "Recreate", "rollingUpdate": {}},
            ],
            "spec.paused": [True],
            "spec.minReadySeconds": [1, -1],
            "spec.revisionHistoryLimit": [0, -1],
            "spec.progressDeadlineSeconds": [1, 0],
            **_under("spec.template.spec", _POD_SPEC),
        },
        group="apps",
        status={
            "replicas": [1, -1],
            "readyReplicas": [1],
            "observedGeneration": [1, -1],
            "conditions": [[{"type": "Available", "status": "True"}]],
        },
        scales=True,
    ),
    Kind(
        "StatefulSet",
        "statefulsets",
        {"spec": {"serviceName": "s", "selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}},
        {
            "spec.replicas": _REPLICAS,
            "spec.selector": _SELECTORS,
            "spec.serviceName": ["t", ""],
            "spec.podManagementPolicy": ["Parallel", "OrderedReady", "Other"],
            "spec.updateStrategy": [
                {"type": "OnDelete"},
                {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
                {"type": "Other"},
            ],
            "spec.volumeClaimTemplates": [
                [
                    {
                        "metadata": {"name": "d"},
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                    }
                ]
            ],
            "spec.persistentVolumeClaimRetentionPolicy": [{"whenDeleted": "Delete"}, {"whenScaled": "Never"}],
            "spec.template.metadata.labels": [{"app": "a", "b": "c"}, {"app": "b"}],
            "spec.template.spec.containers.0.image": ["i:2", ""],
        },
        group="apps",
        status={"replicas": [1, -1], "readyReplicas": [2], "currentRevision": ["r"]},
        scales=True,
    ),
    Kind(
        "Job",
        "jobs",
        {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [_CONTAINER]}}}},
        {
            "spec.parallelism": [0, 2, -1],
            "spec.completions": [1, 3, -1],
            "spec.backoffLimit": [0, -1],
            "spec.completionMode": ["Indexed", "NonIndexed", "Other"],
            "spec.suspend": [True, False],
            "spec.activeDeadlineSeconds": [1, 0, -1],
            "spec.ttlSecondsAfterFinished": [1, -1],
            "spec.selector": [{"matchLabels": {"app": "a"}}],
            "spec.manualSelector": [True],
            "spec.template.spec.restartPolicy": ["OnFailure", "Always", GONE],
            "spec.template.spec.containers.0.image": ["i:2"],
        },
        group="batch",
        status={"active": [1], "succeeded": [1], "startTime": ["2020-01-01T00:00:00Z"]},
        fields=("metadata.name=a", "status.successful=0"),
    ),
    Kind(
        "ClusterRole",
        "clusterroles",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
        {
            "rules": [
                [],
                None,
                [{"verbs": ["get"]}],
                [{"apiGroups": [""], "resources": ["pods"], "verbs": []}],
                [{"nonResourceURLs": ["/x"], "verbs": ["get"]}],
                [{"nonResourceURLs": ["/x"], "resources": ["pods"], "verbs": ["get"]}],
            ],
            "aggregationRule": [
                {"clusterRoleSelectors": [{"matchLabels": {"none": "such"}}]},
                {"clusterRoleSelectors": []},
            ],
        },
        group="rbac.authorization.k8s.io",
        namespaced=False,
    ),
    Kind(
        "PersistentVolume",
        "persistentvolumes",
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
        {
            "spec.capacity": [{"storage": "2Gi"}, {"storage": "0"}, {"cpu": "1"}],
            "spec.accessModes": [["ReadOnlyMany"], [], ["Other"]],
            "spec.persistentVolumeReclaimPolicy": ["Delete", "Retain", "Other"],
            "spec.hostPath": [{"path": "/y"}, {"path": "/a/../b"}, GONE],
            "spec.storageClassName": ["s", "BAD"],
            "spec.volumeMode": ["Block", "Other"],
        },
        namespaced=False,
        status={"phase": ["Bound", "Odd"], "message": ["m"]},
    ),
)
