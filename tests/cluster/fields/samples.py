"""An object of every common kind."""

from __future__ import annotations

from cluster.fields.replay import BUILTINS, Json

__all__ = ["SAMPLES", "labelled", "sample"]

_CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_CONTAINER]}}
_JOB_TEMPLATE = {"spec": {"containers": [_CONTAINER], "restartPolicy": "Never"}}
_SELECTOR = {"matchLabels": {"a": "b"}}
_WORK = {"spec": {"replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

SAMPLES: dict[str, Json] = {
    "statefulsets": {"spec": {**_WORK["spec"], "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": _CLAIM}]}},
    "daemonsets": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "replicasets": _WORK,
    "jobs": {
        "spec": {
            "suspend": True,
            "manualSelector": True,
            "selector": _SELECTOR,
            "template": {**_JOB_TEMPLATE, "metadata": {"labels": {"a": "b"}}},
        }
    },
    "cronjobs": {
        "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"template": _JOB_TEMPLATE}}}
    },
    "ingresses": {
        "spec": {
            "rules": [
                {
                    "host": "a.b",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"number": 1}}},
                            }
                        ]
                    },
                }
            ],
            "tls": [{"hosts": ["a.b"]}],
        }
    },
    "networkpolicies": {"spec": {"podSelector": _SELECTOR, "ingress": [{"ports": [{"port": 80}]}]}},
    "poddisruptionbudgets": {"spec": {"minAvailable": 1, "selector": _SELECTOR}},
    "horizontalpodautoscalers": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}}
    },
    "roles": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "rolebindings": {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "default"}],
    },
    "serviceaccounts": {"imagePullSecrets": [{"name": "s"}]},
    "secrets": {"data": {"a": "YQ=="}, "stringData": {"b": "c"}},
    "persistentvolumeclaims": {"spec": _CLAIM},
    "resourcequotas": {"spec": {"hard": {"pods": "100"}}},
    "limitranges": {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}},
    "endpointslices": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.1.1"]}],
        "ports": [{"port": 80, "name": "p"}],
    },
    "leases": {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 3}},
    "events": {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "R", "message": "m"},
    "podtemplates": {"template": _TEMPLATE},
    "replicationcontrollers": {"spec": {"replicas": 0, "selector": {"a": "b"}, "template": _TEMPLATE}},
    "controllerrevisions": {"revision": 1, "data": {"a": {"b": None, "c": [1]}}},
}
"""What each has beside its name, by the plural of its kind."""


def sample(plural: str, more: Json) -> Json:
    """An object of that kind which has this beside its name."""
    group, version, kind = BUILTINS[plural]
    names = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind}
    return {**names, "metadata": {"name": "sample", "namespace": "default"}, **more}


def labelled(plural: str) -> Json:
    """The same object with nothing but a label."""
    return sample(plural, {"metadata": {"name": "sample", "namespace": "default", "labels": {"x": "y"}}})
