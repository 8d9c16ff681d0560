"""Whole objects inside of objects: their type and metadata are checked whatever the schema says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from navarch.api.meta import ObjectMeta
from navarch.schema.naming import is_dns_label, is_dns_subdomain, is_resource_name
from navarch.schema.scalars import JsonSchema
from navarch.schema.violations import Violation, invalid, required

__all__ = ["compile_embedded"]

Check = Callable[[Any], list[Violation]]
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_MOST_ANNOTATIONS = 256 * 1024


def compile_embedded(schema: JsonSchema, *, root: bool = True) -> Check | None:
    """A check of every embedded object inside of a value; None if the schema has none. The root is not looked at."""
    children = {name: compile_embedded(child, root=False) for name, child in (schema.get("properties") or {}).items()}
    known = {name: check for name, check in children.items() if check is not None}
    values, items = schema.get("additionalProperties"), schema.get("items")
    check_value = compile_embedded(values, root=False) if isinstance(values, dict) else None
    check_item = compile_embedded(items, root=False) if isinstance(items, dict) else None
    embedded = bool(schema.get("x-kubernetes-embedded-resource")) and not root
    if not known and check_value is None and check_item is None and not embedded:
        return None

    def check(value: Any) -> list[Violation]:
        found: list[Violation] = []
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


def _below(step: str, check: Check | None, value: Any) -> list[Violation]:
    faults = check(value) if check is not None else []
    for fault in faults:
        fault.path = step + fault.path
    return faults


def _object_faults(value: dict[str, Any]) -> Iterator[Violation]:
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
    if isinstance(kind, str) and kind and not is_resource_name(kind.lower()):
        yield _at(".kind", invalid(kind, "may have mixed case, but should otherwise be a DNS label"))
    if "metadata" in value:
        yield from _metadata_faults(value["metadata"])


def _metadata_faults(metadata: Any) -> Iterator[Violation]:
    try:
        parsed = msgspec.convert(metadata, ObjectMeta)
    except msgspec.ValidationError as error:
        yield _at(".metadata", invalid(metadata, str(error)))
        return
    if parsed.name in {".", ".."} or "/" in parsed.name or "%" in parsed.name:
        yield _at(".metadata.name", invalid(parsed.name, "may not be '.', '..' or contain '/' or '%'"))
    if parsed.namespace and not is_dns_label(parsed.namespace):
        yield _at(".metadata.namespace", invalid(parsed.namespace, "must be a DNS label"))
    for key, text in parsed.labels.items():
        if not _is_qualified_name(key):
            yield _at(".metadata.labels", invalid(key, "must be a qualified name"))
        if not _is_label_value(text):
            yield _at(
                ".metadata.labels", invalid(text, "must be a label value: at most 63 letters, digits, '-', '_', '.'")
            )
    for key in parsed.annotations:
        if not _is_qualified_name(key.lower()):
            yield _at(".metadata.annotations", invalid(key, "must be a qualified name"))
    if sum(len(key.encode()) + len(text.encode()) for key, text in parsed.annotations.items()) > _MOST_ANNOTATIONS:
        yield _at(
            ".metadata.annotations",
            Violation("FieldValueTooLong", f"Too long: may not be more than {_MOST_ANNOTATIONS} bytes"),
        )


def _is_qualified_name(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return (not slash or is_dns_subdomain(prefix)) and len(name) <= 63 and _NAME.fullmatch(name) is not None


def _is_label_value(text: str) -> bool:
    return text == "" or (len(text) <= 63 and _NAME.fullmatch(text) is not None)


def _at(path: str, fault: Violation) -> Violation:
    fault.path = path
    return fault
