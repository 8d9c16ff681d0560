"""What a field or class says about its schema, beyond its Python type.

Markers go into `Annotated[...]` beside the type they describe; rules, columns and the one-of groups may also be
given to the class. They are data: `navarch.schema` turns them into a CRD. Decoding does not look at them, so an
object that was stored before a rule was tightened can still be read.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import msgspec

__all__ = [
    "Atomic",
    "Column",
    "Embedded",
    "Immutable",
    "IntOrString",
    "ListMap",
    "ListSet",
    "Meta",
    "OneOf",
    "Preserve",
    "RawSchema",
    "Rule",
    "Scale",
    "Selectable",
]

RuleReason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]
ColumnType = Literal["string", "integer", "number", "boolean", "date"]


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


NO_EXAMPLE = _Unset()
"""Tells "no example" from an example that is None."""


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """Validation keywords and documentation of one value.

    `min_length` and `max_length` bound strings, lists and maps alike. `description` replaces the docstring and
    `description_limit` cuts it to that many characters (0 leaves it out). `nullable` lets the value be an explicit
    null on the wire.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    enum: tuple[Any, ...] | None = None
    nullable: bool = False
    title: str | None = None
    description: str | None = None
    description_limit: int | None = None
    example: Any = NO_EXAMPLE


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule; `self` is the value that it is attached to. It goes on a field, or on a class with `rules=`.

    >>> Rule("self.min <= self.max", message="min must not exceed max").expression
    'self.min <= self.max'
    """

    expression: str
    _: KW_ONLY
    message: str | None = None
    message_expression: str | None = None
    reason: RuleReason | None = None
    field_path: str | None = None
    optional_old_self: bool | None = None


class Immutable(msgspec.Struct, frozen=True):
    """The value may be set once and never changed; it may not be removed either."""

    message: str = "is immutable"


@dataclass(frozen=True, slots=True, init=False)
class ListMap:
    """A list whose items are told apart by these keys; server-side apply merges it item by item.

    >>> ListMap("name", "protocol").keys
    ('name', 'protocol')
    """

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)


class ListSet(msgspec.Struct, frozen=True):
    """A list of distinct scalars; server-side apply merges it value by value."""


class Atomic(msgspec.Struct, frozen=True):
    """A list, map or struct that has one owner and is replaced as a whole."""


class Preserve(msgspec.Struct, frozen=True):
    """Fields the schema does not name are kept by the server instead of being pruned."""


class Embedded(msgspec.Struct, frozen=True):
    """The value is a whole Kubernetes object: apiVersion, kind and metadata are required and validated."""


class RawSchema(msgspec.Struct, frozen=True):
    """The schema of the value, written by hand; nothing is derived from the type. `schema` is OpenAPI v3 as a mapping."""

    schema: dict[str, Any]

    def __hash__(self) -> int:
        return hash(repr(self.schema))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; on a field its path and type are derived, on a class (`columns=`) they are given.

    `priority` above 0 shows the column only with `-o wide`.
    """

    name: str
    _: KW_ONLY
    path: str | None = None
    type: ColumnType | None = None
    format: str | None = None
    description: str | None = None
    priority: int = 0


class Selectable(msgspec.Struct, frozen=True):
    """The field can be used in a field selector."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The scale subresource: where replicas are asked for, where they are counted, where the pod selector is."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str | None = None


@dataclass(frozen=True, slots=True, init=False)
class OneOf:
    """A group of fields of a class of which some may be set; given with `one_of=`.

    `require` says how many: "exactly" one, "at most" one, "at least" one.
    """

    fields: tuple[str, ...]
    require: Literal["exactly", "at most", "at least"]

    def __init__(self, *fields: str, require: Literal["exactly", "at most", "at least"] = "exactly") -> None:
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "require", require)


class IntOrStringMarker(msgspec.Struct, frozen=True):
    """Stands behind `IntOrString`: the value is an integer or a string (a port by number or by name)."""


IntOrString = Annotated[int | str, IntOrStringMarker()]
"""An integer or a string, such as a port by number or by name."""
