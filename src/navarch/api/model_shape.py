"""The shape of a model as plain data: its wire names, and the keys that identify the items of a list.

Code that walks JSON beside its model (zero values, unknown fields) follows its shape.
"""

from __future__ import annotations

import enum
import re
import types
import typing
from collections.abc import Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from navarch.api.markers import ListMap
from navarch.api.model import fields_of
from navarch.api.quantity import Quantity


@dataclass(slots=True)
class ModelShape:
    """The shape of one type. A struct has `fields` by wire name, a list or map has `items`, a scalar has neither.

    `choices` are the values of an enum or literal; `unordered` marks a list that is a set in the model.
    """

    zero: Any = None
    fields: dict[str, ModelShape] | None = None
    required: frozenset[str] = frozenset()
    items: ModelShape | None = None
    keys: tuple[str, ...] = ()
    nullable: bool = False
    nullable_fields: frozenset[str] = frozenset()
    choices: tuple[Any, ...] = ()
    unordered: bool = False

    def at(self, path: str) -> ModelShape:
        """Returns the shape at a path as msgspec writes it: `$.spec.ports[0].name`."""
        shape = self
        for name, _ in _STEP.findall(path):
            shape = ((shape.fields or {}).get(name) if name else shape.items) or ModelShape()
        return shape

    def with_zero_values(self, value: Any) -> Any:
        """Returns `value` without nulls that the model does not permit, and with Go's zero values for
        required fields.
        """
        if isinstance(value, list) and self.items:
            return [self.items.with_zero_values(item) for item in value if item is not None or self.items.nullable]
        if not isinstance(value, dict):
            return value
        if self.fields is not None:
            return self._struct_with_zero_values(value)
        if self.items:
            return {key: self.items.with_zero_values(item) for key, item in value.items()}
        return value

    def _struct_with_zero_values(self, value: dict[str, Any]) -> dict[str, Any]:
        fields = self.fields or {}
        filled = {
            name: fields[name].with_zero_values(item) if name in fields else item
            for name, item in value.items()
            if item is not None or name in self.nullable_fields
        }
        for name in self.required - filled.keys():
            zero = None if name in self.nullable_fields else fields[name].zero
            if zero is not None or name in self.nullable_fields:
                filled[name] = fields[name].with_zero_values(zero)
        return filled


_LISTS = {list, tuple, Sequence, set, frozenset, AbstractSet}
_SETS = {set, frozenset, AbstractSet}
_MAPS = {dict, Mapping, MutableMapping}
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_ZEROS: dict[Any, Any] = {str: "", bytes: "", int: 0, float: 0.0, bool: False, Quantity: "0"}


@cache
def shape_of(annotation: Any) -> ModelShape:
    """Returns the shape of an annotation. Recursive models give recursive shapes."""
    return _ShapeBuilder().build(annotation)


@dataclass(slots=True)
class _ShapeBuilder:
    """Builds a shape; remembers the structs in progress, so that a recursive one ends."""

    structs: dict[type, ModelShape] = field(default_factory=dict)

    def build(self, annotation: Any) -> ModelShape:
        annotation = _unnamed(annotation)
        origin, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
        if origin is typing.Annotated:
            return self._annotated(arguments[0], arguments[1:])
        if origin in {typing.Union, types.UnionType}:
            return self._union(arguments)
        if origin is typing.Literal:
            return ModelShape(choices=arguments)
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            return self._struct(annotation)
        if isinstance(origin, type) and issubclass(origin, enum.Enum):
            return ModelShape(choices=tuple(member.value for member in origin))
        if origin in _LISTS:
            items = self.build(arguments[0] if arguments else Any)
            return ModelShape(zero=[], items=items, unordered=origin in _SETS)
        if origin in _MAPS:
            return ModelShape(zero={}, items=self.build(arguments[1] if arguments else Any))
        return ModelShape(zero=_ZEROS.get(annotation))

    def _annotated(self, annotation: Any, markers: tuple[Any, ...]) -> ModelShape:
        shape = self.build(annotation)
        for marker in markers:
            if isinstance(marker, ListMap) and shape.items:
                shape.keys = marker.keys
        return shape

    def _union(self, members: tuple[Any, ...]) -> ModelShape:
        """Returns the other member of a union with None; a union of several members is opaque."""
        known = [member for member in members if member is not types.NoneType]
        nullable = len(known) < len(members)
        if len(known) != 1:
            return ModelShape(zero=_ZEROS.get(known[0]), nullable=nullable)
        shape = self.build(known[0])
        if shape.fields is not None:
            return shape
        shape.nullable = nullable
        return shape

    def _struct(self, annotation: Any) -> ModelShape:
        if annotation in self.structs:
            return self.structs[annotation]
        shape = self.structs[annotation] = ModelShape(zero={}, fields={})
        infos = fields_of(annotation)
        shape.fields = {info.encode_name: self.build(info.type) for info in infos}
        shape.required = frozenset(info.encode_name for info in infos if info.required)
        shape.nullable_fields = frozenset(info.encode_name for info in infos if _may_be_null(info.type))
        return shape


def _unnamed(annotation: Any) -> Any:
    """Returns the type behind a NewType, or behind a type alias of Python 3.12."""
    while (inner := getattr(annotation, "__supertype__", None) or getattr(annotation, "__value__", None)) is not None:
        annotation = inner
    return annotation


def _may_be_null(annotation: Any) -> bool:
    if typing.get_origin(annotation) is typing.Annotated:
        return _may_be_null(typing.get_args(annotation)[0])
    return annotation is Any or types.NoneType in typing.get_args(annotation)
