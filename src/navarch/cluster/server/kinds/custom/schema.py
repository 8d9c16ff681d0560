"""The structural schema of one version of a custom kind, as the server uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.generic.go_types import Where
from navarch.cluster.server.kinds.builtin.generic.schema import struct_of
from navarch.cluster.server.kinds.custom.shaping import compile_filling, compile_knowing
from navarch.cluster.server.wire.budget import RequestBudget, cel_budget, opened
from navarch.cluster.server.wire.go_text import go_kind
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.errors import Cause
from navarch.k8s.published import META
from navarch.schema import cel
from navarch.schema.values.checks import compile_check
from navarch.schema.values.correlation import MISSING
from navarch.schema.values.embedded import compile_embedded
from navarch.schema.values.rules import compile_rules
from navarch.schema.values.shaping import prune_unknown
from navarch.schema.values.uniqueness import compile_uniqueness
from navarch.schema.values.violations import Violation, causes

__all__ = ["CustomSchema"]

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


class CustomSchema:
    """A structural schema, compiled."""

    def __init__(self, document: Json) -> None:
        self.document: Mapping[str, Any] = document
        self._document = document
        self._check = compile_check(document, root=True)
        status = (document.get("properties") or {}).get("status")
        self._check_status = compile_check(status) if status else None
        self._embedded = compile_embedded(document)
        self._uniqueness = compile_uniqueness(document)
        self._rules = compile_rules(document, is_object=True)
        self._metadata = struct_of(_OBJECT_META)
        self._fill = compile_filling(document)
        self._knows = compile_knowing(document, own=_ITS_OWN)

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
        """What a Go server could not decode: of a custom object that is the metadata alone."""
        metadata = value.get("metadata")
        if metadata is None or self._metadata.fits(metadata):
            return []
        if not isinstance(metadata, dict):
            said = f"json: cannot unmarshal {go_kind(metadata)} into Go value of type v1.ObjectMeta"
        else:
            said = self._metadata.fault(_in_order(metadata), Where("ObjectMeta", ""))
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
        """The same for the status alone, which is checked on its own: messages name paths inside of it."""
        if self._check_status is None or "status" not in value:
            return []
        found = causes(self._check_status(value["status"], old.get("status", MISSING)))
        return [Cause(f"status.{fault.field}".removesuffix("."), fault.reason, fault.message) for fault in found]

    def invariant_faults(self, value: Json, old: Json | None, found: Sequence[Cause]) -> list[Cause]:
        """Embedded objects, sets and rules; rules are not asked if some faults that were `found` make that senseless."""
        faults: list[Violation] = []
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
    """Whether Go would write the metadata as it read it: nothing null or empty, and nothing with a form of its own."""
    if not all(metadata.values()) or "ownerReferences" in metadata or "managedFields" in metadata:
        return False
    return all(None not in metadata[name].values() for name in ("labels", "annotations") if name in metadata)
