"""Schemas as Python types with markers, such that `navarch.schema.crd` derives the same schema from them.

Each type implies some keywords. Markers say the others, and `SchemaPatch` says those that no marker has. A schema that
no type describes stays as it is, in `RawSchema`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from navarch.project.models.crds import JsonSchema
from navarch.project.models.expressions import (
    Expression,
    OrNone,
    call,
    keyword,
    literal,
    subscript,
    text,
    tuple_of,
)
from navarch.project.models.structs import MARKS, SELECTABLE, is_struct
from navarch.schema.generation.annotations import QUANTITY_PATTERN

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
RULES: Final = "x-kubernetes-validations"
ANY_OF_INT_OR_STRING: Final = "_INT_OR_STRING"
"""The constant of a module that has the `anyOf` which most CRDs write beside int-or-string."""

_INTEGER_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_OF_FIELD_OR_CLASS: Final = frozenset({"description", *MARKS})
_VALUES: Final = frozenset({"default", "enum", "example"})
_LENGTHS: Final = {"string": "Length", "array": "Items", "object": "Properties", None: "Length"}
_NUMBERS: Final = ("integer", "number")
_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_FORMATS: Final = {"byte": "bytes", "date-time": "datetime"}
_RULE_ARGUMENTS: Final = {
    "message": "message",
    "messageExpression": "message_expression",
    "reason": "reason",
    "fieldPath": "field_path",
    "optionalOldSelf": "optional_old_self",
}


@dataclass(slots=True)
class _Type:
    """A type, with the keywords that follow from it."""

    expression: Expression
    implied: JsonSchema = field(default_factory=dict)


@dataclass(slots=True)
class TypeWriter:
    """Writes types. `class_of` gives the class of a struct; `used` gets the names that the module must import."""

    class_of: Callable[[JsonSchema], str]
    used: set[str] = field(default_factory=set)

    def annotation(self, schema: JsonSchema, *, optional: bool) -> Expression:
        """Returns the annotation of a field."""
        return self._annotation(schema, optional=optional, nullable_as_none=False)

    def rules(self, schema: JsonSchema) -> Expression:
        """Returns the rules of a class as a tuple."""
        return tuple_of(self._rule(rule) for rule in schema[RULES])

    def _annotation(self, schema: JsonSchema, *, optional: bool, nullable_as_none: bool) -> Expression:
        wanted = {key: value for key, value in schema.items() if key not in _OF_FIELD_OR_CLASS}
        try:
            found = self._type(schema)
            as_none = nullable_as_none and found.expression != "Any"
            markers = _Markers(wanted, found.implied, nullable_as_none=as_none).of(self)
        except _NoTypeError:
            found = _Type(_raw_type(wanted))
            self.used |= {"Any", "RawSchema"}
            markers = [call("RawSchema", [literal(undescribed(wanted))])]
        if schema.get(SELECTABLE):
            self.used.add("Selectable")
            markers.append("Selectable()")
        inner = OrNone(found.expression) if optional and found.expression != "Any" else found.expression
        if not markers:
            return inner
        self.used.add("Annotated")
        return subscript("Annotated", [inner, *markers])

    def element(self, schema: JsonSchema) -> Expression:
        """Returns the annotation of the items of a list, or the values of a map: None there is null."""
        return self._annotation(schema, optional=bool(schema.get("nullable")), nullable_as_none=True)

    def _type(self, schema: JsonSchema) -> _Type:
        kind = schema.get("type")
        if schema.get(INT_OR_STRING) and kind is None:
            return self._int_or_string(schema)
        if kind is None and schema.get(PRESERVE):
            self.used.add("Any")
            return _Type("Any", {PRESERVE: True})
        if kind == "array" and isinstance(schema.get("items"), dict):
            return _Type(subscript("list", [self.element(schema["items"])]), _kept(schema, "type", "items"))
        if kind == "object":
            return self._object(schema)
        if kind in _SCALARS:
            return self._scalar(schema)
        raise _NoTypeError

    def _int_or_string(self, schema: JsonSchema) -> _Type:
        if schema.get("pattern") == QUANTITY_PATTERN:
            self.used.add("Quantity")
            return _Type("Quantity", _kept(schema, INT_OR_STRING, "pattern"))
        self.used.add("IntOrString")
        return _Type("IntOrString", _kept(schema, INT_OR_STRING))

    def _scalar(self, schema: JsonSchema) -> _Type:
        kind, form = schema["type"], schema.get("format")
        if kind == "string" and form in _FORMATS:
            name = _FORMATS[form]
            self.used |= {"datetime"} if name == "datetime" else set()
            return _Type(name, _kept(schema, "type", "format"))
        implied = {"type": kind} | ({"format": "int64"} if kind == "integer" else {})
        return _Type(_SCALARS[kind], implied)

    def _object(self, schema: JsonSchema) -> _Type:
        if is_struct(schema):
            known = _kept(schema, "type", "properties", *([RULES] if has_plain_rules(schema) else []))
            listed = schema.get("required", [])
            required = [name for name in schema.get("properties", {}) if name in listed]
            known |= {"required": listed if set(required) == set(listed) else required} if required else {}
            return _Type(self.class_of(schema), known)
        values = schema.get("additionalProperties")
        if "properties" in schema or not isinstance(values, dict | None):
            raise _NoTypeError
        if values is None:
            return self._open_object(schema)
        inner = subscript("Annotated", ["Any", "Preserve()"]) if values == {PRESERVE: True} else self.element(values)
        self.used |= {"Annotated", "Any", "Preserve"} if values == {PRESERVE: True} else set()
        return _Type(subscript("dict", ["str", inner]), _kept(schema, "type", "additionalProperties"))

    def _open_object(self, schema: JsonSchema) -> _Type:
        if schema.get(EMBEDDED):
            self.used.add("Dynamic")
            return _Type("Dynamic", _kept(schema, "type", PRESERVE, EMBEDDED))
        self.used.add("Any")
        return _Type(subscript("dict", ["str", "Any"]), _kept(schema, "type", PRESERVE))

    def _rule(self, rule: Mapping[str, Any]) -> Expression:
        self.used.add("Rule")
        known = [keyword(name, literal(rule[key])) for key, name in _RULE_ARGUMENTS.items() if key in rule]
        return call("Rule", [text(rule["rule"]), *known])

    def rule_markers(self, rules: Any) -> list[Expression]:
        """Returns the rules of a field as markers."""
        return [self._rule(rule) for rule in rules]


class _NoTypeError(Exception):
    """No Python type has this schema."""


class _Markers:
    """Turns the keywords that the type does not imply into markers; `rest` has those that are left."""

    def __init__(self, wanted: JsonSchema, implied: JsonSchema, *, nullable_as_none: bool) -> None:
        self._kind = wanted.get("type")
        self._implied = implied
        self._is_quantity = implied.get("pattern") == QUANTITY_PATTERN
        self.rest: dict[str, Any] = {
            key: value for key, value in wanted.items() if key not in implied or implied[key] != value
        }
        self.rest |= {key: None for key in implied if key not in wanted}
        if nullable_as_none:
            self.rest.pop("nullable", None)

    def of(self, writer: TypeWriter) -> list[Expression]:
        """Returns the markers, in one order for all fields. Raises `_NoTypeError` where no marker could say it."""
        markers: list[Expression] = []
        meta = [keyword(name, value) for name, value in self._meta()]
        if meta:
            writer.used.add("Meta")
            markers.append(call("Meta", meta))
        for name, marker in self._structural():
            writer.used.add(name)
            markers.append(marker)
        if has_plain_rules(self.rest) and self._implied.get("format") != "byte":
            markers += writer.rule_markers(self.rest.pop(RULES))
        if self.rest.get("anyOf") == _INTEGER_OR_STRING and INT_OR_STRING in self._implied:
            del self.rest["anyOf"]
            writer.used |= {ANY_OF_INT_OR_STRING, "SchemaPatch"}
            markers.append(ANY_OF_INT_OR_STRING)
        if self.rest:
            if any(_holds_null(value) for value in self.rest.values()):
                raise _NoTypeError
            writer.used.add("SchemaPatch")
            markers.append(call("SchemaPatch", [literal({key: undescribed(each) for key, each in self.rest.items()})]))
        return markers

    def _meta(self) -> Iterator[tuple[str, Expression]]:
        if (self._kind in _NUMBERS or self._kind is None) and not self._is_quantity:
            yield from self._bound("minimum", "exclusiveMinimum", "ge", "gt")
            yield from self._bound("maximum", "exclusiveMaximum", "le", "lt")
            yield from self._taken("multipleOf", "multiple_of")
        if self._kind in _LENGTHS:
            yield from self._taken(f"min{_LENGTHS[self._kind]}", "min_length")
            yield from self._taken(f"max{_LENGTHS[self._kind]}", "max_length")
        if self._kind in {"string", None}:
            yield from self._taken("pattern", "pattern")
        if "format" in self.rest:
            yield "format", text(self.rest.pop("format") or "")
        if "enum" in self.rest:
            yield "enum", tuple_of(map(literal, self.rest.pop("enum")))
        for name in ("nullable", "title", "default", "example"):
            yield from self._taken(name, name)

    def _bound(self, key: str, exclusive: str, inclusive_name: str, exclusive_name: str) -> Iterator[tuple[str, Any]]:
        if self.rest.get(key) is None:
            return
        name = exclusive_name if self.rest.pop(exclusive, False) else inclusive_name
        yield name, literal(self.rest.pop(key))

    def _taken(self, key: str, name: str) -> Iterator[tuple[str, Any]]:
        if self.rest.get(key) is not None:
            yield name, literal(self.rest.pop(key))

    def _structural(self) -> Iterator[tuple[str, Expression]]:
        kind_of_list = self.rest.get("x-kubernetes-list-type")
        if self._kind == "array" and kind_of_list == "map" and "x-kubernetes-list-map-keys" in self.rest:
            del self.rest["x-kubernetes-list-type"]
            yield "ListMap", call("ListMap", map(text, self.rest.pop("x-kubernetes-list-map-keys")))
        elif self._kind == "array" and kind_of_list in {"set", "atomic"}:
            name = "ListSet" if self.rest.pop("x-kubernetes-list-type") == "set" else "Atomic"
            yield name, f"{name}()"
        if self._kind == "object" and self.rest.get("x-kubernetes-map-type") == "atomic":
            del self.rest["x-kubernetes-map-type"]
            yield "Atomic", "Atomic()"
        if self._kind not in _SCALARS and self.rest.get(PRESERVE):
            del self.rest[PRESERVE]
            yield "Preserve", "Preserve()"
        if self._kind == "object" and self.rest.get(EMBEDDED) and "properties" in self._implied:
            del self.rest[EMBEDDED]
            yield "Embedded", "Embedded()"


def undescribed(value: Any) -> Any:
    """Returns a part of a schema without descriptions and marks."""
    if isinstance(value, list):
        return [undescribed(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    kept = {
        key: each for key, each in value.items() if key not in _OF_FIELD_OR_CLASS or not isinstance(each, str | bool)
    }
    return {key: _undescribed_keyword(key, each) for key, each in kept.items()}


def _undescribed_keyword(key: str, value: Any) -> Any:
    if key == "properties" and isinstance(value, Mapping):
        return {name: undescribed(child) for name, child in value.items()}
    return value if key in _VALUES else undescribed(value)


def _kept(schema: JsonSchema, *keys: str) -> JsonSchema:
    return {key: schema[key] for key in keys if key in schema}


def _raw_type(schema: JsonSchema) -> Expression:
    if schema.get("type") == "object":
        return subscript("dict", ["str", "Any"])
    return subscript("list", ["Any"]) if schema.get("type") == "array" else "Any"


def has_plain_rules(schema: Mapping[str, Any]) -> bool:
    """Returns True for a schema with rules, if a `Rule` can say each of them."""
    rules: Any = schema.get(RULES, ())
    return bool(rules) and all("rule" in rule and set(rule) <= {"rule", *_RULE_ARGUMENTS} for rule in rules)


def _holds_null(value: Any) -> bool:
    """Returns True for a value that a merge patch cannot set, since null removes; None itself is meant to remove."""
    if isinstance(value, Mapping):
        return any(inner is None or _holds_null(inner) for inner in value.values())
    return isinstance(value, list) and any(_holds_null(inner) for inner in value)
