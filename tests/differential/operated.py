"""The built-in kinds that operators make beside pods: each plainer than those of `builtin`, and seen less often."""

from __future__ import annotations

from typing import Final

from differential.kinds import GONE, Kind
from differential.steps import Json

__all__ = ["OPERATED"]

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
_CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_BACKEND: Json = {"service": {"name": "s", "port": {"number": 80}}}
_HTTP: Json = {"paths": [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]}
_CPU: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
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

_WORKLOADS: Final = (
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

_NETWORK: Final = (
    Kind(
        "Ingress",
        "ingresses",
        {"spec": {"rules": [{"host": "a.example.com", "http": _HTTP}]}},
        {
            "spec.rules": [
                [{"http": _HTTP}],
                [{"host": "*.example.com", "http": _HTTP}],
                [{"host": "1.2.3.4", "http": _HTTP}],
                [{"host": "BAD"}],
                [],
                [{"host": "a", "http": {"paths": []}}],
                [{"http": {"paths": [{"path": "x", "backend": _BACKEND}]}}],
                [{"http": {"paths": [{"path": "/a//b", "pathType": "Exact", "backend": {}}]}}],
                [{"http": {"paths": [{"pathType": "ImplementationSpecific", "backend": _BACKEND}]}}],
                [{"http": {"paths": [{"path": "/", "pathType": "Odd", "backend": _BACKEND}]}}],
            ],
            "spec.defaultBackend": [
                _BACKEND,
                {"service": {"name": "s", "port": {"name": "http"}}},
                {"service": {"name": "S", "port": {"name": "http", "number": 1}}},
                {"service": {"name": "s"}},
                {"resource": {"apiGroup": "x.io", "kind": "K", "name": "n"}},
                {"resource": {"kind": "", "name": ""}, "service": {"name": "s", "port": {"number": 70000}}},
            ],
            "spec.ingressClassName": ["nginx", "BAD!", None],
            "spec.tls": [[{"hosts": ["a.example.com"], "secretName": "s"}], [{"hosts": ["*"]}], [{}]],
            "metadata.annotations": [{"kubernetes.io/ingress.class": "nginx"}],
        },
        group="networking.k8s.io",
        status={
            "loadBalancer": [
                {"ingress": [{"ip": "1.2.3.4"}]},
                {"ingress": [{"ip": "x"}]},
                {"ingress": [{"hostname": "a.b", "ports": [{"port": 80, "protocol": "TCP"}]}]},
                {},
            ]
        },
    ),
    Kind(
        "NetworkPolicy",
        "networkpolicies",
        {"spec": {"podSelector": {}}},
        {
            "spec.podSelector": [_LABELS, {"matchLabels": {"app": "not valid!"}}, None],
            "spec.policyTypes": [["Ingress"], ["Egress"], ["Ingress", "Egress"], ["Odd"], [], ["Ingress"] * 3],
            "spec.ingress": [
                [{}],
                [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}],
                [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}],
                [{"from": [{"ipBlock": {"cidr": "bad"}}]}],
                [{"from": [{}]}],
                [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/8"]}, "podSelector": {}}]}],
                [{"ports": [{"port": 80, "endPort": 70, "protocol": "TCP"}]}],
                [{"ports": [{"port": "http", "protocol": "Odd"}]}],
            ],
            "spec.egress": [[{}], [{"to": [{"namespaceSelector": {}}], "ports": [{"protocol": "UDP", "port": 53}]}]],
        },
        group="networking.k8s.io",
    ),
    Kind(
        "EndpointSlice",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"name": "a", "port": 80}]},
        {
            "addressType": ["IPv6", "FQDN", "Odd", GONE],
            "endpoints": [
                [],
                None,
                [{"addresses": ["10.1.1.2"], "conditions": {"ready": True}, "nodeName": "n"}],
                [{"addresses": []}],
                [{"addresses": ["bad"]}],
                [{"addresses": ["169.254.0.1"], "hostname": "BAD"}],
                [{"addresses": ["10.1.1.1"], "targetRef": {"kind": "Pod", "name": "p", "namespace": "$ns"}}],
                [{"addresses": ["10.1.1.1"], "hints": {"forZones": [{"name": "z"}]}, "zone": "z"}],
            ],
            "ports": [
                [],
                None,
                [{"port": 80}],
                [{"port": 80}, {"port": 81}],
                [{"name": "BAD_", "port": 70000, "protocol": "Odd"}],
                [{"name": "a", "port": 80, "appProtocol": "http"}],
            ],
        },
        group="discovery.k8s.io",
    ),
)

_CONFIGURATION: Final = (
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

_CLUSTER_WIDE: Final = (
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

OPERATED: Final = (*_WORKLOADS, *_NETWORK, *_CONFIGURATION, *_CLUSTER_WIDE)
