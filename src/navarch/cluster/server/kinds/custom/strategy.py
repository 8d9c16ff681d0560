"""Strategies of custom kinds, for the object and for its status, and the columns that a definition declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from navarch.cluster.server.kinds.builtin.generic.columns import Ages
from navarch.cluster.server.kinds.custom.paths import ScalePaths, Visits, compile_path
from navarch.cluster.server.kinds.custom.schema import CustomSchema
from navarch.cluster.server.objects.metadata import metadata_faults, metadata_update_faults
from navarch.cluster.server.objects.types import TableColumn, WriteContext
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import forbidden
from navarch.errors import Cause, InvalidValueError
from navarch.schema.values.violations import go_number

Cells = Callable[[Json], list[Any]]
_LEAST, _MOST = -(2**63), 2**63 - 1
_NAME: Final = TableColumn("Name", "string", "name")
_AGE: Final[Json] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def columns_of(version: Json) -> tuple[TableColumn, ...]:
    """The columns of a version: always the name, then what it declares, or the age."""
    declared = version.get("additionalPrinterColumns")
    if not declared:
        return (_NAME, TableColumn("Age", "date"))
    return (_NAME, *map(_column, declared))


def _column(declared: Json) -> TableColumn:
    described = f"Custom resource definition column (in JSONPath format): {declared.get('jsonPath', '')}"
    return TableColumn(
        declared["name"],
        declared["type"],
        declared.get("format", ""),
        declared.get("description") or described,
        declared.get("priority", 0),
    )


def cells_of(version: Json, ages: Ages) -> Cells:
    """A function from an object to the cells of its row. What too much would have to be looked at for is left empty."""
    cells = [_cell(column, ages) for column in version.get("additionalPrinterColumns") or [_AGE]]

    def row(value: Json) -> list[Any]:
        visits = Visits()
        return [value["metadata"].get("name", ""), *(cell(value, visits) for cell in cells)]

    return row


def _cell(column: Json, ages: Ages) -> Callable[[Json, Visits], Any]:
    try:
        find = compile_path(column.get("jsonPath", ""))
    except InvalidValueError:
        return lambda _value, _visits: None
    show = _shown_by(column["type"], ages)

    def cell(value: Json, visits: Visits) -> Any:
        found = find(value, visits)
        return show(found[0]) if found else None

    return cell


def _shown_by(kind: str, ages: Ages) -> Callable[[Any], Any]:
    match kind:
        case "integer":
            return lambda value: max(_LEAST, min(_MOST, int(value))) if _is_number(value) else None
        case "number":
            return lambda value: value if _is_number(value) else None
        case "boolean":
            return lambda value: value if isinstance(value, bool) else None
        case "date":
            return lambda value: _age(value, ages) if isinstance(value, str) else None
        case _:
            return _text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _age(moment: str, ages: Ages) -> str:
    shown = ages.since(moment)
    return "<invalid>" if moment and shown == "<unknown>" else shown


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if _is_number(value):
        return go_number(value)
    return msgspec.json.encode(value, order="sorted").decode()


_TERMINATING: Final = "create not allowed while custom resource definition is terminating"
_NOTHING: Final = object()
_KNOWN_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


class CustomForm:
    """The parts that the strategies of one version share. `is_terminating` is set when the CRD is being deleted."""

    def __init__(
        self,
        *,
        group: str,
        plural: str,
        schema: CustomSchema,
        cells: Cells,
        selectable: Mapping[str, Callable[[Json], list[Any]]],
        scale: ScalePaths | None,
        namespaced: bool,
        has_status: bool,
    ) -> None:
        self.group = group
        self.plural = plural
        self.schema = schema
        self.cells = cells
        self.selectable = selectable
        self.scale = scale
        self.namespaced = namespaced
        self.has_status = has_status
        self.is_terminating = False
        self.not_counted = frozenset({"metadata", "status"}) if has_status else frozenset({"metadata"})


class CustomStrategy:
    """The strategy of a custom kind."""

    def __init__(self, form: CustomForm) -> None:
        self.form = form
        self._schema = form.schema

    def default(self, value: Json) -> None:
        """Fills in the defaults of the schema."""
        self._schema.default(value)

    def prepare_create(self, value: Json, operation: WriteContext) -> None:  # noqa: ARG002 - the contract's
        """Drops the status where it is a subresource; refuses new objects of a kind that is about to go."""
        if self.form.is_terminating:
            raise forbidden(self.form.group, self.form.plural, value["metadata"].get("name", ""), _TERMINATING)
        if self.form.has_status:
            value.pop("status", None)
        value["metadata"]["generation"] = 1

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:  # noqa: ARG002 - the contract's
        """Keeps the status where it is a subresource, and counts the generation."""
        if self.form.has_status:
            _take(value, "status", old)
        generation = old["metadata"].get("generation", 0)
        value["metadata"]["generation"] = generation + 1 if self._differs(value, old) else generation

    def _differs(self, value: Json, old: Json) -> bool:
        names = (value.keys() | old.keys()) - self.form.not_counted
        return any(value.get(name, _NOTHING) != old.get(name, _NOTHING) for name in names)

    def validate_create(self, value: Json) -> list[Cause]:
        """Metadata, schema, scale, then the rules."""
        faults = metadata_faults(value, namespaced=self.form.namespaced)
        return self._checked(value, None, faults)

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Checks an update: unchanged faults are tolerated, transition rules evaluated."""
        return self._checked(value, old, metadata_update_faults(value, old))

    def _checked(self, value: Json, old: Json | None, faults: list[Cause]) -> list[Cause]:
        faults += self._schema.shape_faults(value, old)
        if self.form.scale is not None:
            faults += self.form.scale.spec_faults(value)
        return faults + self._schema.invariant_faults(value, old, faults)

    def warnings(self, value: Json, old: Json | None) -> list[str]:
        """New finalizers without a domain."""
        finalizers = value["metadata"].get("finalizers")
        if not finalizers:
            return []
        known = (old or {}).get("metadata", {}).get("finalizers", ())
        return [
            f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid accidental conflicts '
            "with other finalizer writers"
            for name in finalizers
            if "/" not in name and name not in known and name not in _KNOWN_FINALIZERS
        ]

    def grace_seconds(self, value: Json, asked: int | None) -> int:  # noqa: ARG002 - the contract's
        """Custom objects have nothing to wait for."""
        return 0

    def selectable_fields(self, value: Json) -> Mapping[str, str]:
        """Returns the selectable fields that the CRD declares."""
        return {name: _selected(find(value)) for name, find in self.form.selectable.items()}

    def cells(self, value: Json) -> list[Any]:
        """Returns the cells of the object's row."""
        return self.form.cells(value)


class CustomStatusStrategy(CustomStrategy):
    """The strategy of `status` of a custom kind: takes the status and nothing else."""

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:  # noqa: ARG002 - the contract's
        """Everything but the status stays as it was; managed fields are those of this write."""
        status, managed = value.get("status"), value["metadata"].get("managedFields")
        value.clear()
        value.update(old)
        value.pop("status", None)
        if status is not None:
            value["status"] = status
        value["metadata"] = {**old["metadata"]}
        value["metadata"].pop("managedFields", None)
        if managed is not None:
            value["metadata"]["managedFields"] = managed

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """The status is checked on its own, the rules see the whole object."""
        faults = metadata_update_faults(value, old) + self._schema.status_shape_faults(value, old)
        if self.form.scale is not None:
            faults += self.form.scale.status_faults(value)
        return faults + self._schema.invariant_faults(value, old, faults)


def _take(value: Json, name: str, old: Json) -> None:
    if name in old:
        value[name] = old[name]
    else:
        value.pop(name, None)


def _selected(found: list[Any]) -> str:
    if not found or found[0] is None:
        return ""
    if isinstance(found[0], bool):
        return "true" if found[0] else "false"
    return str(found[0])
