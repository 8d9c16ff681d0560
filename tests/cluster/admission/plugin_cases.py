"""What the built-in parts of admission do to objects."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from cluster.admission.engines import Answered, Engine

Json = dict[str, Any]
DEFAULT = "/api/v1/namespaces/default"
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


class Step(NamedTuple):
    """One creation; `shown` are the paths of its answer that are compared."""

    name: str
    path: str
    body: Json
    shown: tuple[str, ...] = ()
    settles: bool = False
    """Whether the real server needs a moment to learn of it."""


def _pod(name: str, spec: Json | None = None, shown: tuple[str, ...] = (), **container: Any) -> Step:
    containers = [{"name": "c", "image": "x", **container}]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}
    body["spec"].update(spec or {})  # type: ignore[attr-defined]  # a dict
    return Step(name, f"{DEFAULT}/pods", body, shown)


def _made(name: str, path: str, api_version: str, kind: str, **rest: Any) -> Step:
    metadata = {"name": name, **rest.pop("metadata", {})}
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
    return Step(f"{kind} {name}", path, body, settles=True)


def _priority(name: str, **rest: Any) -> Step:
    return _made(name, _PRIORITIES, "scheduling.k8s.io/v1", "PriorityClass", **{"value": 100, **rest})


def _class(name: str, default: str, **rest: Any) -> Step:
    metadata = {"annotations": {"storageclass.kubernetes.io/is-default-class": default}}
    return _made(name, _STORAGE, "storage.k8s.io/v1", "StorageClass", metadata=metadata, provisioner="x/y", **rest)


def _claim(name: str, size: str = "3Gi", **spec: Any) -> Step:
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
    }
    return Step(f"claim {name}", f"{DEFAULT}/persistentvolumeclaims", body, ("spec.storageClassName",))


_RESOURCES = ("spec.containers.0.resources", "metadata.annotations")
_PRIORITY = ("spec.priority", "spec.priorityClassName", "spec.preemptionPolicy")
_QUIET = _made(
    "quiet",
    f"{DEFAULT}/serviceaccounts",
    "v1",
    "ServiceAccount",
    automountServiceAccountToken=False,
    imagePullSecrets=[{"name": "pull"}],
)
_LIMITS = _made(
    "limits",
    f"{DEFAULT}/limitranges",
    "v1",
    "LimitRange",
    spec={
        "limits": [
            {
                "type": "Container",
                "default": {"cpu": "500m", "memory": "1Gi"},
                "defaultRequest": {"cpu": "100m", "memory": "1Gi"},
                "max": {"cpu": "1"},
                "min": {"cpu": "50m"},
                "maxLimitRequestRatio": {"memory": "2"},
            },
            {"type": "Pod", "max": {"cpu": "1500m"}},
            {"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}, "min": {"storage": "2Gi"}},
        ]
    },
)


def _tolerating(name: str, **toleration: str) -> Step:
    return _pod(name, {"tolerations": [toleration]}, ("spec.tolerations",))


STEPS: list[Step] = [
    _pod("plain", shown=("spec",)),
    _pod("account-missing", {"serviceAccountName": "nope"}),
    _pod("account-old-field", {"serviceAccount": "default"}, ("spec.serviceAccountName", "spec.serviceAccount")),
    _pod("no-token", {"automountServiceAccountToken": False}, ("spec.volumes", "spec.containers")),
    _pod("initial", {"initContainers": [{"name": "i", "image": "x"}]}, ("spec.initContainers",)),
    _pod(
        "own-mount",
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        ("spec.volumes", "spec.containers"),
        volumeMounts=[{"name": "v", "mountPath": _TOKEN}],
    ),
    _QUIET,
    _pod("quiet", {"serviceAccountName": "quiet"}, ("spec.volumes", "spec.imagePullSecrets")),
    _pod(
        "quiet-mounted",
        {"serviceAccountName": "quiet", "automountServiceAccountToken": True, "imagePullSecrets": [{"name": "mine"}]},
        ("spec.volumes", "spec.imagePullSecrets"),
    ),
    _tolerating("tolerates-one", key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"),
    _tolerating("tolerates-all", operator="Exists"),
    _tolerating("tolerates-no-execute", operator="Exists", effect="NoExecute"),
    _tolerating("tolerates-other", operator="Exists", effect="NoSchedule"),
    _pod("priority-missing", {"priorityClassName": "nope"}),
    _pod("priority-system", {"priorityClassName": "system-node-critical"}, _PRIORITY),
    _pod("priority-number", {"priority": 5}),
    _pod("priority-zero", {"priority": 0}, _PRIORITY),
    _priority("high", preemptionPolicy="Never"),
    _pod("priority-high", {"priorityClassName": "high"}, _PRIORITY),
    _pod("priority-other", {"priorityClassName": "high", "priority": 5}),
    _pod("priority-preempts", {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}),
    _priority("usual", globalDefault=True, value=7),
    _priority("second", globalDefault=True, value=9),
    _pod("priority-usual", shown=_PRIORITY),
    _claim("no-class"),
    _class("fixed", "true"),
    _class("growing", "true", allowVolumeExpansion=True),
    _class("other", "false"),
    _claim("by-default"),
    _claim("empty-class", storageClassName=""),
    _claim("fixed", storageClassName="fixed"),
    _LIMITS,
    _pod("limited", shown=_RESOURCES),
    _pod("limited-in-part", shown=_RESOURCES, resources={"limits": {"cpu": "200m"}}),
    _pod("limited-too-much", resources={"limits": {"cpu": "2"}}),
    _pod("limited-too-little", resources={"requests": {"cpu": "10m"}}),
    _pod("limited-ratio", resources={"requests": {"memory": "100Mi"}, "limits": {"memory": "1Gi"}}),
    _pod(
        "limited-together",
        {"containers": [{"name": n, "image": "x", "resources": {"limits": {"cpu": "1"}}} for n in ("a", "b")]},
    ),
    _claim("too-small", "1Gi"),
    _claim("too-large", "11Gi"),
]


async def take(engine: Engine, step: Step) -> Answered:
    """Sends a request."""
    return await engine.ask("POST", step.path, step.body)


def compared(step: Step, answer: Answered) -> list[Any]:
    """What of an answer is the same in every run."""
    if answer.code >= 300:
        return [answer.code, {key: answer.body.get(key) for key in ("message", "reason", "details")}]
    return [answer.code, {path: _steady(_at(answer.body, path)) for path in step.shown}]


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else (value or {}).get(part)
    return value


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_steady(each) for each in value]
    return re.sub(r"^kube-api-access-\w{5}$", "kube-api-access-*", value) if isinstance(value, str) else value
