"""Structural schemas of custom kinds: defaults, pruning and validation, compiled once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from navarch.api.json_patch import copy_json
from navarch.cluster.server.kinds.builtin.generic.go_types import DecodePath
from navarch.cluster.server.kinds.builtin.generic.schema import struct_of
from navarch.cluster.server.wire.budget import RequestBudget, cel_budget, current_budget, opened
from navarch.cluster.server.wire.go_text import go_kind
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.errors import Cause
from navarch.k8s.published import META
from navarch.schema import cel
from navarch.schema.values.checks import Check, compile_check
from navarch.schema.values.defaulting import prune_unknown
from navarch.schema.values.embedded import compile_embedded
from navarch.schema.values.list_types import MISSING, compile_uniqueness
from navarch.schema.values.rules import RuleNode, compile_rules
from navarch.schema.values.violations import SchemaViolation, causes

Fill = Callable[[Any], None]
Knows = Callable[[Any], bool]


class _SchemaChild(NamedTuple):
    """The treatment of a null value and of nested values."""

    keeps_null: bool
    default: Any
    size: int
    """The number of values in the default."""
    fill: Fill | None

    def copied_default(self) -> Any:
        """A copy, charged to the request."""
        current_budget().charge_nodes(self.size)
        return copy_json(self.default)


_NO_CHILD: Final = _SchemaChild(keeps_null=True, default=None, size=0, fill=None)


def compile_filling(schema: Json) -> Fill | None:
    """A function that fills in defaults, in place, and drops nulls that mean nothing; None if there is nothing to do."""
    fields = {name: _child(below) for name, below in (schema.get("properties") or {}).items()}
    values, items = schema.get("additionalProperties"), schema.get("items")
    others = _child(values) if isinstance(values, dict) else _NO_CHILD
    item = _child(items) if isinstance(items, dict) else _NO_CHILD
    if not fields and others is _NO_CHILD and item is _NO_CHILD:
        return None
    defaults = {name: child for name, child in fields.items() if child.default is not None}

    def fill(value: Any) -> None:
        if isinstance(value, dict):
            for name, child in defaults.items():
                if name not in value:
                    value[name] = child.copied_default()
            _fill_object(value, fields, others)
        elif isinstance(value, list) and item is not _NO_CHILD:
            _fill_list(value, item)

    return fill


def _child(schema: Json) -> _SchemaChild:
    default = schema.get("default")
    return _SchemaChild(bool(schema.get("nullable")), default, _size(default), compile_filling(schema))


def _size(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, inner))


def _fill_object(value: Json, fields: dict[str, _SchemaChild], others: _SchemaChild) -> None:
    dropped: list[str] = []
    for name, inner in value.items():
        kind = type(inner)
        if kind is dict or kind is list:
            below = fields.get(name, others).fill
            if below is not None:
                below(inner)
        elif inner is None:
            child = fields.get(name, others)
            if child.keeps_null:
                continue
            if child.default is None:
                dropped.append(name)
            else:
                value[name] = _filled(child)
    for name in dropped:
        del value[name]


def _fill_list(value: list[Any], item: _SchemaChild) -> None:
    for index, inner in enumerate(value):
        if inner is None and not item.keeps_null and item.default is not None:
            value[index] = _filled(item)
        elif item.fill is not None:
            item.fill(inner)


def _filled(child: _SchemaChild) -> Any:
    value = child.copied_default()
    if child.fill is not None:
        child.fill(value)
    return value


def compile_knowing(schema: Json, *, own: frozenset[str] = frozenset()) -> Knows | None:
    """A function that says whether a schema knows every field of an object or list; None where all are known.

    `own` are fields that need not be in the schema. It may say no where it would take more than a look: of objects
    inside of objects, and of what keeps some unknown fields.
    """
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return _is_empty
    fields = {name: compile_knowing(below) for name, below in (schema.get("properties") or {}).items()}
    names = frozenset(fields) | own
    checked = [(name, knows) for name, knows in fields.items() if knows is not None and name not in own]
    values, items = schema.get("additionalProperties"), schema.get("items")
    is_map = isinstance(values, dict)
    each_value = compile_knowing(values) if isinstance(values, dict) else None
    each_item = compile_knowing(items) if isinstance(items, dict) else _is_empty

    def knows(value: Any) -> bool:
        if type(value) is list:
            return each_item is None or _all_known(each_item, value)
        if is_map:
            return each_value is None or _all_known(each_value, value.values())
        if not names >= value.keys():
            return False
        for name, inner in checked:
            found = value.get(name)
            if (type(found) is dict or type(found) is list) and not inner(found):
                return False
        return True

    return knows


def _all_known(knows: Knows, values: Iterable[Any]) -> bool:
    """Only objects and lists have fields: the rest is not asked about."""
    return all(knows(value) for value in values if type(value) is dict or type(value) is list)


def _is_empty(value: Any) -> bool:
    return not value


_OBJECT_META: Final = f"{META}.ObjectMeta"
_ITS_OWN: Final = frozenset({"apiVersion", "kind", "metadata"})
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_NOT_ASKED: Final = Cause(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


_ValueCheck = Callable[[Any], list[SchemaViolation]]


class _CompiledSchema(NamedTuple):
    """The functions of a structural schema. They have no state, so that equal schemas can share them."""

    check: Check
    check_status: Check | None
    embedded: _ValueCheck | None
    uniqueness: _ValueCheck | None
    rules: RuleNode | None
    fill: Fill | None
    knows: Knows | None


_compiled_schemas: dict[bytes, _CompiledSchema] = {}
"""The last compiled schemas by their digest, oldest first: tests install the same CRDs again and again, on fresh clusters."""
_MOST_COMPILED: Final = 16
_LARGEST_SHARED: Final = 256 * 1024


def _compiled(document: Json) -> _CompiledSchema:
    """Returns the functions of a schema; those of an equal schema of before, unless it is very large."""
    content = msgspec.json.encode(document)
    digest = hashlib.sha256(content).digest()
    made = _compiled_schemas.pop(digest, None) or _compile(document)
    if len(content) <= _LARGEST_SHARED:
        _compiled_schemas[digest] = made
        if len(_compiled_schemas) > _MOST_COMPILED:
            del _compiled_schemas[next(iter(_compiled_schemas))]
    return made


def _compile(document: Json) -> _CompiledSchema:
    status = (document.get("properties") or {}).get("status")
    return _CompiledSchema(
        check=compile_check(document, root=True),
        check_status=compile_check(status) if status else None,
        embedded=compile_embedded(document),
        uniqueness=compile_uniqueness(document),
        rules=compile_rules(document, is_object=True),
        fill=compile_filling(document),
        knows=compile_knowing(document, own=_ITS_OWN),
    )


class CustomSchema:
    """A structural schema, compiled."""

    def __init__(self, document: Json) -> None:
        self.document: Mapping[str, Any] = document
        self._document = document
        self._metadata = struct_of(_OBJECT_META)
        made = _compiled(document)
        self._check, self._check_status = made.check, made.check_status
        self._embedded, self._uniqueness, self._rules = made.embedded, made.uniqueness, made.rules
        self._fill, self._knows = made.fill, made.knows

    def zero(self) -> Json:
        """Metadata are always there."""
        return {"metadata": {}}

    def unknown_fields(self, value: Json) -> list[str]:
        """Drops unknown fields; returns their paths: those of the metadata first, those of embedded objects last."""
        if (self._knows is None or self._knows(value)) and self._knows_metadata(value.get("metadata")):
            return []
        return sorted(prune_unknown(value, self._document), key=_order)

    def _knows_metadata(self, metadata: Any) -> bool:
        return not isinstance(metadata, dict) or self._metadata.fields.keys() >= metadata.keys()

    def faults(self, value: Json) -> list[Cause]:
        """Returns the decode errors of a Go server: in a custom object, those of the metadata."""
        metadata = value.get("metadata")
        if metadata is None or self._metadata.fits(metadata):
            return []
        if not isinstance(metadata, dict):
            said = f"json: cannot unmarshal {go_kind(metadata)} into Go value of type v1.ObjectMeta"
        else:
            said = self._metadata.fault(_in_order(metadata), DecodePath("ObjectMeta", ""))
        return [Cause("metadata", "BadRequest", said)]

    def default(self, value: Json) -> None:
        """Fills in defaults, and drops nulls that mean nothing."""
        if self._fill is not None:
            self._fill(value)
        metadata = value.get("metadata")
        if metadata and not _is_plain(metadata):
            value["metadata"] = self._metadata.normal(metadata)

    def reshape(self, value: Json) -> None:
        """Brings an object that was stored under an older schema into the shape that this one asks for.

        It has a budget of its own, since a list may have many such objects. One that defaults would make larger than a
        request may be is left with those that fit: it has to remain readable.
        """
        prune_unknown(value, self._document)
        if self._fill is not None:
            with suppress(StatusError), opened(RequestBudget()):
                self._fill(value)

    def shape_faults(self, value: Json, old: Json | None) -> list[Cause]:
        """Values that do not fit; those that have not changed since `old` are forgiven."""
        return [_placed(each) for each in causes(self._check(value, MISSING if old is None else old))]

    def status_shape_faults(self, value: Json, old: Json) -> list[Cause]:
        """Returns the faults of the status alone, with paths relative to it."""
        if self._check_status is None or "status" not in value:
            return []
        found = causes(self._check_status(value["status"], old.get("status", MISSING)))
        return [Cause(f"status.{fault.field}".removesuffix("."), fault.reason, fault.message) for fault in found]

    def invariant_faults(self, value: Json, old: Json | None, found: Sequence[Cause]) -> list[Cause]:
        """Embedded objects, sets and rules; rules are not asked if some faults that were `found` make that senseless."""
        faults: list[SchemaViolation] = []
        if self._embedded is not None:
            faults += self._embedded(value)
        if self._uniqueness is not None and not (old is not None and self._uniqueness(old)):
            faults += self._uniqueness(value)
        said = causes(faults)
        if self._rules is None:
            return said
        if any(fault.reason in _BLOCKING for fault in (*found, *said)):
            return [*said, _NOT_ASKED]
        with cel_budget(cel.RUNTIME_COST_BUDGET) as budget:
            broken = self._rules.check(value, MISSING if old is None else old, lambda: False, budget)
        return [*said, *causes(broken)]


def _placed(fault: Cause) -> Cause:
    """Kubernetes says in words alone where a number is that does not fit its type."""
    is_number = fault.message.startswith('Invalid value: "": Checked value must be of type ')
    return Cause("<nil>", fault.reason, fault.message) if is_number else fault


def _in_order(value: Any) -> Any:
    """Fields as Go visits those of an object that it has no type for."""
    return {name: _in_order(value[name]) for name in sorted(value)} if isinstance(value, dict) else value


def _order(path: str) -> int:
    if path.startswith("metadata."):
        return 0
    return 2 if ".metadata." in path else 1


def _is_plain(metadata: Json) -> bool:
    """Tells whether Go writes the metadata as it reads it: no nulls, no empty values, no canonical forms."""
    if not all(metadata.values()) or "ownerReferences" in metadata or "managedFields" in metadata:
        return False
    return all(None not in metadata[name].values() for name in ("labels", "annotations") if name in metadata)
