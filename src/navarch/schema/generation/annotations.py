"""Reads annotations: the type, its markers, whether it may be None, and the schema of types with one JSON value."""

from __future__ import annotations

import datetime as dt
import enum
import types
import typing
import uuid
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec.structs import fields, replace

from navarch.api.markers import Meta
from navarch.errors import DefinitionError
from navarch.schema.json_schema import JsonSchema


def merge_tagged(members: list[tuple[Any, JsonSchema]], where: SchemaLocation) -> JsonSchema:
    """Merges the fields of all members of a tagged union; `oneOf` requires those of the member that the tag names.

    Raises `DefinitionError` if members use one name for different schemas. Omits the members' defaults: the server
    would add them to the other members too.
    """
    tags = {struct.__struct_config__.tag: schema for struct, schema in members}
    tag_field = members[0][0].__struct_config__.tag_field
    properties: JsonSchema = {tag_field: {"type": "string", "enum": list(tags)}}
    for struct, schema in members:
        if schema.get("x-kubernetes-validations"):
            raise DefinitionError(
                f"{where.place}: expected members of a union without rules, got rules on {struct.__name__}; "
                f"write them on the field of the union"
            )
        _merge(properties, schema.get("properties", {}), where)
    alternatives = [_alternative(tag_field, tag, schema, properties) for tag, schema in tags.items()]
    return {"type": "object", "properties": properties, "required": [tag_field], "oneOf": alternatives}


def _merge(properties: JsonSchema, added: JsonSchema, where: SchemaLocation) -> None:
    for name, schema in added.items():
        known: JsonSchema = properties.get(name) or schema
        properties[name] = known
        if _undescribed(known) != _undescribed(schema):
            raise DefinitionError(
                f"{where.place}: expected one schema for {name!r} in every member of the union, got several; "
                f"rename the field in one of them, or use one Model with one_of=(OneOf(...),)"
            )
        text = schema.get("description", "")
        if text not in known.get("description", ""):
            known["description"] = f"{known.get('description', '')}\n{text}".strip()


def _undescribed(schema: JsonSchema) -> JsonSchema:
    """Members may say different things of a field that has the same values."""
    bare = {key: value for key, value in schema.items() if key != "description"}
    for key in ("items", "additionalProperties"):
        if isinstance(bare.get(key), dict):
            bare[key] = _undescribed(bare[key])
    if "properties" in bare:
        bare["properties"] = {name: _undescribed(child) for name, child in bare["properties"].items()}
    return bare


def _alternative(tag_field: str, tag: Any, schema: JsonSchema, properties: JsonSchema) -> JsonSchema:
    foreign = [name for name in properties if name != tag_field and name not in schema.get("properties", {})]
    alternative: JsonSchema = {"properties": {tag_field: {"enum": [tag]}}}
    if schema.get("required"):
        alternative["required"] = schema["required"]
    if foreign:
        alternative["not"] = {"anyOf": [{"required": [name]} for name in foreign]}
    return alternative


@dataclass(frozen=True, slots=True)
class SchemaLocation:
    """One location in a kind, with its three names.

    `place` is for people (`Memcached.spec.size_gib`), `path` is inside the schema
    (`.properties[spec].properties[sizeGib]`), `json_path` is inside an object (`.spec.sizeGib`; None below a list or
    map, where there is no single path).
    """

    place: str
    path: str = ""
    json_path: str | None = ""

    def field(self, name: str, wire_name: str) -> SchemaLocation:
        """Returns the location of a field of this struct."""
        json_path = None if self.json_path is None else f"{self.json_path}.{wire_name}"
        return SchemaLocation(f"{self.place}.{name}", f"{self.path}.properties[{wire_name}]", json_path)

    def item(self) -> SchemaLocation:
        """Returns the location of the items of this list."""
        return SchemaLocation(f"{self.place}[]", f"{self.path}.items", None)

    def value(self) -> SchemaLocation:
        """Returns the location of the values of this map."""
        return SchemaLocation(f"{self.place}{{}}", f"{self.path}.additionalProperties", None)


def author_place(path: str, places: Mapping[str, str]) -> str:
    """Returns the author's name of a schema path; a part that only a hand-written schema has stays as it is.

    >>> author_place(".properties[spec].pattern", {"": "Cache", ".properties[spec]": "Cache.spec"})
    'Cache.spec'
    """
    known = max((known for known in places if path.startswith(known)), key=len)
    below = path[len(known) :]
    return places[known] + (below if ".properties[" in below or ".items" in below else "")


M = TypeVar("M")
_UNSET_TYPES = (types.NoneType, msgspec.UnsetType)
_META_FIELDS = [(entry.name, entry.default) for entry in fields(Meta)]


class Annotation(msgspec.Struct, frozen=True):
    """A parsed annotation. `core` is the type without None and without markers; a union of several types
    stays a union.
    """

    core: Any
    markers: tuple[Any, ...] = ()
    optional: bool = False

    def every(self, marker: type[M]) -> list[M]:
        """Returns the markers of that type, the innermost first."""
        return [found for found in self.markers if isinstance(found, marker)]

    def has(self, marker: type[Any]) -> bool:
        """Returns True if there is a marker of that type."""
        return any(isinstance(found, marker) for found in self.markers)

    def meta(self) -> Meta:
        """Returns all `Meta` markers as one; an outer one overrides an inner one."""
        merged = Meta()
        for meta in self.every(Meta):
            given = {name: getattr(meta, name) for name, unset in _META_FIELDS if getattr(meta, name) != unset}
            merged = replace(merged, **given)
        return merged


def take_apart(annotation: Any) -> Annotation:
    """Parses an annotation: removes `Annotated` and `| None`, in either order.

    >>> take_apart(typing.Annotated[int, Meta(ge=0)] | None).core
    <class 'int'>
    """
    if typing.get_origin(annotation) is typing.Annotated:
        core, *markers = typing.get_args(annotation)
        inner = take_apart(core)
        return Annotation(inner.core, (*inner.markers, *markers), inner.optional)
    if isinstance(annotation, typing.NewType):
        return take_apart(annotation.__supertype__)
    if hasattr(annotation, "__value__"):  # type Port = Annotated[int, Meta(ge=1)], from Python 3.12 on
        return take_apart(annotation.__value__)
    members = union_members(annotation)
    some = [member for member in members if member not in _UNSET_TYPES]
    if len(some) == len(members):
        return Annotation(annotation)
    if len(some) == 1:
        return replace(take_apart(some[0]), optional=True)
    return Annotation(typing.Union[tuple(some)] if some else types.NoneType, (), optional=True)  # noqa: UP007 - built at run time


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Returns the members of a union; any other type is its own only member."""
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return typing.get_args(annotation)
    return (annotation,)


def literal_values(annotation: Any) -> tuple[Any, ...] | None:
    """Returns the values of a `Literal`, or of a union of several; None for any other type.

    >>> literal_values(typing.Literal["a"] | typing.Literal["b"])
    ('a', 'b')
    """
    members = union_members(annotation)
    if any(typing.get_origin(member) is not typing.Literal for member in members):
        return None
    return tuple(dict.fromkeys(value for member in members for value in typing.get_args(member)))


QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_DURATION_PATTERN = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"

_PLAIN: dict[Any, JsonSchema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
    dt.datetime: {"type": "string", "format": "date-time"},
    dt.date: {"type": "string", "format": "date"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
    object: {"x-kubernetes-preserve-unknown-fields": True},
    msgspec.Raw: {"x-kubernetes-preserve-unknown-fields": True},
}
# By name, so that describing a kind does not import types that it does not use.
_NAMED: dict[str, JsonSchema] = {
    "navarch.api.quantity.Quantity": {"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN},
    "navarch.api.duration.Duration": {"type": "string", "pattern": _DURATION_PATTERN},
    "navarch.api.times.MicroTime": {"type": "string", "format": "date-time"},
}
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def scalar_schema(core: Any) -> JsonSchema | None:
    """Returns the schema of a scalar type; None for any other type.

    >>> scalar_schema(int)
    {'type': 'integer', 'format': 'int64'}
    """
    members = set(union_members(core))
    if members == {int, str}:
        return {"x-kubernetes-int-or-string": True}
    if members == {int, float}:
        return {"type": "number"}
    own = getattr(core, "json_schema", None)
    if own is not None and isinstance(core, type):
        return dict(own())
    known = _PLAIN.get(core) if isinstance(core, Hashable) else None
    known = known or _NAMED.get(f"{getattr(core, '__module__', '')}.{getattr(core, '__qualname__', '')}")
    return None if known is None else dict(known)


def enum_schema(core: Any) -> JsonSchema | None:
    """Returns the schema of an `Enum` or `Literal`; None for other types, an empty one if the values have several
    types.
    """
    values = _values(core)
    if values is None:
        return None
    found = {_JSON_TYPES.get(type(value)) for value in values}
    kind = found.pop() if len(found) == 1 else None
    return {} if kind is None else {"type": kind, "enum": list(values)}


def _values(core: Any) -> tuple[Any, ...] | None:
    if isinstance(core, type) and issubclass(core, enum.Enum):
        return tuple(member.value for member in core)
    values = literal_values(core)
    return None if values is None else tuple(value for value in values if value is not None)
