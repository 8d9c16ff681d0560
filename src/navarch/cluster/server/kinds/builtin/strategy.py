"""The strategy of a built-in kind: what all kinds do, with the rules of this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from navarch.cluster.server.kinds.builtin.cells.rows import Rows
from navarch.cluster.server.kinds.builtin.checks.common import finalizer_name
from navarch.cluster.server.kinds.builtin.reset_fields import ResetFields
from navarch.cluster.server.kinds.builtin.rules import Rules
from navarch.cluster.server.kinds.builtin.schema import BuiltinSchema
from navarch.cluster.server.objects.metadata import immutable_faults, metadata_faults, metadata_update_faults
from navarch.cluster.server.objects.types import Operation
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import MOST_CAUSES
from navarch.errors import Cause

__all__ = ["BuiltinStrategy", "StatusStrategy", "count_generation"]

_NOT_COUNTED = frozenset({"metadata", "status", "apiVersion", "kind"})
_MOST_WARNINGS = 100
"""No more are looked for: a reply has room for about eighty."""


class BuiltinStrategy:
    """What depends on a built-in kind."""

    def __init__(
        self,
        schema: BuiltinSchema,
        rules: Rules,
        rows: Rows,
        reset_fields: ResetFields,
        *,
        subresource: str = "",
        namespaced: bool,
    ) -> None:
        self._schema = schema
        self._rules = rules
        self._rows = rows
        self._reset_fields = reset_fields
        self._written = reset_fields.of(subresource)
        self._namespaced = namespaced

    def default(self, value: Json) -> None:
        """Makes the object what Go would write, and fills in defaults."""
        holder, name = _holder(value, self._rules.never_empty)
        is_empty = holder is not None and holder.get(name) == {}
        empty = [way for way in self._rules.empty_lists if _at(value, way) == []]
        self._schema.normalize(value)
        if is_empty and holder is not None:
            holder[name] = {}
        for way in empty:
            _put(value, way, [])
        self._rules.default(value)

    def prepare_create(self, value: Json, operation: Operation) -> None:
        """Drops what a client may not set, and starts the generation where the kind has one."""
        self._forget_empty_lists(value)
        for name in self._reset_fields.create:
            value.pop(name, None)
        self._schema.complete(value)
        if self._rules.counts_generation:
            value["metadata"]["generation"] = 1
        self._rules.create(value, operation)

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:
        """Puts back what the object's own path does not take, and counts the generation where the kind has one."""
        self._forget_empty_lists(value)
        self._written.reset(value, old)
        self._rules.update(value, old, operation)
        if self._rules.counts_generation:
            count_generation(value, old, labels=self._rules.counts_labels)

    def validate_create(self, value: Json) -> list[Cause]:
        """Every fault, or the first of very many."""
        rules = self._rules
        metadata = [
            *metadata_faults(value, namespaced=self._namespaced, name_faults=rules.name_faults),
            *self._finalizer_faults(value),
        ]
        others = list(islice(chain(rules.check(value), rules.check_new(value)), MOST_CAUSES))
        return [*metadata, *others] if rules.checks_metadata or not others else others

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Every fault, immutable fields included."""
        return [
            *metadata_update_faults(value, old),
            *self._finalizer_faults(value),
            *islice(self._changed_faults(value, old), MOST_CAUSES),
        ]

    def _changed_faults(self, value: Json, old: Json) -> Iterator[Cause]:
        yield from self._rules.check(value)
        for field in self._reset_fields.fixed(value, old):
            yield from _immutable(*field)
        yield from self._rules.check_update(value, old)

    def warnings(self, value: Json, old: Json | None) -> list[str]:
        """What the client should know."""
        return list(islice(self._rules.warnings(value, old), _MOST_WARNINGS))

    def grace_seconds(self, value: Json, asked: int | None) -> int:
        """How long a deletion waits."""
        return self._rules.grace_seconds(value, asked)

    def selectable_fields(self, value: Json) -> Mapping[str, str]:
        """What field selectors may name."""
        return self._rules.fields(value)

    def cells(self, value: Json) -> list[Any]:
        """The cells of its row."""
        return self._rows.of(value)

    def _finalizer_faults(self, value: Json) -> list[Cause]:
        finalizers = (value["metadata"].get("finalizers") or ()) if self._rules.qualifies_finalizers else ()
        return [
            fault
            for index, name in enumerate(finalizers)
            for fault in finalizer_name(name, f"metadata.finalizers[{index}]")
        ]

    def _forget_empty_lists(self, value: Json) -> None:
        for way in self._rules.empty_lists:
            if _at(value, way) == []:
                _put(value, way, None)


class StatusStrategy(BuiltinStrategy):
    """The same kind through its `status`."""

    def prepare_create(self, value: Json, operation: Operation) -> None:
        """A status is never created on its own."""

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:
        """Takes the status, and of the metadata what the kind lets through."""
        self._written.reset(value, old)
        self._rules.update_status(value, old, operation)

    def warnings(self, value: Json, old: Json | None) -> list[str]:  # noqa: ARG002 - the contract's
        """Who writes a status does not answer for the rest."""
        return []

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Metadata, and what Kubernetes knows of the status: most of it is the business of whoever writes it."""
        return [*metadata_update_faults(value, old), *self._rules.check_status(value, old)]


def _immutable(path: str, sent: Any, stored: Any) -> list[Cause]:
    return immutable_faults(sent, stored, path)


def _holder(value: Json, way: tuple[str, ...]) -> tuple[Json | None, str]:
    """What holds the last part of the way, if it is there."""
    if not way:
        return None, ""
    found: Any = value
    for part in way[:-1]:
        found = found.get(part) if isinstance(found, dict) else None
    return (found if isinstance(found, dict) else None), way[-1]


def _at(value: Json, way: tuple[str, ...]) -> Any:
    holder, name = _holder(value, way)
    return None if holder is None else holder.get(name)


def _put(value: Json, way: tuple[str, ...], found: Any) -> None:
    holder, name = _holder(value, way)
    if holder is not None:
        holder[name] = found


def count_generation(value: Json, old: Json, *, labels: bool = False) -> None:
    """Counts the generation up if anything but metadata and status differs; if `labels`, or these."""
    generation = old.get("metadata", {}).get("generation", 0)
    changed = any(value.get(name) != old.get(name) for name in (value.keys() | old.keys()) - _NOT_COUNTED)
    changed = changed or (labels and value["metadata"].get("labels") != old.get("metadata", {}).get("labels"))
    changed = changed or (value["kind"] == "Deployment" and _annotations(value) != _annotations(old))
    value["metadata"]["generation"] = generation + 1 if changed else generation


def _annotations(value: Json) -> Json:
    """A Deployment counts their changes too, since its ReplicaSets get them."""
    return value.get("metadata", {}).get("annotations") or {}
