"""CustomResourceDefinitions as a kind of their own: defaults, checks, what a deletion does to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from navarch.cluster.server.kinds.custom.status import ESTABLISHED, TERMINATING, condition, is_true, with_condition
from navarch.cluster.server.objects.metadata import immutable_faults, metadata_faults, metadata_update_faults
from navarch.cluster.server.objects.types import ResourceType, Strategy, WriteContext
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required
from navarch.errors import Cause

if TYPE_CHECKING:
    from navarch.schema import DefinitionFault


GROUP: Final = "apiextensions.k8s.io"
PLURAL: Final = "customresourcedefinitions"
FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
_PENDING: Final = condition(
    TERMINATING,
    True,
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)


def definition_type(builtin: ResourceType) -> ResourceType:
    """The resource of CRDs as it is served, made from what all built-in kinds have in common."""
    status = builtin.subresources["status"]
    strategy = DefinitionStrategy(builtin.strategy)
    return replace(
        builtin,
        strategy=strategy,
        subresources={**builtin.subresources, "status": replace(status, strategy=DefinitionStatus(builtin.strategy))},
        mark_deleted=_mark_deleted,
        unconditional_update=False,
    )


def _mark_deleted(value: Json) -> None:
    """A CRD is not gone before its objects are: that is what its finalizer is for."""
    metadata = value["metadata"]
    if FINALIZER not in metadata.get("finalizers", ()) and not is_true(value["status"], TERMINATING):
        metadata["finalizers"] = [*metadata.get("finalizers", ()), FINALIZER]
        value["status"] = with_condition(value["status"], _PENDING, metadata["deletionTimestamp"])
        metadata.pop("deletionGracePeriodSeconds", None)
        if metadata.get("generation"):
            metadata["generation"] -= 1  # all others count the mark


class DefinitionStrategy:
    """The strategy of CRDs, around the strategy of built-in kinds."""

    def __init__(self, builtin: Strategy) -> None:
        self._builtin = builtin

    def default(self, value: Json) -> None:
        """Names that follow from others, and how versions are converted."""
        self._builtin.default(value)
        spec = value.get("spec")
        if isinstance(spec, dict):
            _default_spec(spec)

    def prepare_create(self, value: Json, operation: WriteContext) -> None:
        """A new CRD has a status in which nothing has been decided yet."""
        self._builtin.prepare_create(value, operation)
        value["metadata"]["generation"] = 1
        value["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": _stored_versions(value, []),
        }

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:
        """Keeps the status, counts the generation, and remembers each version in which objects were stored."""
        self._builtin.prepare_update(value, old, operation)
        status = old.get("status", {})
        value["status"] = {**status, "storedVersions": _stored_versions(value, status.get("storedVersions") or [])}
        changed = value.get("spec") != old.get("spec")
        value["metadata"]["generation"] = old["metadata"].get("generation", 0) + changed

    def validate_create(self, value: Json) -> list[Cause]:
        """Every fault."""
        return [*metadata_faults(value, namespaced=False), *_faults(value)]

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Every fault; what objects depend on must not change."""
        return [
            *metadata_update_faults(value, old),
            *(fault for fault in _faults(value) if fault.field != "metadata.name"),
            *_stored_version_faults(value),
            *_immutable_faults(value, old),
        ]

    def warnings(self, value: Json, old: Json | None) -> list[str]:
        """Formats that nobody checks."""
        formats = sorted(
            {each for version in value["spec"]["versions"] for each in _unknown_formats(version.get("schema"))}
        )
        told = [f'unrecognized format "{each}"' for each in formats]
        return [*self._builtin.warnings(value, old), *told]

    def grace_seconds(self, value: Json, asked: int | None) -> int:
        """CRDs have nothing to wait for but their finalizer."""
        return self._builtin.grace_seconds(value, asked)

    def selectable_fields(self, value: Json) -> Mapping[str, str]:
        """Returns no fields besides the name."""
        return self._builtin.selectable_fields(value)

    def cells(self, value: Json) -> list[Any]:
        """The cells of its row."""
        return self._builtin.cells(value)


class DefinitionStatus(DefinitionStrategy):
    """The status of a CRD, which the server itself writes."""

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:  # noqa: ARG002 - the contract's
        """The spec stays as it was."""
        value["spec"] = old["spec"]
        value["metadata"]["generation"] = old["metadata"].get("generation", 0)

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Metadata; that its versions fit together is asked of whoever writes the spec."""
        return metadata_update_faults(value, old)


def _default_spec(spec: Json) -> None:
    names = spec.get("names")
    if isinstance(names, dict) and isinstance(kind := names.get("kind"), str) and kind:
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind"):
            names["listKind"] = f"{kind}List"
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if isinstance(service, dict):
        service.setdefault("port", 443)


def _stored_versions(value: Json, known: list[str]) -> list[str]:
    stored = [version["name"] for version in value["spec"].get("versions") or () if version.get("storage")]
    return known + [name for name in stored[:1] if name not in known]


def _faults(value: Json) -> list[Cause]:
    current_budget().charge_cel_source(_cel_size(value))
    from navarch.schema import definition_faults  # noqa: PLC0415 - long to import, and needed when the first CRD is made

    versions = value["spec"].get("versions") or []
    found = [_cause(fault, _place(fault.field, versions)) for fault in definition_faults(value)]
    return [*(cause for cause in found if cause.field), *_old_faults(value["spec"])]


_SCHEMA: Final = "spec.versions[0].schema."


def _cel_size(value: Any) -> int:
    """Returns the number of characters of CEL in a CRD."""
    size, pending = 0, [value]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            pending += each.values()
            size += sum(len(each[name]) for name in ("rule", "messageExpression") if isinstance(each.get(name), str))
    return size


_OF_A_VERSION: Final = re.compile(r"spec\.versions\[(\d+)\]\.(\w+)(.*)")
_SHARED: Final = {name: name for name in ("subresources", "additionalPrinterColumns", "selectableFields")} | {
    "schema": "validation"
}


def _place(field: str, versions: list[Json]) -> str:
    """Returns the field of a fault: one for all versions with the same content; empty if it is already reported."""
    found = _OF_A_VERSION.fullmatch(field)
    if found is None or found[2] not in _SHARED:
        return field
    index, part, rest = int(found[1]), found[2], found[3]
    first = versions[0].get(part)
    if first is None or any(each.get(part) != first for each in versions):
        return field
    return "" if index else f"spec.{_SHARED[part]}{rest}"


_REASONS: Final = {
    "Invalid value": "FieldValueInvalid",
    "Forbidden": "FieldValueForbidden",
    "Required value": "FieldValueRequired",
    "Unsupported value": "FieldValueNotSupported",
}
_VALUES: Final = frozenset({"default", "enum", "example"})
"""Parts of schemas that are no schemas."""


def _unknown_formats(schema: Any) -> Iterator[str]:
    from navarch.schema.values.formats import is_known_format  # noqa: PLC0415 - long to import

    if isinstance(schema, dict):
        form = schema.get("format")
        if schema.get("type") == "string" and isinstance(form, str) and form and not is_known_format("string", form):
            yield form
        for name, part in schema.items():
            yield from () if name in _VALUES else _unknown_formats(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _unknown_formats(part)


def _old_faults(spec: Json) -> Iterator[Cause]:
    """Reports fields that only `apiextensions.k8s.io/v1beta1` accepted."""
    if spec.get("preserveUnknownFields"):
        instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", True, f"cannot set to true, {instead}")
    conversion = spec["conversion"]
    if conversion.get("strategy") == "None" and (conversion.get("webhook") or {}).get("conversionReviewVersions"):
        said = "should not be set when strategy is not set to Webhook"
        yield forbidden("spec.conversion.conversionReviewVersions", said)


def _cause(fault: DefinitionFault, field: str) -> Cause:
    if fault.told:
        told = fault.told.replace(_SCHEMA, "spec.validation.") if field.startswith("spec.validation.") else fault.told
        return Cause(field, _REASONS[told.partition(": ")[0]], told)
    missing = fault.message.endswith(("got none", "got None", "got ''"))
    return (
        required(field, fault.message)
        if missing
        else Cause(field, "FieldValueInvalid", f"Invalid value: {fault.message}")
    )


def _immutable_faults(value: Json, old: Json) -> list[Cause]:
    """Once it is established, its objects lie under its group and kind."""
    if not is_true(old.get("status", {}), ESTABLISHED):
        return []
    spec, before = value["spec"], old["spec"]
    return [
        *immutable_faults(spec.get("scope"), before.get("scope"), "spec.scope"),
        *immutable_faults(spec["names"].get("plural"), before["names"].get("plural"), "spec.names.plural"),
        *immutable_faults(spec["names"].get("kind"), before["names"].get("kind"), "spec.names.kind"),
        *immutable_faults(spec.get("group"), before.get("group"), "spec.group"),
    ]


def _stored_version_faults(value: Json) -> list[Cause]:
    names = {version["name"] for version in value["spec"].get("versions") or ()}
    return [
        invalid(
            f"status.storedVersions[{index}]",
            name,
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions",
        )
        for index, name in enumerate(value.get("status", {}).get("storedVersions") or ())
        if name not in names
    ]
