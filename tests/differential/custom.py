"""Custom kinds: one with everything that a schema can say, in two versions, and a plain one that is cluster-wide."""

from __future__ import annotations

from typing import Any, Final

from differential.kinds import GONE, Edits, Kind
from differential.steps import Json

GROUP: Final = "fuzz.example.com"
_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "integer"}
_SPEC: Json = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 9, "default": 1},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
        "when": {"type": "string", "format": "date-time"},
        "note": {"type": "string", "nullable": True},
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
        },
        "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "multipleOf": 0.5},
        "either": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT, "maxItems": 3},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {"port": _NUMBER, "protocol": {"type": "string", "default": "TCP"}, "name": _TEXT},
            },
        },
        "plain": {
            "type": "array",
            "items": {"type": "object", "properties": {"a": _TEXT, "b": {**_NUMBER, "default": 5}}},
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "additionalProperties": _TEXT, "maxProperties": 2},
        "deep": {
            "type": "object",
            "default": {},
            "properties": {"on": {"type": "boolean", "default": True}, "level": _NUMBER},
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.level) || self.level < 5 || self.on",
                    "reason": "FieldValueForbidden",
                    "fieldPath": ".level",
                }
            ],
        },
        "selector": _TEXT,
    },
    "x-kubernetes-validations": [
        {"rule": "self.size != 7", "message": "seven is not a size"},
        {
            "rule": "self.size >= oldSelf.size - 3",
            "messageExpression": "self.size == 0 ? 'shrinks to nothing' : 'shrinks too far'",
        },
    ],
}
_STATUS: Json = {
    "type": "object",
    "properties": {"ready": {"type": "integer", "minimum": 0}, "phase": _TEXT, "selector": _TEXT},
}


def _version(name: str, *, storage: bool, deprecated: bool = False) -> Json:
    version: Json = {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.ready",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1, "description": "How."},
            {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "selectableFields": [{"jsonPath": ".spec.mode"}, {"jsonPath": ".spec.size"}],
    }
    return {**version, "deprecated": True} if deprecated else version


def _definition(plural: str, kind: str, scope: str, versions: list[Json]) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": versions},
    }


_PLAIN: Json = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}

DEFINITIONS: Final = (
    _definition(
        "widgets",
        "Widget",
        "Namespaced",
        [_version("v1", storage=True), _version("v1beta1", storage=False, deprecated=True)],
    ),
    _definition("gauges", "Gauge", "Cluster", [_PLAIN]),
)

_PORT: Json = {"port": 80, "name": "http"}
_SPEC_EDITS: dict[str, list[Any]] = {
    "spec": [{}, None, {"size": 2}, "x", []],
    "spec.size": [0, 1, 2, 5, 7, 9, 10, -1, "1", 1.5, None, True],
    "spec.mode": ["fast", "slow", "other", "", None, 1],
    "spec.code": ["ab", "a", "toolong", "A1"],
    "spec.when": ["2020-01-01T00:00:00Z", "soon"],
    "spec.note": ["n", None, "", 3],
    "spec.fixed": ["a", "b"],
    "spec.ratio": [0.5, 1, 0, 0.3],
    "spec.either": [1, "1", True, 1.5],
    "spec.tags": [["a"], ["a", "b"], ["b", "a", "a"], ["a", "b", "c", "d"], [], [1], None],
    "spec.ports": [
        [_PORT],
        [_PORT, {"port": 80, "protocol": "UDP"}],
        [_PORT, {"port": 80}],
        [{"name": "x"}],
        [],
        {"port": 1},
    ],
    "spec.plain": [[{"a": "1"}], [{"a": "1", "c": "unknown"}, {}], [{"a": 1}], [None]],
    "spec.free": [{"x": {"y": [1, None, "z"]}}, {"x": None}, {}, 1],
    "spec.map": [{"a": "1"}, {"a": "1", "b": "2", "c": "3"}, {"a": None}, {"a": 1}],
    "spec.map.a": ["2", None],
    "spec.deep": [{"level": 3}, {"on": False}, {"on": False, "level": 7}, {"x": 1}, None],
    "spec.unheardOf": ["x", {"a": 1}],
    "unheardOf": [1, None],
    "status": [{"ready": 1}, {"ready": -1}],
}
_GAUGE_EDITS: Edits = {
    "spec": [{"a": 1}, {"a": {"b": [1, 2]}}, 5, None, GONE],
    "spec.a": [1, "x", None, [], {"c": None}],
    "status": [{"x": 1}, None],
    "extra": [True],
}

CUSTOM: Final = (
    Kind(
        "Widget",
        "widgets",
        {"spec": {"size": 3}},
        _SPEC_EDITS,
        group=GROUP,
        versions=("v1", "v1beta1"),
        status={"ready": [1, -1, "x"], "phase": ["Up", None], "selector": ["a=b", ""], "unheardOf": [1]},
        scales=True,
        fields=("metadata.name=a", "spec.mode=fast", "spec.size=3", "spec.code=ab"),
    ),
    Kind("Gauge", "gauges", {"spec": {"a": 1}}, _GAUGE_EDITS, group=GROUP, namespaced=False),
)
