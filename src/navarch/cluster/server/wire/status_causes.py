"""The causes of a 422, in the words of the API server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from navarch.api.strconv import go_quoted
from navarch.errors import Cause


def shown(value: Any) -> str:
    """A value as the server shows it in a message."""
    return go_quoted(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def required(field: str, detail: str = "") -> Cause:
    """A value is missing.

    >>> str(required("spec.containers"))
    'spec.containers: Required value'
    """
    return Cause(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: Any, detail: str) -> Cause:
    """A value is malformed, out of range, or may not be changed.

    >>> str(invalid("spec.replicas", -1, "must be greater than or equal to 0"))
    'spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    """
    told = f": {detail}" if detail else ""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {shown(value)}{told}")


def unsupported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    """A value is none of those that are known.

    >>> str(unsupported("spec.type", "X", ["A", "B"]))
    'spec.type: Unsupported value: "X": supported values: "A", "B"'
    """
    listed = ", ".join(go_quoted(each) for each in supported)
    return Cause(field, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}")


def duplicate(field: str, value: Any) -> Cause:
    """A value is there twice."""
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def forbidden(field: str, detail: str) -> Cause:
    """A value may not be set, or not now."""
    return Cause(field, "FieldValueForbidden", f"Forbidden: {detail}")


def too_long(field: str, most: int) -> Cause:
    """A text has too many bytes."""
    return Cause(field, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")


def too_many(field: str, actual: int, most: int) -> Cause:
    """A list has too many items."""
    return Cause(field, "FieldValueTooMany", f"Too many: {actual}: must have at most {most} items")


def too_few(field: str, actual: int, least: int) -> Cause:
    """A list has too few items."""
    return Cause(field, "FieldValueTooFew", f"Too few: {actual}: must have at least {least} items")


def not_found(field: str, value: Any) -> Cause:
    """A value names something that is not there."""
    return Cause(field, "FieldValueNotFound", f"Not found: {shown(value)}")
