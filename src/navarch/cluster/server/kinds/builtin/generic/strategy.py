"""Rules, which hold what is special about one built-in kind, and the strategies that apply them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import msgspec

from navarch.api.names import DNS_SUBDOMAIN
from navarch.cluster.server.kinds.builtin.generic.checks import finalizer_name
from navarch.cluster.server.kinds.builtin.generic.columns import Cells, Rows
from navarch.cluster.server.kinds.builtin.generic.schema import BuiltinSchema
from navarch.cluster.server.kinds.builtin.reset_fields import ResetFields
from navarch.cluster.server.objects.metadata import immutable_faults, metadata_faults, metadata_update_faults
from navarch.cluster.server.objects.types import DeletionRules, WriteContext
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import MOST_CAUSES
from navarch.errors import Cause


def nothing(*_: Any) -> None:
    """Does nothing."""


def no_causes(*_: Any) -> list[Cause]:
    """Returns no faults."""
    return []


def no_warnings(*_: Any) -> list[str]:
    """Returns no warnings."""
    return []


def no_fields(_: Json) -> Mapping[str, str]:
    """Returns no selectable fields."""
    return {}


def no_grace(_value: Json, _asked: int | None) -> int:
    """Returns 0: the object is deleted at once."""
    return 0


def path_segment_faults(name: str) -> Sequence[str]:
    """The server's sentences about a name that only has to fit into a path: those of roles, for example."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in name]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one kind; the defaults are the behaviour of most kinds."""

    default: Callable[[Json], None] = nothing
    create: Callable[[Json, WriteContext], None] = nothing
    update: Callable[[Json, Json, WriteContext], None] = nothing
    update_status: Callable[[Json, Json, WriteContext], None] = nothing
    """Completes a status that is written as a subresource."""
    check: Callable[[Json], Iterable[Cause]] = no_causes
    check_new: Callable[[Json], Iterable[Cause]] = no_causes
    """Checks new objects only."""
    check_update: Callable[[Json, Json], Iterable[Cause]] = no_causes
    check_status: Callable[[Json, Json], Iterable[Cause]] = no_causes
    """Checks a status that is written as a subresource."""
    warnings: Callable[[Json, Json | None], Iterable[str]] = no_warnings
    name_faults: Callable[[str], Sequence[str]] = DNS_SUBDOMAIN.faults
    """Returns the faults of an object's name."""
    counts_generation: bool = False
    """`metadata.generation` counts changes of everything but metadata and status."""
    grace_seconds: Callable[[Json, int | None], int] = no_grace
    fields: Callable[[Json], Mapping[str, str]] = no_fields
    allows_unconditional_update: bool = True
    """An update may omit the resourceVersion."""
    never_empty: tuple[str, ...] = ()
    """The path of a map that an empty value leaves in place, so that the fault names an empty map and not a missing one."""
    empty_lists: tuple[tuple[str, ...], ...] = ()
    """The paths of lists that Go writes even if empty: the sender of an empty list owns it, though none is stored."""
    counts_labels: bool = False
    """The generation also counts changes of labels."""
    checks_metadata: bool = True
    """Faults of the metadata are reported beside others; if False, only when there are no others."""
    counts_annotations: bool = False
    """The generation also counts changes of annotations."""
    qualifies_finalizers: bool = True
    """Finalizers other than Kubernetes' own need a domain."""
    cells: Cells | None = None
    """The row of an object in a table; None shows its name and age."""
    subresources: Mapping[str, type[BuiltinStrategy]] = {}
    """Strategies of subresources that are a part of the object; any other `status` has a `BuiltinStatusStrategy`."""
    creates_on_update: bool = False
    """An update of an object that does not exist creates it."""
    returns_deleted: bool = False
    """A deletion returns the object instead of a Status."""
    mark_deleted: Callable[[Json], None] | None = None
    """Changes an object that is marked for deletion."""
    convert: Callable[[Sequence[Json], str], Awaitable[list[Json]]] | None = None
    """Converts objects to another apiVersion; None for kinds with one shape."""
    storage_version: str = ""
    """The version that is stored; "" is the version that is served."""
    deletion: DeletionRules = DeletionRules()
    has_watch_cache: bool = True
    """Malformed resource versions are reported in the words of Kubernetes' watch cache."""
    selects_namespace: bool = True
    """Field selectors may name `metadata.namespace`."""
    unknown_field_label: str = ""
    """The message about a field selector that names `{path}`; empty for the usual one."""
    is_own_namespace: bool = False
    """Paths below a namespace of the same name lead to the object."""
    hidden_annotation: str = ""
    """An annotation that answers with metadata alone lack."""
    stored_as: tuple[str, str] | None = None
    """The group and version in which Kubernetes stores the kind, if neither is the one that is served."""
    storage_prefix: str = ""
    """The prefix of the keys in etcd, below `/registry/`; "" is the name of the resource."""


_NOT_COUNTED = frozenset({"metadata", "status", "apiVersion", "kind"})
_MOST_WARNINGS = 100
"""The limit of warnings: a reply has room for about eighty."""


class BuiltinStrategy:
    """The strategy of a built-in kind: the behaviour of all kinds, with the rules of this one."""

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

    def prepare_create(self, value: Json, operation: WriteContext) -> None:
        """Drops the fields that clients cannot set, and starts the generation if the kind has one."""
        self._forget_empty_lists(value)
        for name in self._reset_fields.create:
            value.pop(name, None)
        self._schema.complete(value)
        if self._rules.counts_generation:
            value["metadata"]["generation"] = 1
        self._rules.create(value, operation)

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:
        """Restores the fields that the object's own path does not accept, and counts the generation if the kind has one."""
        self._forget_empty_lists(value)
        self._written.reset(value, old)
        self._rules.update(value, old, operation)
        if self._rules.counts_generation:
            count_generation(value, old, labels=self._rules.counts_labels, annotations=self._rules.counts_annotations)

    def validate_create(self, value: Json) -> list[Cause]:
        """Returns the faults, at most `MOST_CAUSES`."""
        rules = self._rules
        metadata = [
            *metadata_faults(value, namespaced=self._namespaced, name_faults=rules.name_faults),
            *self._finalizer_faults(value),
        ]
        others = list(islice(chain(rules.check(value), rules.check_new(value)), MOST_CAUSES))
        return [*metadata, *others] if rules.checks_metadata or not others else others

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Returns the faults, changed immutable fields included."""
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
        """Returns the warnings for the client."""
        return list(islice(self._rules.warnings(value, old), _MOST_WARNINGS))

    def grace_seconds(self, value: Json, asked: int | None) -> int:
        """Returns the grace period of a deletion."""
        return self._rules.grace_seconds(value, asked)

    def selectable_fields(self, value: Json) -> Mapping[str, str]:
        """Returns the fields that field selectors can name."""
        return self._rules.fields(value)

    def cells(self, value: Json) -> list[Any]:
        """Returns the cells of the object's row."""
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


class BuiltinStatusStrategy(BuiltinStrategy):
    """The strategy of the `status` subresource of a built-in kind."""

    def prepare_create(self, value: Json, operation: WriteContext) -> None:
        """Does nothing: a status is never created on its own."""

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:
        """Takes the status, and the metadata that the kind accepts."""
        self._written.reset(value, old)
        self._rules.update_status(value, old, operation)

    def warnings(self, value: Json, old: Json | None) -> list[str]:  # noqa: ARG002 - the contract's
        """Returns none: a writer of the status is not warned about the spec."""
        return []

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Checks the metadata, and the fields of the status that Kubernetes checks."""
        return [*metadata_update_faults(value, old), *self._rules.check_status(value, old)]


def _immutable(path: str, sent: Any, stored: Any) -> list[Cause]:
    return immutable_faults(sent, stored, path)


def _holder(value: Json, way: tuple[str, ...]) -> tuple[Json | None, str]:
    """Returns the object that holds the last element of the path, if there is one."""
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


def count_generation(value: Json, old: Json, *, labels: bool = False, annotations: bool = False) -> None:
    """Increments the generation if anything but metadata and status differs, or the labels or annotations that count."""
    before = old.get("metadata", {})
    changed = any(value.get(name) != old.get(name) for name in (value.keys() | old.keys()) - _NOT_COUNTED)
    changed = changed or (labels and value["metadata"].get("labels") != before.get("labels"))
    if annotations and not changed:
        changed = (value["metadata"].get("annotations") or {}) != (before.get("annotations") or {})
    generation = before.get("generation", 0)
    value["metadata"]["generation"] = generation + 1 if changed else generation
