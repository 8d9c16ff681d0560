"""Checks embedded objects: their type and metadata must be valid whatever the schema says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from navarch.api.meta import ObjectMeta
from navarch.api.names import DNS_1035_LABEL, DNS_LABEL, LABEL_KEY, LABEL_VALUE
from navarch.schema.json_schema import JsonSchema
from navarch.schema.values.violations import SchemaViolation, below, invalid, required

Check = Callable[[Any], list[SchemaViolation]]
_MOST_ANNOTATIONS = 256 * 1024


def compile_embedded(schema: JsonSchema, *, root: bool = True) -> Check | None:
    """Returns a check of every embedded object inside of a value; None if the schema has none. Ignores the root."""
    children = {name: compile_embedded(child, root=False) for name, child in (schema.get("properties") or {}).items()}
    known = {name: check for name, check in children.items() if check is not None}
    values, items = schema.get("additionalProperties"), schema.get("items")
    check_value = compile_embedded(values, root=False) if isinstance(values, dict) else None
    check_item = compile_embedded(items, root=False) if isinstance(items, dict) else None
    embedded = bool(schema.get("x-kubernetes-embedded-resource")) and not root
    if not known and check_value is None and check_item is None and not embedded:
        return None

    def check(value: Any) -> list[SchemaViolation]:
        found: list[SchemaViolation] = []
        if isinstance(value, dict):
            found += _object_faults(value) if embedded else ()
            for name, inner in value.items():
                found += _below(f".{name}", known.get(name), inner)
                found += _below(f"[{name}]", check_value, inner)
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                found += _below(f"[{index}]", check_item, inner)
        return found

    return check


def _below(step: str, check: Check | None, value: Any) -> list[SchemaViolation]:
    return [] if check is None else below(step, check(value))


def _object_faults(value: dict[str, Any]) -> Iterator[SchemaViolation]:
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield _at(f".{name}", required())
        elif not isinstance(value[name], str):
            yield _at(f".{name}", invalid(value[name], "must be a string"))
        elif not value[name]:
            yield _at(f".{name}", invalid("", "must not be empty"))
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        yield _at(".apiVersion", invalid(version, f"unexpected GroupVersion string: {version}"))
    if isinstance(kind, str) and kind:
        faults = DNS_1035_LABEL.faults(kind.lower())
        if faults:
            detail = f"may have mixed case, but should otherwise match: {','.join(faults)}"
            yield _at(".kind", invalid(kind, detail))
    if "metadata" in value:
        yield from _metadata_faults(value["metadata"])


def _metadata_faults(metadata: Any) -> Iterator[SchemaViolation]:
    try:
        parsed = msgspec.convert(metadata, ObjectMeta)
    except msgspec.ValidationError as error:
        yield _at(".metadata", invalid(metadata, str(error)))
        return
    yield from _name_faults(parsed)
    for key, text in parsed.labels.items():
        yield from _each(".metadata.labels", key, LABEL_KEY.faults(key))
        yield from _each(".metadata.labels", text, LABEL_VALUE.faults(text))
    for finalizer in parsed.finalizers:
        yield from _each(".metadata.finalizers", finalizer, LABEL_KEY.faults(finalizer))
    yield from _annotation_faults(parsed.annotations)


def _name_faults(parsed: ObjectMeta) -> Iterator[SchemaViolation]:
    """An embedded object may have any name that fits into a URL path, and may have none."""
    if parsed.name in {".", ".."}:
        yield _at(".metadata.name", invalid(parsed.name, f"may not be '{parsed.name}'"))
    for field, name in (("generateName", parsed.generate_name), ("name", parsed.name)):
        signs = [f"may not contain '{sign}'" for sign in "/%" if sign in name]
        yield from _each(f".metadata.{field}", name, signs)
    if parsed.namespace:
        yield from _each(".metadata.namespace", parsed.namespace, DNS_LABEL.faults(parsed.namespace))


def _annotation_faults(annotations: dict[str, str]) -> Iterator[SchemaViolation]:
    for key in annotations:
        yield from _each(".metadata.annotations", key, LABEL_KEY.faults(key.lower()))
    if sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items()) > _MOST_ANNOTATIONS:
        yield _at(
            ".metadata.annotations",
            SchemaViolation("FieldValueTooLong", f"Too long: may not be more than {_MOST_ANNOTATIONS} bytes"),
        )


def _each(path: str, value: str, faults: list[str]) -> list[SchemaViolation]:
    return [_at(path, invalid(value, fault)) for fault in faults]


def _at(path: str, fault: SchemaViolation) -> SchemaViolation:
    fault.path = path
    return fault
