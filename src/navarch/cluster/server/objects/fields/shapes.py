"""`FieldShapes`: the rules of a schema about owning and merging fields, compiled once.

For each place in an object a shape tells whether an object there is owned as a whole (atomic) or member by member, and
whether a list is owned as a whole, is a set, or has items that are known by their keys.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

REFERENCE: Final = "#/components/schemas/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_FREE_TEXT_FORMATS: Final = frozenset({"", "byte"})
_SCALARS: Final = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}

Json = Mapping[str, Any]


class MergeForm(enum.IntEnum):
    """How an object or a list may be owned. A set is a list without keys."""

    NONE = 0
    ATOMIC = 1
    GRANULAR = 2
    SET = 3


class FieldShape:
    """One place in objects of a kind; it may allow a scalar, an object and a list at once where it has no type."""

    __slots__ = (
        "by_item",
        "by_member",
        "fields",
        "hides_atomic",
        "items",
        "key_defaults",
        "key_prefix",
        "keys",
        "list_form",
        "map_form",
        "others",
        "scalar",
        "typed",
    )

    def __init__(self) -> None:
        self.scalar = ""
        """`string`, `numeric`, `boolean`, `untyped`; empty where none is allowed."""
        self.map_form = MergeForm.NONE
        self.fields: dict[str, tuple[str, FieldShape]] = {}
        """The declared members: the path element and the shape of each."""
        self.others: FieldShape | None = None
        """The members that are not declared; None where there may be none."""
        self.list_form = MergeForm.NONE
        self.items: FieldShape | None = None
        self.keys: tuple[str, ...] = ()
        """The members by which the items of a list are known, sorted."""
        self.key_defaults: dict[str, Any] = {}
        self.typed = False
        """Whether values that are equal in Python are equal in JSON too: 1, 1.0 and True cannot meet here."""
        # What follows is said above too, but in the form in which it is needed for each field of each object.
        self.by_member = False
        """Whether an object here is owned member by member."""
        self.by_item = False
        """Whether a list here is owned item by item."""
        self.key_prefix = ""
        """How the path element of an item begins, if the items have one key only."""
        self.hides_atomic = True
        """Whether something that is owned as a whole, with parts of its own, may be here or further in."""

    def member(self, name: str) -> tuple[str, FieldShape]:
        """The path element and the shape of a member."""
        return self.fields.get(name) or (f"f:{name}", self.others or DEDUCED)

    def seal(self) -> FieldShape:
        """Derives what is derived, when all else is known."""
        self.by_member = self.map_form == MergeForm.GRANULAR
        self.by_item = self.list_form > MergeForm.ATOMIC
        self.key_prefix = f'k:{{"{self.keys[0]}":' if len(self.keys) == 1 else ""
        self.typed = self.scalar != "untyped" and all(each.typed for each in self.below())
        atomic = MergeForm.ATOMIC in {self.map_form, self.list_form}
        self.hides_atomic = atomic or any(each.hides_atomic for each in self.below())
        return self

    def below(self) -> Iterator[FieldShape]:
        """The shapes of members and items. One that is not sealed yet, since it refers to itself, claims nothing."""
        for _, shape in self.fields.values():
            yield shape
        if self.others is not None:
            yield self.others
        if self.items is not None:
            yield self.items

    def at(self, element: str) -> FieldShape | None:
        """The shape behind a path element; None if there is none."""
        if element[0] == "f" and self.map_form:
            known = self.fields.get(element[2:])
            return known[1] if known else self.others
        return self.items if element[0] != "f" and self.list_form else None

    def is_field(self, element: str) -> bool:
        """Whether the element is a declared member."""
        return element[0] == "f" and element[2:] in self.fields

    def as_atomic(self) -> FieldShape:
        """The same, owned as a whole."""
        copy = FieldShape()
        for name in FieldShape.__slots__:
            setattr(copy, name, getattr(self, name))
        copy.map_form = MergeForm.ATOMIC if self.map_form else MergeForm.NONE
        copy.list_form = MergeForm.ATOMIC if self.list_form else MergeForm.NONE
        return copy.seal()


def _untyped() -> FieldShape:
    shape = FieldShape()
    shape.scalar, shape.map_form, shape.list_form = "untyped", MergeForm.ATOMIC, MergeForm.ATOMIC
    shape.others = shape.items = shape
    return shape.seal()


UNTYPED: Final = _untyped()
"""Anything, owned as a whole."""


def _deduced() -> FieldShape:
    shape = FieldShape()
    shape.scalar, shape.map_form, shape.list_form = "untyped", MergeForm.GRANULAR, MergeForm.ATOMIC
    shape.others, shape.items = shape, UNTYPED
    return shape.seal()


DEDUCED: Final = _deduced()
"""Anything without a schema: objects are owned member by member, lists as a whole."""


def _scalar(kind: str) -> FieldShape:
    shape = FieldShape()
    shape.scalar = kind
    return shape.seal()


_SCALAR_SHAPES: Final = {kind: _scalar(kind) for kind in ("string", "numeric", "boolean", "untyped")}


class FieldShapes:
    """Compiles schemas. `find` gives those that are referred to, by their full names."""

    def __init__(self, find: Callable[[str], Json]) -> None:
        self._find = find
        self._named: dict[str, FieldShape] = {}

    def of(self, schema: Json, *, preserve_unknown: bool = False) -> FieldShape:
        """The shape of values that a schema describes; references are followed, to themselves too."""
        name = _reference(schema)
        if name is None:
            return self._inline(schema, preserve_unknown)
        shape = self.named(name)
        return shape.as_atomic() if schema.get("x-kubernetes-map-type") == "atomic" else shape

    def named(self, name: str) -> FieldShape:
        """The shape of a schema by its full name."""
        if name == _QUANTITY:
            return _SCALAR_SHAPES["untyped"]
        if name == _RAW_EXTENSION:
            return UNTYPED
        if name not in self._named:
            shape = self._named[name] = FieldShape()
            self._fill(shape, self._find(name), preserve_unknown=False)
        return self._named[name]

    def _inline(self, schema: Json, preserve_unknown: bool) -> FieldShape:
        kind = _scalar_kind(schema)
        if kind:
            return _SCALAR_SHAPES[kind]
        shape = FieldShape()
        self._fill(shape, schema, preserve_unknown=preserve_unknown)
        return shape

    def _fill(self, shape: FieldShape, schema: Json, *, preserve_unknown: bool) -> None:
        preserve_unknown = preserve_unknown or schema.get("x-kubernetes-preserve-unknown-fields") is True
        shape.scalar = _scalar_kind(schema)
        kind = schema.get("type")
        if kind in {None, "object"}:
            self._fill_map(shape, schema, preserve_unknown)
        if kind in {None, "array"}:
            self._fill_list(shape, schema, preserve_unknown)
        shape.scalar = shape.scalar or ("" if kind else "untyped")
        shape.seal()

    def _fill_map(self, shape: FieldShape, schema: Json, preserve_unknown: bool) -> None:
        shape.map_form = MergeForm.ATOMIC if schema.get("x-kubernetes-map-type") == "atomic" else MergeForm.GRANULAR
        properties = {**schema.get("properties", {}), **_embedded(schema)}
        for name, below in properties.items():
            shape.fields[name] = (f"f:{name}", self.of(below, preserve_unknown=preserve_unknown))
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            shape.others = self.of(others, preserve_unknown=preserve_unknown)
        elif others is True or (others is None and (preserve_unknown or not properties)):
            shape.others = DEDUCED

    def _fill_list(self, shape: FieldShape, schema: Json, preserve_unknown: bool) -> None:
        shape.list_form, keys = _list_form(schema)
        items = schema.get("items")
        shape.items = UNTYPED if items is None else self.of(items, preserve_unknown=preserve_unknown)
        shape.keys = tuple(sorted(keys))
        if items is not None:
            shape.key_defaults = self._defaults(items, shape.keys)

    def _defaults(self, items: Json, keys: tuple[str, ...]) -> dict[str, Any]:
        """What keys that an item does not have are taken to be."""
        if not keys:
            return {}
        name = _reference(items)
        properties = (self._find(name) if name else items).get("properties", {})
        found = {key: properties.get(key, {}).get("default") for key in keys}
        return {key: default for key, default in found.items() if default is not None}


def _reference(schema: Json) -> str | None:
    """The name of the schema that this one stands for, directly or as the only one of `allOf`."""
    reference = schema.get("$ref")
    all_of = schema.get("allOf")
    if reference is None and all_of is not None and len(all_of) == 1:
        reference = all_of[0].get("$ref")
    return None if reference is None else str(reference).removeprefix(REFERENCE)


def _scalar_kind(schema: Json) -> str:
    kind = schema.get("type", "")
    if kind == "string":
        return "string" if schema.get("format", "") in _FREE_TEXT_FORMATS else "untyped"
    return _SCALARS.get(kind, "")


def _list_form(schema: Json) -> tuple[MergeForm, tuple[str, ...]]:
    declared = schema.get("x-kubernetes-list-type")
    if declared is None and "merge" in schema.get("x-kubernetes-patch-strategy", ""):
        key = schema.get("x-kubernetes-patch-merge-key")
        return (MergeForm.GRANULAR, (key,)) if key else (MergeForm.SET, ())
    if declared == "map":
        return MergeForm.GRANULAR, tuple(schema.get("x-kubernetes-list-map-keys", ()))
    return (MergeForm.SET, ()) if declared == "set" else (MergeForm.ATOMIC, ())


def _embedded(schema: Json) -> Json:
    """What an object of Kubernetes inside another has beside what its schema says."""
    if schema.get("x-kubernetes-embedded-resource") is not True:
        return {}
    text = {"type": "string"}
    return {"apiVersion": text, "kind": text, "metadata": {"$ref": f"{REFERENCE}{META}.ObjectMeta"}}
