"""Structural schemas, each about one thing, for values to be generated from."""

from __future__ import annotations

from typing import Any

from schema.strategies import FORMATS

__all__ = ["SHAPES"]

JsonSchema = dict[str, Any]
_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}


def _struct(*required: str, **properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


_PORT = _struct("name", name=_STRING | {"maxLength": 5}, protocol=_STRING | {"default": "TCP"}, number=_INTEGER)
_WHOLE = {"type": "integer", "format": "int64", "title": "whole"}
"""Integers that are never written as 3.0: rules see those when they look, ours see them at once."""
_OPEN = {"x-kubernetes-preserve-unknown-fields": True}

SHAPES: dict[str, JsonSchema] = {
    "numbers": _struct(
        "a",
        a=_INTEGER | {"minimum": 0, "maximum": 10},
        b=_INTEGER | {"format": "int32", "minimum": 1, "exclusiveMinimum": True},
        c={"type": "number", "maximum": 1.5, "exclusiveMaximum": True, "multipleOf": 0.25},
        d=_INTEGER | {"multipleOf": 3},
        e={"type": "number", "format": "float", "enum": [1, 2, 1.5]},
        f=_INTEGER | {"format": "int64"},
    ),
    "bounds": _struct(
        a=_INTEGER | {"maximum": 2**63 - 1},
        b=_INTEGER | {"format": "int64", "minimum": -(2**63)},
        c=_INTEGER | {"format": "int32", "maximum": 2**31},
        d={"type": "number", "maximum": 2**63},
        e={"type": "number", "format": "float", "maximum": 1e39},
        f=_INTEGER | {"format": "int32", "multipleOf": 1.5},
        g=_INTEGER | {"minimum": 0.5},
        h={"type": "number", "minimum": -1e300},
        i={"x-kubernetes-int-or-string": True, "maximum": 2**70},
    ),
    "strings": _struct(
        a=_STRING | {"minLength": 2, "maxLength": 4},
        b=_STRING | {"pattern": "^[A-Z]"},
        c=_STRING | {"enum": ["x", "y"]},
        d={"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"},
        e={"type": "boolean"},
    ),
    "formats": _struct(**{f"f{index}": _STRING | {"format": name} for index, name in enumerate(FORMATS)}),
    "nulls": _struct(
        "b",
        a=_STRING | {"nullable": True},
        b=_STRING | {"default": "b"},
        c=_STRING,
        d=_STRING | {"nullable": True, "default": "d"},
        e=_struct(f=_INTEGER | {"default": 1}) | {"default": {}},
        g={"type": "object", "additionalProperties": _INTEGER | {"nullable": True}},
        h={"type": "array", "items": _INTEGER | {"nullable": True}},
    ),
    "lists": _struct(
        ports={"type": "array", "items": _PORT, "maxItems": 2, "x-kubernetes-list-type": "map"}
        | {"x-kubernetes-list-map-keys": ["name", "protocol"]},
        tags={"type": "array", "items": _INTEGER, "minItems": 1, "x-kubernetes-list-type": "set"},
        names={
            "type": "array",
            "items": _PORT,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        plain={"type": "array", "items": _STRING},
    ),
    "maps": _struct(
        a={"type": "object", "additionalProperties": _INTEGER | {"maximum": 5}, "maxProperties": 2},
        b={"type": "object", "additionalProperties": _PORT, "minProperties": 1},
        c={
            "type": "object",
            "additionalProperties": {"type": "array", "items": _INTEGER, "x-kubernetes-list-type": "set"},
        },
    ),
    "junctors": _struct(
        a=_INTEGER | {"anyOf": [{"minimum": 5}, {"maximum": 2}]},
        b=_INTEGER | {"oneOf": [{"minimum": 0}, {"maximum": 4}]},
        c=_INTEGER | {"allOf": [{"minimum": 1}, {"multipleOf": 2}]},
        d=_INTEGER | {"not": {"enum": [3]}},
        e=_struct(x=_STRING, y=_STRING) | {"oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
    ),
    "open": _struct(
        a=_OPEN,
        b=_struct(x=_INTEGER, y=_struct(z=_INTEGER)) | _OPEN,
        c={"type": "array", "items": _struct(x=_INTEGER)} | _OPEN,
        d={"type": "object", "x-kubernetes-embedded-resource": True} | _OPEN,
        e=_struct(spec=_struct(x=_INTEGER)) | {"x-kubernetes-embedded-resource": True},
    ),
    "rules": _struct(
        low=_WHOLE | {"default": 0},
        high=_WHOLE | {"default": 5},
        name=_STRING
        | {"maxLength": 8, "x-kubernetes-validations": [{"rule": "self.startsWith('A')", "message": "no A"}]},
        items={
            "type": "array",
            "maxItems": 5,
            "items": _WHOLE
            | {"x-kubernetes-validations": [{"rule": "self % 2 == 0", "reason": "FieldValueForbidden"}]},
        },
        port={"x-kubernetes-int-or-string": True, "title": "whole"}
        | {"x-kubernetes-validations": [{"rule": "type(self) == int ? self > 0 : self != ''"}]},
        quotas={
            "type": "object",
            "maxProperties": 4,
            "additionalProperties": _WHOLE | {"x-kubernetes-validations": [{"rule": "10 / self > 1"}]},
        },
    )
    | {
        "x-kubernetes-validations": [
            {"rule": "self.low <= self.high", "message": "low is above high", "fieldPath": ".low"},
            {"rule": "!has(self.name) || self.name != 'Abc'", "messageExpression": "self.name + ' is taken'"},
            {"rule": "!has(self.items) || self.items.all(i, i < 100)", "reason": "FieldValueDuplicate"},
        ]
    },
}
