"""Sequences about parts of objects that have verbs of their own, and about watches: what a list and a write cannot show."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from differential.steps import PATCHES, Json, Step

_PODS: Final = "/api/v1/namespaces/$ns/pods"
_ACCOUNTS: Final = "/api/v1/namespaces/$ns/serviceaccounts"
_BUDGETS: Final = "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets"
_ACCESS: Final = "/apis/authorization.k8s.io/v1"
_POD: Json = {
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}
_BUDGET: Json = {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}}
_EPHEMERAL: Json = {"name": "e", "image": "i"}
_ATTRIBUTES: Json = {"namespace": "$ns", "verb": "get", "resource": "pods"}

Part = Callable[["_Parts"], Step]


def part_steps(rng: random.Random) -> list[Step]:
    """A pod, and what is done to its parts; now and then with a budget, and watched."""
    steps = [Step("POST", _PODS, body=copy.deepcopy(_POD))]
    if rng.random() < 0.4:
        steps.append(Step("POST", _BUDGETS, body=_BUDGET))
    parts = _Parts(rng)
    return steps + [parts.step() for _ in range(rng.randint(3, 9))]


class _Parts:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def step(self) -> Step:
        [make] = self._rng.choices(*zip(*_PARTS, strict=True))
        step: Step = make(self)
        return step

    def pick(self, values: Sequence[Any]) -> Any:
        """Those that come first are the better ones."""
        return copy.deepcopy(values[int(len(values) * self._rng.random() ** 1.5)])

    def query(self) -> tuple[tuple[str, str], ...]:
        """Parameters of a write."""
        chosen = [("dryRun", "All"), ("fieldManager", "ann"), ("fieldValidation", "Strict"), ("dryRun", "Odd")]
        return (self.pick(chosen),) if self._rng.random() < 0.3 else ()

    def of(self, kind: str, api_version: str, name: str = "a", **members: Any) -> Json:
        """An object of that kind; sometimes of another name, or without what it is."""
        metadata = self.pick([{"name": name}] * 6 + [{"name": name, "namespace": "$ns"}, {}, {"name": "other"}, None])
        head = {"apiVersion": api_version, "kind": kind} if self._rng.random() < 0.9 else {}
        return {**head, "metadata": metadata, **members}


def _eviction(parts: _Parts) -> Step:
    options = [
        {},
        {"deleteOptions": {"gracePeriodSeconds": 0}},
        {"deleteOptions": {"preconditions": {"uid": "$uid"}}},
        {"deleteOptions": {"preconditions": {"uid": "other"}}},
        {"deleteOptions": {"propagationPolicy": "Odd"}},
        {"deleteOptions": {"dryRun": ["All"]}},
        {"unheardOf": 1},
    ]
    body = parts.of("Eviction", "policy/v1", **parts.pick(options))
    return Step("POST", f"{_PODS}/{parts.pick(['a', 'a', 'a', 'none'])}/eviction", parts.query(), body)


def _budget_status(parts: _Parts) -> Step:
    status = {
        "disruptionsAllowed": parts.pick([1, 0, 2]),
        "currentHealthy": 1,
        "desiredHealthy": parts.pick([1, 0]),
        "expectedPods": 1,
        "observedGeneration": parts.pick([1, 9, 0]),
    }
    return Step("PATCH", f"{_BUDGETS}/a/status", body={"status": status}, media_type=PATCHES["merge"])


def _pod_status(parts: _Parts) -> Step:
    ready = [{"type": "Ready", "status": parts.pick(["True", "False"])}]
    status = {"phase": parts.pick(["Running", "Pending", "Succeeded", "Failed"]), "conditions": ready}
    return Step("PATCH", f"{_PODS}/a/status", body={"status": status}, media_type=PATCHES["strategic"])


def _binding(parts: _Parts) -> Step:
    targets = [
        {"kind": "Node", "name": "n"},
        {"name": "n"},
        {"kind": "Node", "name": ""},
        {"kind": "Minion", "name": "n"},
        {"kind": "Pod", "name": "n"},
        {},
    ]
    body = parts.of("Binding", "v1", target=parts.pick(targets))
    path = parts.pick([f"{_PODS}/a/binding", f"{_PODS}/a/binding", "/api/v1/namespaces/$ns/bindings"])
    return Step("POST", path, parts.query(), body)


def _ephemeral(parts: _Parts) -> Step:
    added = [
        [_EPHEMERAL],
        [_EPHEMERAL, {"name": "f", "image": "i", "targetContainerName": "c"}],
        [{"name": "c", "image": "i"}],
        [{"name": "e", "image": "j"}],
        [{"name": "e", "image": "i", "ports": [{"containerPort": 80}]}],
        [{"name": "e", "image": "i", "targetContainerName": "none"}],
        [],
        [{"image": "i"}],
    ]
    body = {"spec": {"ephemeralContainers": parts.pick(added)}}
    shape = parts.pick(["strategic", "merge"])
    return Step("PATCH", f"{_PODS}/a/ephemeralcontainers", parts.query(), body, media_type=PATCHES[shape])


def _resize(parts: _Parts) -> Step:
    resources = [
        {"requests": {"cpu": "2"}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        {"requests": {"cpu": "x"}},
        {"requests": {"cpu": None}},
        {},
    ]
    body = {"spec": {"containers": [{"name": parts.pick(["c", "c", "c", "d"]), "resources": parts.pick(resources)}]}}
    return Step("PATCH", f"{_PODS}/a/resize", parts.query(), body, media_type=PATCHES["strategic"])


def _token(parts: _Parts) -> Step:
    specs = [
        {},
        {"audiences": ["x"]},
        {"expirationSeconds": 600},
        {"expirationSeconds": 5},
        {"expirationSeconds": 4294967297},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "a"}},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "a", "uid": "other"}},
        {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "none"}},
        {"boundObjectRef": {"kind": "Odd", "apiVersion": "v1", "name": "none"}},
    ]
    body = parts.of("TokenRequest", "authentication.k8s.io/v1", "default", spec=parts.pick(specs))
    return Step("POST", f"{_ACCOUNTS}/{parts.pick(['default', 'default', 'none'])}/token", parts.query(), body)


def _review(parts: _Parts) -> Step:
    attributes = [
        {"resourceAttributes": _ATTRIBUTES},
        {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
        {"resourceAttributes": {**_ATTRIBUTES, "subresource": "log", "name": "a", "group": "*"}},
        {"resourceAttributes": _ATTRIBUTES, "nonResourceAttributes": {"path": "/x"}},
        {"resourceAttributes": {**_ATTRIBUTES, "fieldSelector": {"rawSelector": "a=b"}}},
        {},
    ]
    spec = parts.pick(attributes)
    kind = parts.pick(["SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"])
    if not kind.startswith("Self"):
        spec |= parts.pick(
            [{"user": "u"}, {"user": "system:serviceaccount:$ns:default"}, {"groups": ["system:masters"]}, {}]
        )
    base = f"{_ACCESS}/namespaces/$ns" if kind.startswith("Local") else _ACCESS
    namespace = {"metadata": {"namespace": "$ns"}} if kind.startswith("Local") else {}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, **namespace, "spec": spec}
    return Step("POST", f"{base}/{kind.lower()}s", parts.query(), body)


def _watch(parts: _Parts) -> Step:
    parameters = [
        [("resourceVersion", "$listed")],
        [("labelSelector", "app=a"), ("resourceVersion", "$listed")],
        [("fieldSelector", "status.phase=Running"), ("resourceVersion", "$listed")],
        [("resourceVersion", "0")],
        [],
        [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"), ("allowWatchBookmarks", "true")],
        [("sendInitialEvents", "false"), ("resourceVersionMatch", "NotOlderThan"), ("resourceVersion", "$listed")],
        [("sendInitialEvents", "true")],
        [("resourceVersionMatch", "Exact")],
        [("labelSelector", "a=b=c")],
        [("fieldSelector", "spec.none=x")],
        [("timeoutSeconds", "x")],
        [("limit", "1"), ("resourceVersion", "$listed")],
    ]
    query = (("watch", "true"), ("timeoutSeconds", "1"), *parts.pick(parameters))
    path = parts.pick([_PODS, _PODS, "/api/v1/watch/namespaces/$ns/pods"])
    return Step("GET", path, query)


def _impersonation(parts: _Parts) -> Step:
    """As somebody else, who may or may not do it."""
    names = [
        [("Impersonate-User", "u")],
        [("Impersonate-User", "u"), ("Impersonate-Group", "system:masters")],
        [("Impersonate-User", "system:serviceaccount:$ns:default")],
        [("Impersonate-User", "system:anonymous")],
        [("Impersonate-User", "u"), ("Impersonate-Extra-Reason", "x")],
        [("Impersonate-User", "u"), ("Impersonate-Uid", "1")],
        [("Impersonate-Group", "system:masters")],
    ]
    asked = [
        Step("GET", _PODS),
        Step("GET", f"{_PODS}/a"),
        Step("DELETE", f"{_PODS}/a"),
        Step("POST", _PODS, body=_POD),
        Step("GET", "/api/v1/nodes"),
        Step("GET", "/healthz"),
        Step("GET", "/apis/fuzz.example.com/v1/namespaces/$ns/widgets", (("watch", "true"),)),
        Step("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body={}),
        Step("PATCH", f"{_PODS}/a/status", body={}, media_type=PATCHES["merge"]),
    ]
    step: Step = parts.pick(asked)
    if ("watch", "true") in step.query:
        return replace(step, impersonating=(("Impersonate-User", "u"),))
    return replace(step, impersonating=tuple(parts.pick(names)))


def _deletion(parts: _Parts) -> Step:
    return Step("DELETE", f"{_PODS}/a", body=parts.pick([{"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 5}, None]))


def _creation(_parts: _Parts) -> Step:
    return Step("POST", _PODS, body=copy.deepcopy(_POD))


_PARTS: Final[tuple[tuple[Part, int], ...]] = (
    (_eviction, 4),
    (_budget_status, 2),
    (_pod_status, 3),
    (_binding, 3),
    (_ephemeral, 3),
    (_resize, 3),
    (_token, 2),
    (_review, 2),
    (_watch, 3),
    (_impersonation, 4),
    (_deletion, 1),
    (_creation, 2),
)
