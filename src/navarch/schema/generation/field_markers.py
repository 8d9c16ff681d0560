"""Applies markers to a schema."""

from __future__ import annotations

import copy
import sys
from typing import Any

import msgspec

from navarch.api.codec import to_builtins
from navarch.api.markers import (
    NOT_GIVEN,
    Atomic,
    Embedded,
    Immutable,
    ListMap,
    ListSet,
    Meta,
    OneOf,
    Preserve,
    Rule,
    Scale,
    SchemaPatch,
)
from navarch.api.merge_patch import apply_merge_patch
from navarch.errors import DefinitionError
from navarch.schema.cel.lexer import escape
from navarch.schema.generation.annotations import QUANTITY_PATTERN, Annotation, SchemaLocation
from navarch.schema.inspection.keywords import SCHEMA_FORM, well_formed
from navarch.schema.inspection.structural import children
from navarch.schema.json_schema import JsonSchema

UNREADABLE_BYTES = "use str: the server's rules fail for base64 that has + or /"
_QUANTITY_RULE = (
    """write Rule("quantity(string(self)).compareTo(quantity('1Gi')) >= 0"): the server compares only numbers"""
)
_LARGEST = sys.float_info.max
_NUMBERS = {"integer", "number", None}
_STRINGS = {"string", None}
_SCALARS = {"string", "integer", "number", "boolean"}
_LENGTHS = {"array": "Items", "object": "Properties", "string": "Length", None: "Length"}
_COUNTS = {"exactly": "==", "at most": "<=", "at least": ">="}


def apply_markers(schema: JsonSchema, annotation: Annotation, where: SchemaLocation) -> None:
    """Adds the keywords of the markers to `schema`."""
    for marker in annotation.markers:
        _require_field_marker(marker, where)
    _apply_meta(schema, annotation.meta(), where)
    for marker in annotation.markers:
        _apply_list_or_map_type(schema, marker, where)
    if annotation.has(Preserve):
        kind = schema.get("type")
        _require(kind not in _SCALARS, where, "Preserve on a struct", f"type {kind}", "remove it: it has no fields")
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if annotation.has(Embedded):
        _embed(schema, where)
    unreadable = _holds_bytes(schema) if annotation.has(Immutable) else annotation.has(Rule) and _is_bytes(schema)
    _require(not unreadable, where, "rules on values that they can read", "bytes", UNREADABLE_BYTES)
    rules = [rule_schema(rule) for rule in annotation.every(Rule)]
    rules += [{"rule": "self == oldSelf", "message": marker.message} for marker in annotation.every(Immutable)]
    if rules:
        schema.setdefault("x-kubernetes-validations", []).extend(rules)
    for marker in annotation.every(SchemaPatch):
        apply_schema_patch(schema, marker, where)


def apply_schema_patch(schema: JsonSchema, marker: SchemaPatch, where: SchemaLocation) -> None:
    """Changes `schema` as the marker says. Raises `DefinitionError` if the result is malformed."""
    patched = well_formed_schema(apply_merge_patch(marker.patch, schema), "SchemaPatch", where)
    schema.clear()
    schema.update(patched)


def well_formed_schema(written: Any, marker: str, where: SchemaLocation) -> JsonSchema:
    """Returns what is written in a marker without nulls. Raises `DefinitionError` for keywords and values that schemas
    do not have.
    """
    schema, malformed = well_formed(written, SCHEMA_FORM)
    if malformed:
        told = (f"{fault.field or 'its root'}: {fault.message}; {fault.remedy}" for fault in malformed)
        raise DefinitionError("\n".join(f"{where.place}: {marker}, at {fault}" for fault in told))
    well: JsonSchema = schema
    return well


def _require_field_marker(marker: Any, where: SchemaLocation) -> None:
    """What only looks like a marker would be passed over without a word."""
    name = getattr(marker, "__name__", type(marker).__name__)
    forgotten = isinstance(marker, type) and marker.__module__ == Meta.__module__
    _require(not forgotten, where, "a marker", f"the class {name} itself", f"write {name}(...)")
    foreign = isinstance(marker, msgspec.Meta)
    _require(
        not foreign, where, "navarch's Meta", "msgspec's", "import it from navarch: msgspec's refuses stored objects"
    )
    misplaced = isinstance(marker, OneOf | Scale)
    _require(
        not misplaced,
        where,
        "a marker of a field",
        name,
        "give it to the class: one_of=(OneOf(...),), scale=Scale(...)",
    )


def _apply_meta(schema: JsonSchema, meta: Meta, where: SchemaLocation) -> None:
    _apply_bound(schema, "minimum", meta.ge, meta.gt, where)
    _apply_bound(schema, "maximum", meta.le, meta.lt, where)
    if meta.multiple_of is not None:
        kind = schema.get("type")
        _require(kind in _NUMBERS, where, "multiple_of on a number", f"type {kind}", "remove it")
        _require_number(meta.multiple_of, where)
        schema["multipleOf"] = _whole(meta.multiple_of)
    _apply_lengths(schema, meta, where)
    _apply_text(schema, meta, where)


def _apply_bound(
    schema: JsonSchema, keyword: str, inclusive: float | None, exclusive: float | None, where: SchemaLocation
) -> None:
    bound = inclusive if exclusive is None else exclusive
    if bound is None:
        return
    both = inclusive is not None and exclusive is not None
    _require(not both, where, "one bound on each side", "both an inclusive and an exclusive one", "keep one")
    _require(not _is_quantity(schema), where, "a rule as the bound of a quantity", keyword, _QUANTITY_RULE)
    kind, remedy = schema.get("type"), "use min_length or max_length"
    _require(kind in _NUMBERS, where, "a bound (ge, gt, le, lt) on a number", f"type {kind}", remedy)
    _require_number(bound, where)
    schema[keyword] = _whole(bound)
    if exclusive is not None:
        schema[f"exclusive{keyword.capitalize()}"] = True


def _apply_lengths(schema: JsonSchema, meta: Meta, where: SchemaLocation) -> None:
    for prefix, length in (("min", meta.min_length), ("max", meta.max_length)):
        if length is not None:
            kind = schema.get("type")
            _require(
                kind in _LENGTHS, where, f"{prefix}_length on a string, list or map", f"type {kind}", "use ge and le"
            )
            schema[f"{prefix}{_LENGTHS[kind]}"] = length


def _apply_text(schema: JsonSchema, meta: Meta, where: SchemaLocation) -> None:
    if meta.pattern is not None:
        kind = schema.get("type")
        _require(kind in _STRINGS, where, "a pattern on a string", f"type {kind}", "remove it, or write a Rule")
        schema["pattern"] = meta.pattern
    if meta.format == "":
        schema.pop("format", None)
    elif meta.format is not None:
        schema["format"] = meta.format
    if meta.enum is not None:
        _require(not isinstance(meta.enum, str), where, "enum as a tuple", repr(meta.enum), f"write ({meta.enum!r},)")
        schema["enum"] = [to_builtins(value) for value in meta.enum]
    if meta.nullable:
        schema["nullable"] = True
    if meta.title is not None:
        schema["title"] = meta.title
    if meta.example is not NOT_GIVEN:
        schema["example"] = to_builtins(meta.example)
    if meta.default is not NOT_GIVEN:
        schema["default"] = to_builtins(meta.default)


def _apply_list_or_map_type(schema: JsonSchema, marker: Any, where: SchemaLocation) -> None:
    kind = schema.get("type")
    if isinstance(marker, ListMap | ListSet):
        _require(kind == "array", where, f"{type(marker).__name__} on a list", f"type {kind}", "move it to the list")
        schema["x-kubernetes-list-type"] = "set" if isinstance(marker, ListSet) else "map"
        if isinstance(marker, ListMap):
            schema["x-kubernetes-list-map-keys"] = list(marker.keys)
    if isinstance(marker, Atomic):
        _require(
            kind in {"array", "object"},
            where,
            "Atomic on a list, map or struct",
            f"type {kind}",
            "remove it: a scalar is atomic anyway",
        )
        schema["x-kubernetes-list-type" if kind == "array" else "x-kubernetes-map-type"] = "atomic"


def _embed(schema: JsonSchema, where: SchemaLocation) -> None:
    _require(
        schema.get("type", "object") == "object",
        where,
        "Embedded on an object",
        f"type {schema.get('type')}",
        "use dict[str, Any] or a kind",
    )
    schema["type"] = "object"
    schema["x-kubernetes-embedded-resource"] = True
    schema.pop("additionalProperties", None)
    if not schema.get("properties"):
        schema["x-kubernetes-preserve-unknown-fields"] = True


def rule_schema(rule: Rule) -> JsonSchema:
    """Returns one entry of `x-kubernetes-validations`."""
    entry = {
        "rule": rule.expression,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
        "optionalOldSelf": rule.optional_old_self,
    }
    return {key: copy.copy(value) for key, value in entry.items() if value is not None}


def one_of_rule(group: OneOf, wire_names: list[str]) -> JsonSchema:
    """Returns the rule that counts the fields of a group that are set.

    >>> one_of_rule(OneOf("a", "b", require="at most"), ["a", "b"])["rule"]
    '[has(self.a), has(self.b)].filter(x, x).size() <= 1'
    """
    present = ", ".join(f"has(self.{_identifier(name)})" for name in wire_names)
    return {
        "rule": f"[{present}].filter(x, x).size() {_COUNTS[group.require]} 1",
        "message": f"{group.require} one of {', '.join(wire_names)} must be set",
    }


def removal_guard(wire_name: str, message: str) -> JsonSchema:
    """Returns the rule on a struct that keeps an immutable field from being removed.

    The server does not evaluate a rule on the field itself when the field is removed.
    """
    identifier = _identifier(wire_name)
    return {
        "rule": f"!has(oldSelf.{identifier}) || has(self.{identifier})",
        "message": message,
        "fieldPath": f".{wire_name}",
    }


def _is_quantity(schema: JsonSchema) -> bool:
    return bool(schema.get("pattern") == QUANTITY_PATTERN)


def _is_bytes(schema: JsonSchema) -> bool:
    return bool(schema.get("format") == "byte")


def _holds_bytes(schema: JsonSchema) -> bool:
    """Whether a comparison of two values would look at bytes."""
    return _is_bytes(schema) or any(_holds_bytes(child) for child, _ in children(schema, ""))


def _identifier(wire_name: str) -> str:
    identifier = escape(wire_name)
    if identifier is None:
        raise DefinitionError(f"expected a field that CEL can name, got {wire_name!r}; give it another wire name")
    return identifier


def _require_number(bound: Any, where: SchemaLocation) -> None:
    is_number = isinstance(bound, int | float) and not isinstance(bound, bool) and -_LARGEST <= bound <= _LARGEST
    _require(is_number, where, "a bound that is a number", repr(bound), "leave it out where there is none")


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _require(condition: bool, where: SchemaLocation, expected: str, got: str, remedy: str) -> None:
    if not condition:
        raise DefinitionError(f"{where.place}: expected {expected}, got {got}; {remedy}")
