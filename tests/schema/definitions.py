"""CustomResourceDefinitions that an API server refuses, and odd ones that it takes.

Each case is a schema of the field `spec.value`, or a change of a plain manifest. The unit tests ask our own inspection
about them, the conformance tests ask a real API server.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

__all__ = ["BAD", "BAD_BUT_TAKEN", "GOOD", "GROUP", "manifest", "with_value"]

Manifest = dict[str, Any]
GROUP = "definitions.schema.example.com"
_INTEGER = {"type": "integer"}
_STRING = {"type": "string"}


def manifest(schema: Manifest | None = None, *, plural: str = "things") -> Manifest:
    """A plain CRD whose spec has the schema."""
    kind = plural.removesuffix("s").capitalize()
    properties = {"spec": schema or {"type": "object"}, "status": {"type": "object"}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def with_value(schema: Manifest, *, required: bool = False) -> Manifest:
    """A plain CRD with one field in its spec."""
    spec: Manifest = {"type": "object", "properties": {"value": copy.deepcopy(schema)}}
    return manifest(spec | ({"required": ["value"]} if required else {}))


def _list(items: Manifest, **keywords: Any) -> Manifest:
    return {"type": "array", "items": items} | {
        f"x-kubernetes-{key.replace('_', '-')}": v for key, v in keywords.items()
    }


def _ruled(schema: Manifest, rule: str, **keywords: Any) -> Manifest:
    return schema | {"x-kubernetes-validations": [{"rule": rule} | keywords]}


def _keyed(field: Manifest, *, required: bool = True) -> Manifest:
    item = {"type": "object", "properties": {"key": field}} | ({"required": ["key"]} if required else {})
    return _list(item, list_type="map", list_map_keys=["key"])


def _changed(change: Callable[[Manifest], object]) -> Manifest:
    made = manifest({"type": "object", "properties": {"size": _INTEGER, "tags": _list(_STRING)}})
    change(made)
    return made


def _root(made: Manifest) -> Manifest:
    schema: Manifest = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _version(made: Manifest) -> Manifest:
    version: Manifest = made["spec"]["versions"][0]
    return version


def _second_version(made: Manifest, **changes: Any) -> None:
    made["spec"]["versions"].append(copy.deepcopy(_version(made)) | {"name": "v2", "storage": False} | changes)


def _webhook(**client: Any) -> Manifest:
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


_STRUCT = {"type": "object", "properties": {"size": _INTEGER, "name": {"type": "string", "maxLength": 9}}}

BAD: dict[str, Manifest] = {
    "no type": with_value({"description": "nothing"}),
    "unknown type": with_value({"type": "text"}),
    "type null": with_value({"type": "null"}),
    "list without items": with_value({"type": "array"}),
    "items of several schemas": with_value({"type": "array", "items": [_STRING]}),
    "struct and map": with_value({"type": "object", "properties": {"a": _STRING}, "additionalProperties": _STRING}),
    "reference": with_value({"type": "object", "$ref": "#/definitions/x"}),
    "pattern properties": with_value({"type": "object", "patternProperties": {"a": _STRING}}),
    "definitions": with_value({"type": "object", "definitions": {"a": _STRING}}),
    "unique items": with_value(_list(_STRING) | {"uniqueItems": True}),
    "preserve false": with_value({"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
    "unknown keyword": with_value({"type": "string", "maximumLength": 3}),
    "type inside anyOf": with_value({"type": "integer", "anyOf": [{"type": "integer"}]}),
    "default inside allOf": with_value({"type": "integer", "allOf": [{"default": 1}]}),
    "description inside not": with_value({"type": "integer", "not": {"description": "x"}}),
    "rules inside anyOf": with_value({"type": "integer", "anyOf": [_ruled({}, "true")]}),
    "int-or-string that is an object": with_value(
        {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}
    ),
    "embedded without fields": with_value({"type": "object", "x-kubernetes-embedded-resource": True}),
    "embedded string": with_value({"type": "string", "x-kubernetes-embedded-resource": True}),
    "pattern with look-ahead": with_value({"type": "string", "pattern": "(?=a)"}),
    "pattern that does not end": with_value({"type": "string", "pattern": "("}),
    "default of another type": with_value({"type": "integer", "default": "one"}),
    "default out of bounds": with_value({"type": "integer", "maximum": 3, "default": 4}),
    "default with an unknown field": with_value(_STRUCT | {"default": {"colour": "red"}}),
    "default that breaks a rule": with_value(_ruled(_INTEGER, "self > 1") | {"default": 1}),
    "default that a rule cannot read": with_value(_ruled(_STRUCT, "self.size > 1") | {"default": {}}),
    "set of objects": with_value(_list(_STRUCT, list_type="set")),
    "set of nullable items": with_value(_list({"type": "string", "nullable": True}, list_type="set")),
    "map list of strings": with_value(_list(_STRING, list_type="map", list_map_keys=["name"])),
    "map list without keys": with_value(_list(_STRUCT, list_type="map")),
    "map list with unknown key": with_value(_list(_STRUCT, list_type="map", list_map_keys=["colour"])),
    "map list with an optional key": with_value(_keyed(_STRING, required=False)),
    "map list with a nullable key": with_value(_keyed(_STRING | {"nullable": True})),
    "map list with a key that is a list": with_value(_keyed(_list(_STRING))),
    "map list with a key twice": with_value(
        _keyed(_STRING) | {"x-kubernetes-list-map-keys": ["key", "key"]},
    ),
    "map keys without a map list": with_value(_list(_STRUCT, list_map_keys=["name"])),
    "unknown list type": with_value(_list(_STRING, list_type="bag")),
    "list type on a string": with_value(_STRING | {"x-kubernetes-list-type": "set"}),
    "map type on a list": with_value(_list(_STRING, map_type="atomic")),
    "unknown map type": with_value(_STRUCT | {"x-kubernetes-map-type": "set"}),
    "rule that does not parse": with_value(_ruled(_INTEGER, "self >")),
    "rule that is no condition": with_value(_ruled(_INTEGER, "self + 1")),
    "rule that compares text with a number": with_value(_ruled(_INTEGER, "self == 'a'")),
    "rule that names an unknown field": with_value(_ruled(_STRUCT, "self.colour == 'red'")),
    "rule that is empty": with_value(_ruled(_INTEGER, " ")),
    "rule with an empty message": with_value(_ruled(_INTEGER, "self > 0", message=" ")),
    "rule with a message of two lines": with_value(_ruled(_INTEGER, "self > 0", message="a\nb")),
    "rule of two lines without a message": with_value(_ruled(_INTEGER, "self > 0\n&& self < 9")),
    "rule with an unknown reason": with_value(_ruled(_INTEGER, "self > 0", reason="Because")),
    "rule with a message of another type": with_value(_ruled(_INTEGER, "self > 0", messageExpression="1")),
    "rule with a path to nowhere": with_value(_ruled(_STRUCT, "true", fieldPath=".colour")),
    "rule with a path without a dot": with_value(_ruled(_STRUCT, "true", fieldPath="size")),
    "rule with optionalOldSelf but no oldSelf": with_value(_ruled(_INTEGER, "self > 0", optionalOldSelf=True)),
    "transition rule in an atomic list": with_value(_list(_ruled(_INTEGER, "self >= oldSelf"))),
    "transition rule in a set": with_value(_list(_ruled(_INTEGER, "self >= oldSelf"), list_type="set")),
    "rule on a value without type": with_value(_ruled({"x-kubernetes-preserve-unknown-fields": True}, "self == 1")),
    "rule that is too expensive": with_value(
        _ruled(_list(_STRING), "self.all(a, self.all(b, a == b || a.contains(b)))"),
    ),
    "rule in a list without end": with_value(_list(_ruled(_STRING, "self.matches('a+b')"))),
    "message that is too expensive": with_value(
        _ruled(_INTEGER, "self > 0", messageExpression="'got ' + string(self) + ' and ' + string(self)")
    ),
    "group without a dot": _changed(lambda made: made["spec"].update(group="example")),
    "name of another group": _changed(lambda made: made["metadata"].update(name="things.example.com")),
    "group of the community": _changed(
        lambda made: (made["spec"].update(group="x.k8s.io"), made["metadata"].update(name="things.x.k8s.io"))
    ),
    "unknown scope": _changed(lambda made: made["spec"].update(scope="Everywhere")),
    "kind with a space": _changed(lambda made: made["spec"]["names"].update(kind="A thing")),
    "short name with upper case": _changed(lambda made: made["spec"]["names"].update(shortNames=["Th"])),
    "category with a dot": _changed(lambda made: made["spec"]["names"].update(categories=["a.b"])),
    "list kind like the kind": _changed(lambda made: made["spec"]["names"].update(listKind="Thing")),
    "version with a dot": _changed(lambda made: _version(made).update(name="v1.0")),
    "no storage version": _changed(lambda made: _version(made).update(storage=False)),
    "two storage versions": _changed(lambda made: _second_version(made, storage=True)),
    "one version twice": _changed(lambda made: _second_version(made, name="v1")),
    "no schema": _changed(lambda made: _version(made).pop("schema")),
    "warning without deprecation": _changed(lambda made: _version(made).update(deprecationWarning="soon")),
    "long warning": _changed(lambda made: _version(made).update(deprecated=True, deprecationWarning="x" * 257)),
    "root that is a list": _changed(lambda made: _root(made).update(type="array", items=_STRING)),
    "root that is a map": _changed(lambda made: _root(made).update(additionalProperties=_STRING)),
    "root that is nullable": _changed(lambda made: _root(made).update(nullable=True)),
    "root with anyOf beside status": _changed(lambda made: _root(made).update(anyOf=[{"required": ["spec"]}])),
    "metadata with labels": _changed(
        lambda made: _root(made)["properties"].update(
            metadata={"type": "object", "properties": {"labels": {"type": "object"}}}
        )
    ),
    "metadata with a default": _changed(
        lambda made: _root(made)["properties"].update(
            metadata={"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}
        )
    ),
    "kind that is a number": _changed(lambda made: _root(made)["properties"].update(kind=_INTEGER)),
    "column without a path": _changed(
        lambda made: _version(made).update(additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ""}])
    ),
    "column without a dot": _changed(
        lambda made: _version(made).update(
            additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": "spec.size"}]
        )
    ),
    "column of an unknown type": _changed(
        lambda made: _version(made).update(
            additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".spec.size"}]
        )
    ),
    "column of an unknown format": _changed(
        lambda made: _version(made).update(
            additionalPrinterColumns=[{"name": "A", "type": "string", "format": "bold", "jsonPath": ".spec.size"}]
        )
    ),
    "scale outside of spec": _changed(
        lambda made: _version(made)["subresources"].update(
            scale={"specReplicasPath": ".status.size", "statusReplicasPath": ".status.size"}
        )
    ),
    "scale without status": _changed(
        lambda made: _version(made)["subresources"].update(
            scale={"specReplicasPath": ".spec.size", "statusReplicasPath": ""}
        )
    ),
    "selectable field that is not there": _changed(
        lambda made: _version(made).update(selectableFields=[{"jsonPath": ".spec.colour"}])
    ),
    "selectable list": _changed(lambda made: _version(made).update(selectableFields=[{"jsonPath": ".spec.tags"}])),
    "selectable field twice": _changed(
        lambda made: _version(made).update(selectableFields=[{"jsonPath": ".spec.size"}] * 2)
    ),
    "selectable metadata": _changed(
        lambda made: (
            _root(made)["properties"].update(metadata={"type": "object", "properties": {"name": _STRING}}),
            _version(made).update(selectableFields=[{"jsonPath": ".metadata.name"}]),
        )
    ),
    "too many selectable fields": _changed(
        lambda made: (
            _root(made)["properties"].update(
                spec={"type": "object", "properties": {f"f{i}": _STRING for i in range(9)}}
            ),
            _version(made).update(selectableFields=[{"jsonPath": f".spec.f{i}"} for i in range(9)]),
        )
    ),
    "webhook without an address": _changed(lambda made: made["spec"].update(conversion=_webhook())),
    "webhook by http": _changed(lambda made: made["spec"].update(conversion=_webhook(url="http://a.example.com"))),
    "webhook without a namespace": _changed(
        lambda made: made["spec"].update(conversion=_webhook(service={"name": "a"}))
    ),
    "webhook with a relative path": _changed(
        lambda made: made["spec"].update(conversion=_webhook(service={"name": "a", "namespace": "b", "path": "c"}))
    ),
    "conversion by magic": _changed(lambda made: made["spec"].update(conversion={"strategy": "Magic"})),
}

BAD_BUT_TAKEN: dict[str, Manifest] = {
    "minimum above maximum": with_value({"type": "integer", "minimum": 3, "maximum": 2}),
    "enum of another type": with_value({"type": "integer", "enum": ["one"]}),
    "half a minimum on an integer": with_value({"type": "integer", "minimum": 0.5}),
    "multiple of nothing": with_value({"type": "integer", "multipleOf": 0}),
    "minLength above maxLength": with_value({"type": "string", "minLength": 3, "maxLength": 2}),
}
"""What a server takes although no value, or no value that was meant, can satisfy it; `crd` refuses it."""

GOOD: dict[str, Manifest] = {
    "plain": manifest(),
    "int-or-string written out": with_value(
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    ),
    "int-or-string with more": with_value(
        {
            "x-kubernetes-int-or-string": True,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "^a"}],
        }
    ),
    "conditions on fields": with_value(
        _STRUCT | {"oneOf": [{"required": ["size"]}, {"properties": {"name": {"pattern": "a"}}}]}
    ),
    "unknown format": with_value({"type": "string", "format": "colour"}),
    "preserve without type": with_value({"x-kubernetes-preserve-unknown-fields": True}),
    "map list with a defaulted key": with_value(_keyed(_STRING | {"default": "a"}, required=False)),
    "transition rule in a map list": with_value(
        _list(
            _ruled({"type": "object", "properties": {"key": _STRING}, "required": ["key"]}, "self == oldSelf"),
            list_type="map",
            list_map_keys=["key"],
        )
        | {"maxItems": 5}
    ),
    "transition rule in a map": with_value(
        {"type": "object", "maxProperties": 5, "additionalProperties": _ruled(_INTEGER, "self >= oldSelf")}
    ),
    "set of atomic structs": with_value(_list(_STRUCT | {"x-kubernetes-map-type": "atomic"}, list_type="set")),
    "rule with a quoted path": with_value(
        _ruled({"type": "object", "properties": {"a-b": _INTEGER}}, "true", fieldPath="['a-b']")
    ),
    "rule in a list with an end": with_value(
        _list(_ruled({"type": "string", "maxLength": 9}, "self.matches('a+b')")) | {"maxItems": 9}
    ),
    "rule on the name": _changed(
        lambda made: _root(made).update({"x-kubernetes-validations": [{"rule": "self.metadata.name != 'x'"}]})
    ),
    "metadata with a pattern": _changed(
        lambda made: _root(made)["properties"].update(
            metadata={"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}
        )
    ),
    "two versions": _changed(_second_version),
    "community group with approval": _changed(
        lambda made: (
            made["spec"].update(group="x.k8s.io"),
            made["metadata"].update(
                name="things.x.k8s.io", annotations={"api-approved.kubernetes.io": "unapproved, test"}
            ),
        )
    ),
    "webhook by URL": _changed(lambda made: made["spec"].update(conversion=_webhook(url="https://a.example.com/b"))),
}
