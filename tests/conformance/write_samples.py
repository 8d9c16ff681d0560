"""An object of every built-in kind that is stored, with fields of its spec and status that a write could change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]
Marks = Mapping[str, Sequence[Any]]
"""Two values for a field, by its path."""

_TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
_SELECTOR = {"matchLabels": {"a": "b"}}
_JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}, "suspend": True}
_NOBODYS = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}
_HOOK = {
    "name": "hook.example.com",
    "clientConfig": {"url": "https://localhost:1/"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [_NOBODYS],
    "failurePolicy": "Ignore",
}
_REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIUU1IZ0NBUUF3RmpFVU1CSUdBMVVFQXd3TFpYaGhiWEJzWlM1amIyMHdXVEFUQmdjcWhr"
    "ak9QUUlCQmdncQpoa2pPUFFNQkJ3TkNBQVJITjhqMUpVaWVxM1lIeFNDN2xvM2hRejZ6YXRPbm91QUd1VTNiZ3k5OWZVbUJZWnRiClpKZjBLQk1KaWpzdnNT"
    "UFN4YkdnaG52djNOMVlabENjWGhMd29BQXdDZ1lJS29aSXpqMEVBd0lEU0FBd1JRSWcKZlA1R2hmOE84cUxjazJMRlYwQkk1cHdPU3Zrb1ltZmFvemQ4ZkNn"
    "elh1QUNJUURkOU1sL0lUZWdMNmE2dGJBOApwdlhyRVY0S0ViTTJYMS9mYzR2WFl3cml0Zz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="
)
_CONDITION = {
    "type": "Odd",
    "status": "True",
    "reason": "One",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_CONDITIONS = ([_CONDITION], [{**_CONDITION, "status": "False"}])
_DECIDED = tuple([{"type": kind, "status": "True", "reason": "r"}] for kind in ("Approved", "Odd"))
_DEVICES = {"requests": [{"name": "r", "exactly": {"deviceClassName": "none"}}]}


class Sample(NamedTuple):
    """One kind. Cluster-wide objects are named after a namespace, unless `name` says how."""

    kind: str
    plural: str
    body: Json
    marks: Marks
    status: Marks = {}
    parts: Mapping[str, Marks] = {}
    """Subresources beside `status` that take writes, with fields of their own."""
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    name: str = "{}"

    @property
    def title(self) -> str:
        return f"{self.api_version} {self.kind}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str) -> str:
        root = f"/apis/{self.api_version}" if self.group else "/api/v1"
        return f"{root}/namespaces/{namespace}/{self.plural}" if self.namespaced else f"{root}/{self.plural}"

    def object(self, namespace: str, stem: str = "") -> Json:
        """An object in that namespace; its name begins with the stem, or else with the namespace's."""
        stem = stem or namespace
        body = _filled(self.body, {"{ns}": namespace, "{}": stem})
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": self.name.format(stem)}, **body}


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    """The value with words in the places that are left for them."""
    if isinstance(value, dict):
        return {name: _filled(each, words) for name, each in value.items()}
    return words.get(value, value.replace("{}.", f"{words['{}']}.")) if isinstance(value, str) else value


_CORE = (
    Sample("ConfigMap", "configmaps", {"data": {"a": "1"}}, {"data.a": ("1", "2")}),
    Sample(
        "Endpoints",
        "endpoints",
        {"subsets": [{"addresses": [{"ip": "10.1.1.1"}]}]},
        {"subsets": ([], [{"addresses": [{"ip": "10.1.1.2"}]}])},
    ),
    Sample(
        "LimitRange",
        "limitranges",
        {"spec": {"limits": []}},
        {"spec.limits": ([], [{"type": "Pod", "max": {"cpu": "1"}}])},
    ),
    Sample(
        "Namespace",
        "namespaces",
        {},
        {"spec.finalizers": (["kubernetes"], ["kubernetes", "x.example.com/a"])},
        {"status.conditions": _CONDITIONS},
        {"finalize": {"status.conditions": _CONDITIONS}},
        namespaced=False,
        name="{}-w",
    ),
    Sample(
        "Node",
        "nodes",
        {"spec": {"unschedulable": True}},
        {"spec.unschedulable": (True, False)},
        {"status.capacity": ({"cpu": "1"}, {"cpu": "2"}), "status.phase": ("Pending", "Running")},
        namespaced=False,
    ),
    Sample(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "none",
            }
        },
        {"spec.volumeName": ("none", "other")},
        {"status.capacity": ({"storage": "1Gi"}, {"storage": "2Gi"})},
    ),
    Sample(
        "PersistentVolume",
        "persistentvolumes",
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/a"},
                "storageClassName": "none",
            }
        },
        {"spec.persistentVolumeReclaimPolicy": ("Retain", "Delete")},
        {"status.message": ("one", "two")},
        namespaced=False,
    ),
    Sample(
        "Pod",
        "pods",
        {
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                "schedulerName": "nobody",
            }
        },
        {"spec.activeDeadlineSeconds": (90, 80)},
        {"status.message": ("one", "two"), "status.reason": ("one", "two")},
        {
            "ephemeralcontainers": {
                "spec.ephemeralContainers": ([{"name": "e", "image": "i", "terminationMessagePolicy": "File"}], [])
            },
            "resize": {
                "spec.containers": (
                    [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}],
                    [{"name": "c", "image": "j", "resources": {"requests": {"cpu": "1"}}}],
                )
            },
        },
    ),
    Sample("PodTemplate", "podtemplates", {"template": _TEMPLATE}, {"template.spec.hostname": ("a", "b")}),
    Sample(
        "ReplicationController",
        "replicationcontrollers",
        {"spec": {"replicas": 0, "selector": {"a": "b"}, "template": _TEMPLATE}},
        {"spec.minReadySeconds": (1, 2)},
        {"status.observedGeneration": (70, 80)},
        {"scale": {"status.replicas": (3, 4)}},
    ),
    Sample(
        "ResourceQuota",
        "resourcequotas",
        {"spec": {"hard": {"pods": "10"}}},
        {"spec.hard.pods": ("10", "20")},
        {"status.used": ({"services": "3"}, {"services": "4"})},
    ),
    Sample("Secret", "secrets", {"data": {"a": "eA=="}}, {"data.a": ("eA==", "eQ=="), "type": ("Opaque", "x.io/b")}),
    Sample(
        "Service",
        "services",
        {"spec": {"ports": [{"port": 80}]}},
        {"spec.sessionAffinity": ("None", "ClientIP")},
        {"status.conditions": _CONDITIONS},
    ),
    Sample("ServiceAccount", "serviceaccounts", {}, {"automountServiceAccountToken": (True, False)}),
    Sample(
        "Event",
        "events",
        {"involvedObject": {"namespace": "{ns}"}, "reason": "r", "count": 1},
        {"count": (1, 2)},
    ),
)
_ADMISSION = "admissionregistration.k8s.io"
_ADMITTING = (
    Sample(
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        {
            "spec": {
                "reinvocationPolicy": "Never",
                "matchConstraints": {"resourceRules": [_NOBODYS]},
                "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
            }
        },
        {"spec.failurePolicy": ("Ignore", "Fail")},
        group=_ADMISSION,
        namespaced=False,
    ),
    Sample(
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        {"spec": {"policyName": "none"}},
        {"spec.policyName": ("none", "other")},
        group=_ADMISSION,
        namespaced=False,
    ),
    Sample(
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        {"spec": {"matchConstraints": {"resourceRules": [_NOBODYS]}, "validations": [{"expression": "true"}]}},
        {"spec.failurePolicy": ("Ignore", "Fail")},
        {"status.conditions": _CONDITIONS},
        group=_ADMISSION,
        namespaced=False,
    ),
    Sample(
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        {"spec": {"policyName": "none", "validationActions": ["Audit"]}},
        {"spec.validationActions": (["Audit"], ["Warn"])},
        group=_ADMISSION,
        namespaced=False,
    ),
    Sample(
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        {"webhooks": [_HOOK]},
        {"webhooks": ([_HOOK], [{**_HOOK, "timeoutSeconds": 3}])},
        group=_ADMISSION,
        namespaced=False,
    ),
    Sample(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        {"webhooks": [_HOOK]},
        {"webhooks": ([_HOOK], [{**_HOOK, "timeoutSeconds": 3}])},
        group=_ADMISSION,
        namespaced=False,
    ),
)
_VERSIONED = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
_EXTENDING = (
    Sample(
        "CustomResourceDefinition",
        "customresourcedefinitions",
        {
            "spec": {
                "group": "written.example.com",
                "scope": "Namespaced",
                "names": {"plural": "{}", "kind": "Written"},
                "versions": [_VERSIONED],
            }
        },
        {"spec.names.shortNames": (["wri"], ["writ"])},
        {"status.storedVersions": (["v1"], ["v1", "v2"]), "status.acceptedNames.singular": ("a", "b")},
        group="apiextensions.k8s.io",
        namespaced=False,
        name="{}.written.example.com",
    ),
    Sample(
        "APIService",
        "apiservices",
        {
            "spec": {
                "group": "{}.example.com",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "service": {"namespace": "default", "name": "none"},
                "insecureSkipTLSVerify": True,
            }
        },
        {"spec.versionPriority": (10, 11)},
        {"status.conditions": _CONDITIONS},
        group="apiregistration.k8s.io",
        namespaced=False,
        name="v1.{}.example.com",
    ),
)
_APPS = (
    Sample(
        "ControllerRevision",
        "controllerrevisions",
        {"revision": 1, "data": {"a": 1}},
        {"revision": (1, 2)},
        group="apps",
    ),
    Sample(
        "DaemonSet",
        "daemonsets",
        {
            "spec": {
                "selector": _SELECTOR,
                "template": {**_TEMPLATE, "spec": {**_TEMPLATE["spec"], "nodeSelector": {"no": "where"}}},
            }
        },
        {"spec.minReadySeconds": (1, 2)},
        {"status.collisionCount": (3, 4)},
        group="apps",
    ),
    Sample(
        "Deployment",
        "deployments",
        {"spec": {"replicas": 0, "paused": True, "selector": _SELECTOR, "template": _TEMPLATE}},
        {"spec.minReadySeconds": (1, 2)},
        {"status.collisionCount": (3, 4)},
        {"scale": {"status.replicas": (3, 4)}},
        group="apps",
    ),
    Sample(
        "ReplicaSet",
        "replicasets",
        {"spec": {"replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE}},
        {"spec.minReadySeconds": (1, 2)},
        {"status.conditions": tuple([{"type": "Odd", "status": each}] for each in ("True", "False"))},
        {"scale": {"status.replicas": (3, 4)}},
        group="apps",
    ),
    Sample(
        "StatefulSet",
        "statefulsets",
        {"spec": {"replicas": 0, "serviceName": "s", "selector": _SELECTOR, "template": _TEMPLATE}},
        {"spec.minReadySeconds": (1, 2)},
        {"status.conditions": tuple([{"type": "Odd", "status": each}] for each in ("True", "False"))},
        {"scale": {"status.replicas": (3, 4)}},
        group="apps",
    ),
    Sample(
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            }
        },
        {"spec.maxReplicas": (3, 4)},
        {"status.desiredReplicas": (3, 4)},
        group="autoscaling",
        version="v2",
    ),
    Sample(
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            }
        },
        {"spec.maxReplicas": (3, 4)},
        {"status.desiredReplicas": (3, 4)},
        group="autoscaling",
    ),
    Sample(
        "CronJob",
        "cronjobs",
        {"spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": _JOB}}},
        {"spec.schedule": ("0 0 1 1 *", "0 0 2 1 *")},
        {"status.lastSuccessfulTime": ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")},
        group="batch",
    ),
    Sample(
        "Job",
        "jobs",
        {"spec": _JOB},
        {"spec.parallelism": (1, 2)},
        {"status.conditions": tuple([{"type": "Odd", "status": each}] for each in ("True", "False"))},
        group="batch",
    ),
)
_OTHERS = (
    Sample(
        "CertificateSigningRequest",
        "certificatesigningrequests",
        {"spec": {"signerName": "example.com/signer", "usages": ["digital signature"], "request": _REQUEST}},
        {"spec.usages": (["digital signature"], ["client auth"]), "spec.username": ("eve", "eva")},
        {"status.conditions": _DECIDED, "status.certificate": ("eA==", "eQ==")},
        {"approval": {"status.conditions": _DECIDED, "status.certificate": ("eA==", "eQ==")}},
        group="certificates.k8s.io",
        namespaced=False,
    ),
    Sample(
        "Lease",
        "leases",
        {"spec": {"holderIdentity": "a"}},
        {"spec.holderIdentity": ("a", "b")},
        group="coordination.k8s.io",
    ),
    Sample(
        "EndpointSlice",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}]},
        {"endpoints": ([{"addresses": ["10.1.1.1"]}], [{"addresses": ["10.1.1.2"]}])},
        group="discovery.k8s.io",
    ),
    Sample(
        "Event",
        "events",
        {
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reason": "r",
            "action": "a",
            "type": "Normal",
            "reportingController": "x.io/c",
            "reportingInstance": "i",
            "regarding": {"namespace": "{ns}"},
        },
        {
            "series": tuple({"count": n, "lastObservedTime": "2026-01-01T00:00:00.000000Z"} for n in (2, 3)),
            "note": ("a", "b"),
        },
        group="events.k8s.io",
        name="{}-e",
    ),
    Sample(
        "FlowSchema",
        "flowschemas",
        {"spec": {"priorityLevelConfiguration": {"name": "catch-all"}}},
        {"spec.matchingPrecedence": (1000, 1001)},
        {"status.conditions": _CONDITIONS},
        group="flowcontrol.apiserver.k8s.io",
        namespaced=False,
    ),
    Sample(
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}},
        {"spec.limited.nominalConcurrencyShares": (1, 2)},
        {"status.conditions": _CONDITIONS},
        group="flowcontrol.apiserver.k8s.io",
        namespaced=False,
    ),
    Sample(
        "Ingress",
        "ingresses",
        {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
        {"spec.ingressClassName": ("a", "b")},
        {"status.loadBalancer.ingress": ([{"ip": "10.1.1.1"}], [{"ip": "10.1.1.2"}])},
        group="networking.k8s.io",
    ),
    Sample(
        "IngressClass",
        "ingressclasses",
        {"spec": {"controller": "x.io/c"}},
        {"spec.parameters": tuple({"kind": "A", "name": each, "scope": "Cluster"} for each in "ab")},
        group="networking.k8s.io",
        namespaced=False,
    ),
    Sample(
        "IPAddress",
        "ipaddresses",
        {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "x"}}},
        {"spec.parentRef.name": ("x", "y")},
        group="networking.k8s.io",
        namespaced=False,
        name="10.99.0.7",
    ),
    Sample(
        "NetworkPolicy",
        "networkpolicies",
        {"spec": {"podSelector": {}}},
        {"spec.podSelector": ({"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "c"}})},
        group="networking.k8s.io",
    ),
    Sample(
        "ServiceCIDR",
        "servicecidrs",
        {"spec": {"cidrs": ["10.99.0.0/24"]}},
        {"spec.cidrs": (["10.99.0.0/24"], ["10.98.0.0/24"])},
        {"status.conditions": _CONDITIONS},
        group="networking.k8s.io",
        namespaced=False,
    ),
    Sample(
        "RuntimeClass",
        "runtimeclasses",
        {"handler": "h"},
        {"scheduling": ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "c"}})},
        group="node.k8s.io",
        namespaced=False,
    ),
    Sample(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"no": "body"}}}},
        {"spec.minAvailable": (1, 2)},
        {"status.disruptionsAllowed": (3, 4)},
        group="policy",
    ),
)
_RBAC = "rbac.authorization.k8s.io"
_RULES = tuple([{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}] for verb in ("get", "list"))
_SUBJECTS = tuple([{"kind": "User", "name": name, "apiGroup": _RBAC}] for name in ("a", "b"))
_STORAGE = "storage.k8s.io"
_RESOURCE = "resource.k8s.io"
_MORE = (
    Sample("ClusterRole", "clusterroles", {"rules": []}, {"rules": _RULES}, group=_RBAC, namespaced=False),
    Sample("Role", "roles", {"rules": []}, {"rules": _RULES}, group=_RBAC),
    Sample(
        "ClusterRoleBinding",
        "clusterrolebindings",
        {"roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": _RBAC}},
        {"subjects": _SUBJECTS, "roleRef.name": ("view", "edit")},
        group=_RBAC,
        namespaced=False,
    ),
    Sample(
        "RoleBinding",
        "rolebindings",
        {"roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": _RBAC}},
        {"subjects": _SUBJECTS, "roleRef.name": ("view", "edit")},
        group=_RBAC,
    ),
    Sample(
        "DeviceClass",
        "deviceclasses",
        {"spec": {}},
        {"spec.extendedResourceName": ("x.io/a", "x.io/b")},
        group=_RESOURCE,
        namespaced=False,
    ),
    Sample(
        "ResourceClaim",
        "resourceclaims",
        {"spec": {"devices": _DEVICES}},
        {"spec.devices.requests": (_DEVICES["requests"], [{"name": "s", "exactly": {"deviceClassName": "none"}}])},
        {"status.allocation": ({"devices": {}}, {"devices": {"results": []}})},
        group=_RESOURCE,
    ),
    Sample(
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        {"spec": {"spec": {"devices": _DEVICES}}},
        {"spec.metadata.labels": ({"a": "b"}, {"a": "c"})},
        group=_RESOURCE,
    ),
    Sample(
        "ResourceSlice",
        "resourceslices",
        {
            "spec": {
                "driver": "d.example.com",
                "allNodes": True,
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "a"}],
            }
        },
        {"spec.devices": ([{"name": "a"}], [{"name": "b"}])},
        group=_RESOURCE,
        namespaced=False,
    ),
    Sample(
        "PriorityClass",
        "priorityclasses",
        {"value": 5},
        {"description": ("a", "b"), "value": (5, 6)},
        group="scheduling.k8s.io",
        namespaced=False,
    ),
    Sample(
        "CSIDriver",
        "csidrivers",
        {"spec": {}},
        {"spec.requiresRepublish": (True, False)},
        group=_STORAGE,
        namespaced=False,
    ),
    Sample(
        "CSINode",
        "csinodes",
        {"spec": {"drivers": []}},
        {"spec.drivers": ([], [{"name": "d", "nodeID": "n"}])},
        group=_STORAGE,
        namespaced=False,
    ),
    Sample(
        "CSIStorageCapacity",
        "csistoragecapacities",
        {"storageClassName": "fast", "capacity": "1Gi"},
        {"capacity": ("1Gi", "2Gi")},
        group=_STORAGE,
    ),
    Sample(
        "StorageClass",
        "storageclasses",
        {"provisioner": "x.io/p"},
        {"allowVolumeExpansion": (True, False), "provisioner": ("x.io/p", "x.io/q")},
        group=_STORAGE,
        namespaced=False,
    ),
    Sample(
        "VolumeAttachment",
        "volumeattachments",
        {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}},
        {"spec.nodeName": ("n", "m")},
        {"status.attached": (True, False)},
        group=_STORAGE,
        namespaced=False,
    ),
    Sample(
        "VolumeAttributesClass",
        "volumeattributesclasses",
        {"driverName": "x.io.d", "parameters": {"a": "b"}},
        {"driverName": ("x.io.d", "x.io.e")},
        group=_STORAGE,
        namespaced=False,
    ),
)
SAMPLES: Sequence[Sample] = (*_CORE, *_ADMITTING, *_EXTENDING, *_APPS, *_OTHERS, *_MORE)
