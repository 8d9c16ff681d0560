"""A custom kind that has every kind of list and map there is, nested, and random objects of it."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

GROUP = "fields.example.com"
KIND = "Widget"
PLURAL = "widgets"

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_SET = {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT}
_PROTOCOL = {"type": "string", "default": "TCP"}
_PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {"port": _NUMBER, "protocol": _PROTOCOL, "name": _TEXT, "hosts": _SET},
    },
}
_ITEMS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": _TEXT,
            "value": _NUMBER,
            "tags": _SET,
            "ports": _PORTS,
            "labels": {"type": "object", "additionalProperties": _TEXT},
        },
    },
}
_POINT: Json = {"type": "object", "properties": {"x": _NUMBER, "y": _NUMBER, "tags": _SET, "free": {"type": "string"}}}

SPEC: Json = {
    "type": "object",
    "properties": {
        "replicas": _NUMBER,
        "text": {"type": "string", "nullable": True},
        "flag": {"type": "boolean"},
        "ratio": {"type": "number"},
        "either": {"x-kubernetes-int-or-string": True},
        "atomicMap": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": _TEXT},
        "map": {"type": "object", "additionalProperties": _TEXT},
        "struct": {**_POINT, "properties": {**_POINT["properties"], "inner": _POINT, "items": _ITEMS}},
        "atomicStruct": {**_POINT, "x-kubernetes-map-type": "atomic"},
        "set": _SET,
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": _NUMBER},
        "list": {"type": "array", "items": _TEXT},
        "structs": {"type": "array", "x-kubernetes-list-type": "atomic", "items": _POINT},
        "items": _ITEMS,
        "ports": _PORTS,
        "mapOfStructs": {"type": "object", "additionalProperties": _POINT},
        "mapOfSets": {"type": "object", "additionalProperties": _SET},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "halfFree": {**_POINT, "x-kubernetes-preserve-unknown-fields": True},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
STATUS: Json = {
    "type": "object",
    "properties": {"phase": _TEXT, "count": _NUMBER, "conditions": _ITEMS},
}
SCHEMA: Json = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}


def definition() -> Json:
    """The CRD, in two versions that do not differ."""
    versions: list[Json] = [
        {
            "name": version,
            "served": True,
            "storage": version == "v1",
            "schema": {"openAPIV3Schema": SCHEMA},
            "subresources": {"status": {}},
        }
        for version in ("v1", "v1beta1")
    ]
    names = {"plural": PLURAL, "singular": "widget", "kind": KIND, "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions},
    }


class Values:
    """Random values that fit schemas, from few words, so that writers meet."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def of(self, schema: Json, depth: int = 0) -> Any:
        """A value; deeper ones are smaller."""
        if schema.get("x-kubernetes-embedded-resource"):
            name = self._word()
            return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name, "labels": self._words()}}
        if schema.get("x-kubernetes-int-or-string"):
            return self._chance.choice([1, "1", 2])
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._list(schema, depth)
        return self._scalar(kind)

    def _scalar(self, kind: str | None) -> Any:
        if kind == "string":
            return self._word()
        if kind == "boolean":
            return self._chance.choice([True, False])
        if kind == "number":
            return self._chance.choice([0.5, 1, 2.25])
        return self._chance.choice([1, 2, 3]) if kind == "integer" else self.anything()

    def _object(self, schema: Json, depth: int) -> Json:
        chosen: Json = {}
        for name, below in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or self._chance.random() < (0.35 if depth else 0.25):
                chosen[name] = self.of(below, depth + 1)
        others = schema.get("additionalProperties")
        if others:
            chosen |= {self._word(): self.of(others, depth + 1) for _ in range(self._chance.randint(0, 2))}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            chosen |= {f"free-{self._word()}": self.anything() for _ in range(self._chance.randint(0, 2))}
        return chosen

    def _list(self, schema: Json, depth: int) -> list[Any]:
        items = [self.of(schema["items"], depth + 1) for _ in range(self._chance.randint(0, 3))]
        keys = schema.get("x-kubernetes-list-map-keys")
        if keys:
            known = {tuple(item.get(key, "TCP") for key in keys): item for item in items}
            return list(known.values())
        return list(dict.fromkeys(items)) if schema.get("x-kubernetes-list-type") == "set" else items

    def anything(self) -> Any:
        """A value without a schema."""
        choices = [self._word(), 1, True, 0.5, [1, self._word()], self._words(), {"a": self._words()}, {}, []]
        return self._chance.choice(choices)

    def _word(self) -> str:
        return self._chance.choice(["a", "b", "c", "d<e"])

    def _words(self) -> dict[str, str]:
        return {self._chance.choice("abc"): self._chance.choice("12") for _ in range(self._chance.randint(0, 2))}
