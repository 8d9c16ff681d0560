"""Checks the keywords of a schema, one node at a time: known ones, refused ones, and combinations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from navarch.schema.inspection.structural import DefinitionFault, children, junctors, unexpected
from navarch.schema.json_schema import TYPE_FIELDS, JsonSchema

Form: TypeAlias = Any
"""A Python type, object for any JSON; `[form]` for a list, `{"*": form}` for a map, `{name: form, ...}` for a struct; a
tuple for a choice.
"""

_NUMBER = (int, float)
_NAMES = {str: "a text", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "an object"}

_RULE_FORM: Form = dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), str)
_RULE_FORM["optionalOldSelf"] = bool

SCHEMA_FORM: Form = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), str),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), int),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), bool),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), str),
    "required": [str],
    "enum": list,
    "default": object,
    "example": object,
    "externalDocs": dict,
    "x-kubernetes-list-map-keys": [str],
    "x-kubernetes-preserve-unknown-fields": bool,
    "x-kubernetes-embedded-resource": bool,
    "x-kubernetes-int-or-string": bool,
    "x-kubernetes-validations": [_RULE_FORM],
}
SCHEMA_FORM |= {
    "allOf": [SCHEMA_FORM],
    "anyOf": [SCHEMA_FORM],
    "oneOf": [SCHEMA_FORM],
    "not": SCHEMA_FORM,
    "properties": {"*": SCHEMA_FORM},
    "items": (SCHEMA_FORM, list),
    "additionalProperties": (SCHEMA_FORM, bool),
}

_VERSION_FORM: Form = {
    **dict.fromkeys(("name", "deprecationWarning"), str),
    **dict.fromkeys(("served", "storage", "deprecated"), bool),
    "schema": {"openAPIV3Schema": SCHEMA_FORM},
    "subresources": {
        "status": dict,
        "scale": dict.fromkeys(("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), str),
    },
    "additionalPrinterColumns": [
        dict.fromkeys(("name", "type", "format", "description", "jsonPath"), str) | {"priority": int}
    ],
    "selectableFields": [{"jsonPath": str}],
}
_CLIENT_FORM: Form = {"url": str, "service": dict.fromkeys(("name", "namespace", "path"), str) | {"port": int}}
CRD_FORM: Form = {
    "metadata": {"name": str, "annotations": {"*": str}},
    "spec": {
        **dict.fromkeys(("group", "scope"), str),
        "names": {
            **dict.fromkeys(("plural", "singular", "kind", "listKind"), str),
            "shortNames": [str],
            "categories": [str],
        },
        "versions": [_VERSION_FORM],
        "conversion": {
            "strategy": str,
            "webhook": {"clientConfig": _CLIENT_FORM, "conversionReviewVersions": [str]},
        },
    },
}


def well_formed(value: Any, form: Form, path: str = "") -> tuple[Any, list[DefinitionFault]]:
    """Returns `value` without nulls, and a fault for every part of another form.

    >>> well_formed({"type": 3, "pattern": None}, SCHEMA_FORM, "spec")[1][0].message
    'expected a text, got 3'
    """
    reading = _Reading()
    return reading.read(value, form, path), reading.faults


@dataclass(slots=True)
class _Reading:
    faults: list[DefinitionFault] = field(default_factory=list)

    def read(self, value: Any, form: Form, path: str) -> Any:
        wanted = next((choice for choice in _choices(form) if _is(value, choice)), None)
        if wanted is None:
            expected = " or ".join(dict.fromkeys(_NAMES[_type_of(choice)] for choice in _choices(form)))
            self.faults.append(unexpected(path, expected, repr(value), "correct it"))
            return value
        if isinstance(wanted, list):
            return [self.read(item, wanted[0], f"{path}[{index}]") for index, item in enumerate(value)]
        if isinstance(wanted, dict):
            return self._members(value, wanted, path)
        return value

    def _members(self, value: dict[str, Any], form: dict[str, Form], path: str) -> dict[str, Any]:
        if "*" in form:
            return {name: self.read(inner, form["*"], f"{path}[{name}]") for name, inner in value.items()}
        return {
            name: self.read(inner, form[name], f"{path}.{name}".removeprefix(".")) if name in form else inner
            for name, inner in value.items()
            if inner is not None or form.get(name, object) is object
        }


def _choices(form: Form) -> tuple[Form, ...]:
    return form if isinstance(form, tuple) else (form,)


def _type_of(form: Form) -> type:
    return form if isinstance(form, type) else type(form)


def _is(value: Any, form: Form) -> bool:
    """JSON tells true from 1, Python does not."""
    return isinstance(value, _type_of(form)) and (form in (bool, object) or not isinstance(value, bool))


def list_type_faults(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """Yields the faults of the list type or map type of one node."""
    kind, list_type, map_type = (
        schema.get("type"),
        schema.get("x-kubernetes-list-type"),
        schema.get("x-kubernetes-map-type"),
    )
    if map_type is not None and (kind != "object" or map_type not in {"atomic", "granular"}):
        yield unexpected(
            path, "an atomic or granular object", f"{map_type} on type {kind}", "mark a map or struct Atomic()"
        )
    if list_type is not None and (kind != "array" or list_type not in {"atomic", "set", "map"}):
        yield unexpected(path, "an atomic, set or map list", f"{list_type} on type {kind}", "move the marker to a list")
    if schema.get("x-kubernetes-list-map-keys") and list_type != "map":
        yield unexpected(path, "map keys on a map list", f"list type {list_type}", "use ListMap(...)")
    items = schema.get("items")
    if isinstance(items, dict) and list_type in {"set", "map"}:
        if items.get("nullable"):
            yield unexpected(
                f"{path}.items.nullable", f"items of a {list_type} that are never null", "nullable", "remove it"
            )
        yield from _set_faults(items, path) if list_type == "set" else _map_faults(schema, items, path)


def _set_faults(items: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    kind = items.get("type")
    if kind == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        yield unexpected(
            f"{path}.items", "scalars, or atomic items, in a set", "a list that is merged", "mark it Atomic()"
        )
    if kind == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield unexpected(
            f"{path}.items", "scalars in a set", "objects", "use ListMap with the keys that tell items apart"
        )


def _map_faults(schema: JsonSchema, items: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    keys = schema.get("x-kubernetes-list-map-keys", [])
    if not keys:
        yield unexpected(f"{path}.x-kubernetes-list-map-keys", "at least one key", "none", 'write ListMap("name")')
    if items.get("type") != "object":
        yield unexpected(f"{path}.items.type", "structs in a map list", items.get("type"), "use ListSet for scalars")
        return
    if len(set(keys)) < len(keys):
        yield unexpected(
            f"{path}.x-kubernetes-list-map-keys", "each key once", ", ".join(keys), "remove the repetition"
        )
    properties = items.get("properties", {})
    for key in keys:
        if key not in properties:
            remedy = f"use wire names: {', '.join(properties) or 'there are none'}"
            yield unexpected(
                f"{path}.x-kubernetes-list-map-keys", "keys that are fields of the items", repr(key), remedy
            )
        else:
            yield from _key_faults(key, properties[key], items, f"{path}.items.properties[{key}]")


def _key_faults(key: str, field: JsonSchema, items: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    if field.get("type") in {"array", "object"}:
        yield unexpected(
            f"{path}.type", "a scalar, since it is the key of a map list", field["type"], "use another key"
        )
    if key not in items.get("required", ()) and field.get("default") is None:
        yield unexpected(
            f"{path}.default",
            "the key of a map list to be required or to have a default",
            "neither",
            "remove `| None`, or give it a default",
        )
    if field.get("nullable"):
        yield unexpected(f"{path}.nullable", "the key of a map list to be never null", "nullable", "remove it")


JSON_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_REFUSED = {"id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"}
_KNOWN = SCHEMA_FORM.keys() - _REFUSED
_ROOT_WITH_STATUS = _KNOWN - {
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "nullable",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
}


@dataclass(frozen=True, slots=True)
class _KeywordContext:
    inside_metadata: bool = False
    no_defaults: str = ""


def keyword_faults(schema: JsonSchema, path: str, *, has_status: bool) -> Iterator[DefinitionFault]:
    """Yields every keyword of a kind's schema that the API server refuses."""
    if schema.get("nullable"):
        yield DefinitionFault(f"{path}.nullable", "expected an object at the root, got nullable", "remove nullable")
    surplus = [key for key in schema if key in _KNOWN and key not in _ROOT_WITH_STATUS]
    if has_status and surplus:
        yield DefinitionFault(
            path,
            f"expected the root of a kind with status to be plain, got {', '.join(surplus)}",
            "move it into spec, or write it as a rule",
        )
    yield from _node(schema, path, _KeywordContext(), root=True)


def _node(schema: JsonSchema, path: str, around: _KeywordContext, *, root: bool = False) -> Iterator[DefinitionFault]:
    yield from _unknown(schema, path)
    yield from _values(schema, path, around)
    yield from list_type_faults(schema, path)
    for child, inner in children(schema, path):
        yield from _node(child, inner, _inside(schema, inner.removeprefix(path), around, root=root))
    for part, inner in junctors(schema, path):
        yield from _node(part, inner, around)


def _inside(schema: JsonSchema, step: str, around: _KeywordContext, *, root: bool) -> _KeywordContext:
    name = step.removeprefix(".properties[").removesuffix("]")
    if (root or schema.get("x-kubernetes-embedded-resource")) and name in TYPE_FIELDS:
        return _KeywordContext(inside_metadata=True, no_defaults=f"in top-level {name}" if root else around.no_defaults)
    if step == ".additionalProperties" and around.inside_metadata:
        return replace(around, no_defaults="in a map of the metadata")
    return around


def _unknown(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    for keyword in schema:
        if keyword in _REFUSED:
            yield unexpected(
                f"{path}.{keyword}", "keywords of structural schemas", keyword, "write the schema out in place"
            )
        elif keyword not in _KNOWN:
            yield unexpected(f"{path}.{keyword}", "a keyword of OpenAPI v3", keyword, "remove it")


def _values(schema: JsonSchema, path: str, around: _KeywordContext) -> Iterator[DefinitionFault]:
    kind = schema.get("type")
    if kind and kind not in JSON_TYPES:
        yield unexpected(f"{path}.type", f"one of {', '.join(JSON_TYPES)}", repr(kind), "use one of them")
    if "default" in schema and around.no_defaults:
        yield unexpected(f"{path}.default", f"no default {around.no_defaults}", repr(schema["default"]), "remove it")
    if schema.get("uniqueItems"):
        yield unexpected(f"{path}.uniqueItems", "no uniqueItems", "true", "use ListSet")
    if schema.get("properties") and schema.get("additionalProperties"):
        yield unexpected(f"{path}.additionalProperties", "a struct or a map", "both", "keep one, or use Preserve")
    if isinstance(schema.get("items"), list):
        yield unexpected(f"{path}.items", "one schema for all items", "several", "keep one")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield unexpected(f"{path}.x-kubernetes-preserve-unknown-fields", "true or nothing", "false", "remove it")
    if around.inside_metadata and schema.get("x-kubernetes-embedded-resource"):
        yield unexpected(path, "no embedded resource inside metadata", "one", "move it into spec")
