"""Markers: the schema of a field or class beyond its Python type.

Markers go into `Annotated[...]` beside the type they describe; rules, columns and one-of groups may also be class
keywords. They are data: `navarch.schema` turns them into a CRD. Decoding ignores them, so objects that were stored
before a rule was tightened can still be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import msgspec

MASK = "***"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # kubectl keeps the whole object there


def masked_repr(struct: Any) -> str:
    """The `__repr__` of a model with `sensitive=` fields."""
    return msgspec.Struct.__repr__(_masked(struct))


def masked_rich_repr(struct: Any) -> Any:
    """The `__rich_repr__` of a model with `sensitive=` fields."""
    return msgspec.Struct.__rich_repr__(_masked(struct))


def masked_json(wire: dict[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """Returns an object, in wire names, with the values of these fields masked."""
    hidden = {field: _hidden(wire[field]) for field in fields if field in wire}
    metadata = wire.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("annotations"), dict):
        hidden["metadata"] = metadata | {"annotations": _without_last_applied(metadata["annotations"])}
    return wire | hidden


def _masked(struct: Any) -> Any:
    hidden = {field: _hidden(getattr(struct, field)) for field in type(struct).__sensitive__}
    metadata: Any = getattr(struct, "metadata", None)
    if getattr(metadata, "annotations", None):
        annotations = _without_last_applied(metadata.annotations)
        hidden["metadata"] = msgspec.structs.replace(metadata, annotations=annotations)
    return msgspec.structs.replace(struct, **hidden)


def _hidden(value: Any) -> Any:
    """Masks values; the keys of a map and emptiness stay visible."""
    if isinstance(value, dict):
        return dict.fromkeys(value, MASK)
    return MASK if value else value


def _without_last_applied(annotations: dict[str, str]) -> dict[str, str]:
    return annotations | {_LAST_APPLIED: MASK} if _LAST_APPLIED in annotations else annotations


RuleReason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]
ColumnType = Literal["string", "integer", "number", "boolean", "date"]


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


NOT_GIVEN = _Unset()
"""Distinguishes a missing default or example from None."""


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """Validation keywords and documentation of one value.

    `min_length` and `max_length` bound strings, lists and maps alike. `format=""` omits the format that the type implies.
    `default` is a value that the API server fills in: unlike a default of the class it is not sent. `description`
    replaces the docstring and `description_limit` cuts it to that many characters (0 removes it). `nullable` permits an
    explicit null on the wire.
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
    example: Any = NOT_GIVEN
    default: Any = NOT_GIVEN

    def __hash__(self) -> int:
        return hash(repr(self))  # examples and defaults may be lists or maps


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule; `self` is the value of the field, or of the class with `rules=`.

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
    """A value that is set once: no update may change or remove it."""

    message: str = "is immutable"


@dataclass(frozen=True, slots=True, init=False)
class ListMap:
    """A list whose items are identified by these keys; server-side apply merges it item by item.

    >>> ListMap("name", "protocol").keys
    ('name', 'protocol')
    """

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)


class ListSet(msgspec.Struct, frozen=True):
    """A list of distinct scalars; server-side apply merges it value by value."""


class Atomic(msgspec.Struct, frozen=True):
    """A list, map or struct with one owner, replaced as a whole."""


class Preserve(msgspec.Struct, frozen=True):
    """The server keeps fields that the schema does not name, instead of pruning them."""


class Embedded(msgspec.Struct, frozen=True):
    """A whole Kubernetes object: apiVersion, kind and metadata are required and validated."""


class RawSchema(msgspec.Struct, frozen=True):
    """A hand-written schema of the value, which replaces that of the type. `schema` is OpenAPI v3 as a mapping."""

    schema: dict[str, Any]

    def __hash__(self) -> int:
        return hash(repr(self.schema))


class SchemaPatch(msgspec.Struct, frozen=True):
    """A JSON merge patch of the schema that follows from the type and the other markers: None removes a keyword.

    For keywords that no marker has, such as `anyOf`. A kind has it in `schema_patch=`.
    """

    patch: dict[str, Any]

    def __hash__(self) -> int:
        return hash(repr(self.patch))


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
    """Field selectors can select by this field."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The scale subresource: the paths of the wanted replicas, of the observed replicas, and of the pod selector."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str | None = None


@dataclass(frozen=True, slots=True, init=False)
class OneOf:
    """A group of fields of a class of which one may be set; a class has it in `one_of=`.

    `require` is "exactly", "at most" or "at least" one.
    """

    fields: tuple[str, ...]
    require: Literal["exactly", "at most", "at least"]

    def __init__(self, *fields: str, require: Literal["exactly", "at most", "at least"] = "exactly") -> None:
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "require", require)


class IntOrStringMarker(msgspec.Struct, frozen=True):
    """The marker behind `IntOrString`: an integer or a string (a port by number or by name)."""


IntOrString = Annotated[int | str, IntOrStringMarker()]
"""An integer or a string, such as a port by number or by name."""
