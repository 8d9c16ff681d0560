"""Sequences about what patches can say beside values: the directives of kubectl, and the ways of JSON patches."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any, Final

from differential.steps import PATCHES, Json, Step

_CONTAINERS: Final = [
    {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
    {"name": "d", "image": "j", "ports": [{"containerPort": 80}, {"containerPort": 81}]},
]
_HEAD: Final[Json] = {
    "name": "a",
    "labels": {"a": "1", "x.io/b": "2"},
    "annotations": {"n": "1"},
    "finalizers": ["x.io/a", "x.io/b"],
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "u-2"},
    ],
}
_ORDER: Final = [{"name": "d"}, {"name": "c"}]
_METADATA: Final[list[Json]] = [
    {"labels": {"$patch": "replace", "a": "3"}},
    {"labels": {"$patch": "delete"}},
    {"labels": {"a": None, "c": "4"}},
    {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]},
    {"$setElementOrder/finalizers": ["x.io/b", "x.io/a"], "finalizers": ["x.io/a"]},
    {"$setElementOrder/finalizers": ["x.io/c", "x.io/b", "x.io/a"], "finalizers": ["x.io/c"]},
    {"finalizers": ["x.io/c"]},
    {"finalizers": None},
    {"ownerReferences": [{"uid": "u-1", "$patch": "delete"}]},
    {"ownerReferences": [{"uid": "u-1", "controller": True}]},
    {"$setElementOrder/ownerReferences": [{"uid": "u-2"}, {"uid": "u-1"}]},
    {"ownerReferences": [{"$patch": "replace"}]},
    {"annotations": {"$retainKeys": ["m"], "m": "1"}},
    {"labels": {"$patch": "odd"}},
    {"ownerReferences": [{"$patch": "delete"}]},
    {"$deleteFromPrimitiveList/finalizers": "x"},
    {"$setElementOrder/finalizers": "x"},
]
_POD_SPEC: Final[list[Json]] = [
    {"containers": [{"name": "d", "$patch": "delete"}]},
    {"$setElementOrder/containers": _ORDER, "containers": [{"name": "c", "image": "k"}]},
    {"$setElementOrder/containers": [*_ORDER, {"name": "e"}], "containers": [{"name": "e", "image": "l"}]},
    {"containers": [{"$patch": "replace"}, {"name": "e", "image": "l"}]},
    {"containers": [{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}]},
    {"containers": [{"name": "c", "env": [{"name": "C", "value": "3"}], "$setElementOrder/env": [{"name": "C"}]}]},
    {"containers": [{"name": "d", "ports": [{"containerPort": 81, "protocol": "UDP"}]}]},
    {"containers": [{"name": "d", "ports": [{"containerPort": 80, "$patch": "delete"}]}]},
    {"containers": [{"name": "c", "env": None}]},
    {"volumes": [{"name": "v", "emptyDir": {}}]},
    {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}]},
    {"volumes": [{"name": "v", "configMap": {"name": "m"}}]},
    {"tolerations": [{"key": "a", "operator": "Exists"}]},
    {"nodeSelector": {"$patch": "replace", "a": "b"}},
    {"containers": [{"image": "x"}]},
    {"containers": [{"name": "none", "$patch": "delete"}]},
    {"containers": {"name": "c"}},
    {"$setElementOrder/containers": [{"name": "none"}]},
    {"containers": [{"name": "c", "$patch": "odd"}]},
    {"$patch": "replace", "containers": [{"name": "c", "image": "i"}]},
]
_DEPLOYMENT: Final[list[Json]] = [
    {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
    {"strategy": {"type": "Recreate"}},
    {"strategy": {"$retainKeys": ["type", "rollingUpdate"], "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}},
    {"strategy": {"$patch": "replace", "type": "Recreate"}},
    {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}},
    {"replicas": None},
    {"$patch": "delete"},
]
_SERVICE: Final[list[Json]] = [
    {"ports": [{"port": 80, "$patch": "delete"}]},
    {"ports": [{"port": 81, "targetPort": 8081}]},
    {"ports": [{"port": 82, "name": "c"}]},
    {"$setElementOrder/ports": [{"port": 81}, {"port": 80}], "ports": [{"port": 80, "name": "z"}]},
    {"ports": [{"$patch": "replace"}, {"port": 90}]},
    {"selector": {"$patch": "replace", "x": "y"}},
    {"selector": {"app": None}},
    {"ports": [{"name": "a"}]},
]
_DATA: Final[list[Json]] = [
    {"$patch": "replace", "x": "y"},
    {"$retainKeys": ["k"], "k": "w"},
    {"k": None},
    {"$patch": "delete"},
    {"l": {"$patch": "delete"}},
    {"$patch": "merge", "m": "n"},
]
_OPERATIONS: Final[list[Json]] = [
    {"op": "add", "path": "/metadata/labels/x.io~1a", "value": "1"},
    {"op": "replace", "path": "/metadata/labels/x.io~1b", "value": "3"},
    {"op": "add", "path": "/metadata/finalizers/-", "value": "x.io/z"},
    {"op": "add", "path": "/metadata/finalizers/0", "value": "x.io/y"},
    {"op": "remove", "path": "/metadata/finalizers/0"},
    {"op": "remove", "path": "/metadata/finalizers/7"},
    {"op": "remove", "path": "/metadata/finalizers/-1"},
    {"op": "replace", "path": "/metadata/finalizers/1", "value": "x.io/w"},
    {"op": "test", "path": "/metadata/name", "value": "a"},
    {"op": "test", "path": "/metadata/labels", "value": {"x.io/b": "2", "a": "1"}},
    {"op": "test", "path": "/metadata/none", "value": None},
    {"op": "test", "path": "/metadata/name", "value": "b"},
    {"op": "move", "from": "/metadata/labels/a", "path": "/metadata/annotations/a"},
    {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/annotations/a~01"},
    {"op": "move", "from": "/metadata/labels", "path": "/metadata/labels/a"},
    {"op": "remove", "path": "/metadata/labels/none"},
    {"op": "add", "path": "/metadata/labels", "value": {}},
    {"op": "add", "path": "/none/deep", "value": 1},
    {"op": "replace", "path": "", "value": {}},
    {"op": "add", "path": "metadata/labels", "value": {}},
    {"op": "odd", "path": "/metadata/labels"},
    {"op": "add", "path": "/metadata/labels/q"},
    {"path": "/metadata/labels"},
]


def _nested(patch: Json, *names: str) -> Json:
    for name in reversed(names):
        patch = {name: patch}
    return patch


_TEMPLATE: Json = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": _CONTAINERS}}
_OBJECTS: Final[list[tuple[str, Json, list[Json]]]] = [
    (
        "/apis/apps/v1/namespaces/$ns/deployments",
        {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}},
        [
            *(_nested(each, "spec", "template", "spec") for each in _POD_SPEC),
            *(_nested(each, "spec") for each in _DEPLOYMENT),
        ],
    ),
    (
        "/api/v1/namespaces/$ns/services",
        {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}},
        [_nested(each, "spec") for each in _SERVICE],
    ),
    ("/api/v1/namespaces/$ns/configmaps", {"data": {"k": "v", "l": "m"}}, [_nested(each, "data") for each in _DATA]),
    (
        "/api/v1/namespaces/$ns/pods",
        {"spec": {"containers": _CONTAINERS}},
        [_nested(each, "spec") for each in _POD_SPEC],
    ),
]


def patch_steps(rng: random.Random) -> list[Step]:
    """An object, and patches of it."""
    path, base, patches = rng.choice(_OBJECTS)
    body = {"metadata": _HEAD, **copy.deepcopy(base)}
    all_patches = [*patches, *(_nested(each, "metadata") for each in _METADATA)]
    return [Step("POST", path, body=body), *(_patch(rng, path, all_patches) for _ in range(rng.randint(3, 9)))]


def _patch(rng: random.Random, path: str, patches: Sequence[Json]) -> Step:
    query = (("fieldManager", rng.choice(["ann", "bob"])),) if rng.random() < 0.4 else ()
    if rng.random() < 0.25:
        operations: Any = rng.choices(_OPERATIONS, k=rng.choice([1, 1, 2, 3]))
        return Step("PATCH", f"{path}/a", query, operations, media_type=PATCHES["json"])
    shape = rng.choice(["strategic"] * 5 + ["merge"])
    return Step("PATCH", f"{path}/a", query, copy.deepcopy(rng.choice(patches)), media_type=PATCHES[shape])
