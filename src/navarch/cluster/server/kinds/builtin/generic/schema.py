"""Schemas of the built-in kinds, from the published OpenAPI and Go's types; each is compiled on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from navarch.cluster.server.kinds.builtin.generic.go_types import (
    ANYTHING,
    BYTES,
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    TIME,
    DecodePath,
    GoField,
    GoType,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    boolean_shape,
    integer_shape,
    number_shape,
    string_shape,
)
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause
from navarch.k8s.published import META, SCHEMA_REFERENCE, published

_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_OPAQUE: dict[str, Scalar] = {
    f"{META}.Time": TIME,
    f"{META}.MicroTime": MICRO_TIME,
    f"{META}.FieldsV1": ANYTHING,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": ANYTHING,
    f"{_EXTENSIONS}.JSON": ANYTHING,
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": ANYTHING,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": ANYTHING,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": ANYTHING,
}
"""Types that read and write themselves."""
_DATA = Path(__file__).parent / "data"
_EMPTY_FIELD = "o interface any"


class BuiltinSchema:
    """The shape of one kind; `name` is that of its published schema."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kind = name.rpartition(".")[2]

    @property
    def document(self) -> Mapping[str, Any]:
        """The schema with every reference resolved; what stands inside itself is, there, an object of any fields."""
        return resolved(self._name)

    def zero(self) -> Json:
        """Returns the object that Go writes if no field is set."""
        found: Json = struct_of(self._name).zero()
        return found

    def unknown_fields(self, value: Json) -> list[str]:
        """Drops unknown fields; returns their paths."""
        found: list[str] = []
        struct_of(self._name).unknown(value, "", found)
        return found

    def faults(self, value: Json) -> list[Cause]:
        """The first value that Go could not decode, in the decoder's words: it names no more than one."""
        struct = struct_of(self._name)
        if struct.fits(value):
            return []
        return [Cause("", "BadRequest", struct.fault(value, DecodePath(self._kind, "")))]

    def normalize(self, value: Json) -> None:
        """Makes the value what it is after Go has read and written it: no nulls, no empty fields, canonical quantities."""
        struct_of(self._name).normal(value)

    def complete(self, value: Json) -> None:
        """Adds, at the top, the fields that Go writes even if nothing is in them, such as `status`."""
        for name, unset in struct_of(self._name).zero().items():
            value.setdefault(name, unset)


@cache
def schema_of(name: str) -> BuiltinSchema:
    """Returns the schema with this published name."""
    return BuiltinSchema(name)


@cache
def _go_types() -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = msgspec.json.decode((_DATA / "go_types.json").read_bytes())
    return found


_STRUCTS: dict[str, Struct] = {}


def struct_of(name: str) -> Struct:
    """Returns the Go struct of a published schema."""
    known = _STRUCTS.get(name)
    if known is None:
        package, _, short = name.rpartition(".")
        known = _STRUCTS[name] = Struct(short, f"{package.rpartition('.')[2]}.{short}")
        go_fields = _go_types().get(package, {}).get(short, {})
        for field_name, property_ in published().schema(name).get("properties", {}).items():
            known.fields[field_name] = _field(property_, go_fields.get(field_name, _EMPTY_FIELD))
    return known


def _field(property_: Json, described: str) -> GoField:
    flags, go_kind, go_type = described.split(" ", 2)
    is_pointer = go_kind in {"ptr", "interface"}
    is_struct = go_kind == "struct"
    return GoField(
        _shape(property_, go_type.lstrip("*")),
        is_pointer=is_pointer,
        omits_empty="o" in flags and not is_pointer and not is_struct,
        omits_zero="z" in flags,
        is_always_written=(is_struct and "z" not in flags) or flags == "-",
    )


def _shape(property_: Json, go_type: str) -> GoType:
    if (reference := _reference(property_)) is not None:
        return _OPAQUE.get(reference) or struct_of(reference)
    match property_.get("type"):
        case "array":
            return ListOf(_shape(property_["items"], _element_type(go_type, "[]")), go_type)
        case "object" if "additionalProperties" in property_:
            return MapOf(_shape(property_["additionalProperties"], _element_type(go_type, "]")), go_type)
        case _:
            return _scalar(property_, go_type)


def _element_type(go_type: str, bracket: str) -> str:
    """`map[string]v1.ExtraValue` holds `v1.ExtraValue`; a named type does not say what it holds."""
    _, found, element = go_type.partition(bracket)
    return element.lstrip("*") if found and element else "string"


def _scalar(property_: Json, go_type: str) -> GoType:
    match property_.get("type"), property_.get("format"):
        case "string", "byte":
            return BYTES
        case "string", _:
            return string_shape(go_type)
        case "boolean", _:
            return boolean_shape(go_type)
        case "integer", size:
            return integer_shape(go_type, str(size))
        case "number", _:
            return number_shape(go_type)
        case _:
            return ANYTHING


def _reference(property_: Json) -> str | None:
    found = property_.get("$ref") or next((part["$ref"] for part in property_.get("allOf", ()) if "$ref" in part), None)
    return found.removeprefix(SCHEMA_REFERENCE) if isinstance(found, str) else None


_RESOLVED: dict[str, Json] = {}
_OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def resolved(name: str, above: tuple[str, ...] = ()) -> Json:
    """A published schema with its references resolved. Parts are shared: nobody may change them."""
    if name in above:
        return _OPEN
    known = _RESOLVED.get(name)
    if known is None:
        known = _resolved_schema(published().schema(name), (*above, name))
        if not above:
            _RESOLVED[name] = known
    return known


def _resolved_schema(schema: Json, above: tuple[str, ...]) -> Json:
    reference = _reference(schema)
    found = {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
    if reference is not None:
        return {**resolved(reference, above), **found}
    if "properties" in found:
        found["properties"] = {name: _resolved_schema(part, above) for name, part in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _resolved_schema(found[key], above)
    return found
