"""JSON values as Go prints them: Kubernetes' messages are full of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from navarch.api.strconv import go_quoted


def go_number(value: float) -> str:
    """As Go's `%v` prints a float.

    >>> go_number(8080), go_number(2500000), go_number(0.5)
    ('8080', '2.5e+06', '0.5')
    """
    digits, _, exponent = format(Decimal(repr(value)).normalize(), "e").partition("e")
    if -4 <= int(exponent) < 21 and abs(value) < 1e6:
        return format(Decimal(repr(value)).normalize(), "f")
    return f"{digits}e{int(exponent):+03d}"


def go_kind(value: Any) -> str:
    """What Go calls a value in `json: cannot unmarshal array into ...`."""
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, bool):
        return "bool"
    return "string" if isinstance(value, str) else "number"


def go_type(value: Any) -> str:
    """As Go's `%T` names the type of a JSON value."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    return "float64" if isinstance(value, float) else ("string" if isinstance(value, str) else "<nil>")


def go_text(value: Any) -> str:
    """As Go's `%v` prints a JSON value."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{go_text(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    return go_number(value) if isinstance(value, float) else str(value)


def go_literal(value: Any) -> str:
    """As Go's `%#v` prints a JSON value."""
    if isinstance(value, dict):
        inner = ", ".join(f"{go_quoted(name)}:{go_literal(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(go_literal, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return go_quoted(value) if isinstance(value, str) else go_text(value)
