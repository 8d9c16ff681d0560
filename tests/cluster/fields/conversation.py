"""Patches of every media type, good and bad, to be sent to one object of a kind."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cluster.fields.replay import MEDIA_TYPES, Json

STRATEGIC, MERGE, JSON_PATCH = MEDIA_TYPES["strategic"], MEDIA_TYPES["merge"], MEDIA_TYPES["json"]


class Patch(NamedTuple):
    """A request: nothing is stored by it."""

    plural: str
    media_type: str
    body: str
    field_validation: str = "Warn"


OBJECTS: dict[str, Json] = {
    "podtemplates": {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {
            "name": "patched",
            "namespace": "default",
            "finalizers": ["x.io/a", "x.io/b"],
            "labels": {"a": "1", "b": "2"},
        },
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "containers": [
                    {
                        "name": "a",
                        "image": "1",
                        "args": ["x", "y"],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 80}, {"containerPort": 443}],
                        "resources": {"limits": {"cpu": "1"}},
                    },
                    {"name": "b", "image": "2"},
                    {"name": "c", "image": "3"},
                ],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
                "nodeSelector": {"a": "b"},
            },
        },
    },
    "deployments": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "patched", "namespace": "default"},
        "spec": {
            "paused": True,
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "1"}]}},
        },
    },
    "widgets": {
        "apiVersion": "fields.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "patched", "namespace": "default"},
        "spec": {"text": "a", "list": ["a", "b"], "map": {"a": "1"}},
    },
}


def patches() -> list[Patch]:
    """All of them."""
    return [*_strategic(), *_json_patches(), *_merges(), *_bodies()]


def _strategic() -> list[Patch]:
    return [
        *(Patch("podtemplates", STRATEGIC, json.dumps({"template": {"spec": spec}})) for spec in _POD_SPECS),
        *(Patch("podtemplates", STRATEGIC, json.dumps({"metadata": meta})) for meta in _METAS),
        *(Patch("deployments", STRATEGIC, json.dumps(body)) for body in _DEPLOYMENTS),
        Patch("widgets", STRATEGIC, "{}"),
    ]


_POD_SPECS: list[Any] = [
    {"containers": [{"name": "a", "image": "9"}]},
    {"containers": [{"name": "d", "image": "9"}]},
    {"containers": [{"name": "d", "image": "9"}, {"name": "b", "image": "8"}, {"name": "a", "image": "7"}]},
    {"containers": [{"name": "a", "$patch": "delete"}]},
    {"containers": [{"name": "a", "$patch": "delete"}, {"name": "z", "image": "9"}]},
    {"containers": [{"name": "q", "$patch": "delete"}, {"name": "c", "image": "9"}]},
    {"containers": [{"$patch": "replace"}, {"name": "z", "image": "9"}]},
    {"containers": [{"name": "a", "env": [{"name": "C", "value": "3"}, {"name": "A", "value": "9"}]}]},
    {"containers": [{"name": "a", "env": [{"name": "Z", "value": "1"}, {"$patch": "replace"}]}]},
    {
        "containers": [
            {"name": "a", "env": None, "ports": [{"containerPort": 443, "name": "tls"}, {"containerPort": 1}]}
        ]
    },
    {"containers": [{"name": "a", "args": ["z"], "resources": {"$patch": "replace", "limits": {"memory": "1Gi"}}}]},
    {"containers": [{"name": "a", "resources": {"limits": {"cpu": None, "memory": "1Gi"}}}]},
    {"containers": [{"name": "z", "image": "1", "env": None, "resources": {"limits": None, "requests": {"cpu": "1"}}}]},
    {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]},
    {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]},
    {
        "$setElementOrder/containers": [{"name": "d"}, {"name": "c"}, {"name": "a"}],
        "containers": [{"name": "d", "image": "4"}, {"name": "a", "image": "5"}, {"name": "b", "$patch": "delete"}],
    },
    {"$setElementOrder/initContainers": [{"name": "i"}], "initContainers": [{"name": "i", "image": "1"}]},
    {"$setElementOrder/initContainers": [{"name": "i"}]},
    {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]},
    {"volumes": [{"name": "n", "configMap": {"name": "m", "items": [{"key": "a", "path": "b"}]}}]},
    {"volumes": None, "nodeSelector": {"a": None, "c": "d"}},
    {"nodeSelector": {"$patch": "replace", "x": "y"}},
    {"nodeSelector": {"$patch": "delete"}},
    {"containers": [{"image": "x"}]},
    {"containers": ["x"]},
    {"containers": [{"name": "a", "$patch": "frob"}]},
    {"containers": [{"$patch": "delete"}]},
    {"containers": [{"name": "a", "$patch": "merge"}]},
    {"containers": [[1]]},
    {"containers": [None]},
    {"$patch": "frob"},
    {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b", "image": "3"}]},
    {"$setElementOrder/containers": [{"foo": "a"}], "containers": [{"name": "b", "image": "3"}]},
    {"$setElementOrder/containers": "x"},
    {"$setElementOrder/unheardOf": [{"name": "a"}]},
    {"$setElementOrder": []},
    {"$deleteFromPrimitiveList": ["x"]},
    {"$retainKeys": "x"},
    {"$retainKeys": ["volumes"], "containers": []},
]
_METAS: list[Any] = [
    {"finalizers": ["x.io/c"]},
    {"finalizers": ["x.io/b", "x.io/c"]},
    {"finalizers": ["x.io/c", "x.io/a", "x.io/c"]},
    {"finalizers": None},
    {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]},
    {"$deleteFromPrimitiveList/finalizers": ["x.io/b"], "finalizers": ["x.io/d"]},
    {"$deleteFromPrimitiveList/finalizers": "x"},
    {"$deleteFromPrimitiveList/unheardOf": ["x"]},
    {"$setElementOrder/finalizers": ["x.io/b", "x.io/a"]},
    {"$setElementOrder/finalizers": ["x.io/e", "x.io/b"], "finalizers": ["x.io/e"]},
    {"$setElementOrder/finalizers": ["q"], "finalizers": ["x.io/b"]},
    {"$setElementOrder/finalizers": "q"},
    {"finalizers": ["x.io/c", 1]},
    {"finalizers": [["x"]]},
    {"labels": {"a": None, "c": "3"}, "annotations": {"d": "4"}},
    {"labels": {"$retainKeys": ["b"], "b": "9"}},
    {"labels": {"$patch": "replace"}},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": "1"}]},
]
_DEPLOYMENTS: list[Any] = [
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}},
    {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1}}}},
    {"spec": {"replicas": None, "paused": True}},
]


def _json_patches() -> list[Patch]:
    operations: list[Any] = [
        [{"op": "add", "path": "/spec/map/b", "value": "2"}],
        [{"op": "add", "path": "/spec/list/1", "value": "z"}],
        [{"op": "add", "path": "/spec/list/-", "value": "z"}],
        [{"op": "remove", "path": "/spec/list/-1"}],
        [{"op": "replace", "path": "/spec/flag", "value": True}],
        [{"op": "replace", "path": "/spec/text", "value": "q"}, {"op": "test", "path": "/spec/text", "value": "q"}],
        [{"op": "copy", "from": "/spec/map", "path": "/spec/free"}],
        [{"op": "move", "from": "/spec/text", "path": "/spec/map/x"}],
        [{"op": "add", "path": "x/spec/text", "value": "x"}],
        [{"op": "add", "path": "text", "value": "x"}],
        [{"op": "test", "path": "/spec/none", "value": None}],
        [{"op": "add", "path": "/nope/x", "value": 1}],
        [{"op": "remove", "path": "/spec/none"}],
        [{"op": "test", "path": "/spec/text", "value": "q"}],
        [{"op": "frob", "path": "/spec/text"}],
        [{"op": "add"}],
        [{"path": "/spec/text", "value": "x"}],
        [{"op": "move", "path": "/spec/x", "from": "/spec/none"}],
        [{"op": "copy", "path": "/spec/x", "from": "/spec/none/x"}],
        [{"op": "add", "path": "/spec/list/9", "value": "x"}],
        [{"op": "add", "path": "/spec/list/x", "value": "x"}],
        [{"op": "replace", "path": "", "value": 3}],
        [{"op": "replace", "path": "", "value": []}],
        [{"op": "replace", "path": "", "value": {}}],
        [{"op": 3, "path": "/spec"}],
        [{"op": "add", "path": 3}],
        [{"op": "copy", "path": "/spec", "from": {}}],
        [3],
        ["x"],
        [True],
        [[]],
        [None],
        None,
        {"op": "add"},
        "x",
        3,
        [{"op": "test", "path": "/spec/text", "value": "a"}] * 10001,
    ]
    return [
        Patch("widgets", JSON_PATCH, json.dumps(body), validation)
        for body in operations
        for validation in (("Warn", "Ignore") if not isinstance(body, list) or body in ([3], []) else ("Warn",))
    ]


def _merges() -> list[Patch]:
    bodies: list[Any] = [
        {"spec": {"text": "b", "map": {"a": None, "b": "2"}}},
        {"spec": {"list": ["z"], "free": {"a": None, "b": {"c": None}, "d": [None, {"e": None}]}}},
        {"spec": {"list": None}},
        [1],
        [],
        None,
        "x",
        3,
        True,
    ]
    return [
        *(Patch("widgets", MERGE, json.dumps(body), each) for body in bodies for each in ("Warn", "Ignore")),
        *(Patch("podtemplates", STRATEGIC, json.dumps(body)) for body in bodies[3:]),
    ]


def _bodies() -> list[Patch]:
    """What is no JSON."""
    texts = [
        "",
        "{",
        "[",
        '{"a":}',
        '{"a":1,}',
        "{'a':1}",
        '{"a":1} x',
        "tru",
        "nul",
        "falsy",
        '{"a":"\x01"}',
        '{"a" 1}',
        "[1 2]",
        "[1,]",
        '{"a":01}',
        '{"a":1e}',
        '{"a":1.}',
        '{"a":-}',
        '{"a":"\\x"}',
        '{"a":"\\u12g4"}',
        '{"a',
        '{"a":"b',
        '{"a":[{"b":[1,{"c":}]}]}',
        "é",
        "-",
        "1e",
        " ",
        "}",
        "]",
        ",",
        '{"a":1]',
        '["a"}',
        '{"a":tru}',
        "{}{}",
    ]
    media_types = (("widgets", MERGE), ("widgets", JSON_PATCH), ("podtemplates", STRATEGIC))
    return [Patch(plural, media_type, text) for text in texts for plural, media_type in media_types]
