"""Faults of a value, in the API server's words.

A violation is created without a path; each level on the way up prepends its own step. A valid value therefore builds no
path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from navarch.api.strconv import go_quoted
from navarch.errors import Cause

MOST_VIOLATIONS: Final = 1000
"""The most violations of one value that are reported; each costs more than the value."""
_LONGEST_TOLD: Final = 10_000
_LONGEST_ANSWER: Final = 1_000_000


class SchemaViolation:
    """One fault. The message is `head`, or `head`, the path and `tail` if the server repeats the path; the `supported`
    values follow.
    """

    __slots__ = ("head", "path", "reason", "supported", "tail")

    def __init__(self, reason: str, head: str, tail: str | None = None, path: str = "", *, supported: str = "") -> None:
        self.reason = reason
        self.head = head
        self.tail = tail
        self.path = path
        self.supported = supported

    def cause(self) -> Cause:
        """Returns the finished fault."""
        path = self.path.removeprefix(".")
        told = self.head if self.tail is None else f"{self.head}{path}{self.tail}"
        return Cause(path, self.reason, told + self.supported)


def causes(violations: Iterable[SchemaViolation]) -> list[Cause]:
    """Returns violations as the server reports them, or the first of very many.

    Bounds the total length too: only the first violation lists the supported values.
    """
    found, size = [], 0
    for violation in islice(violations, MOST_VIOLATIONS):
        if size > _LONGEST_ANSWER:
            violation.supported = "see above"
        found.append(violation.cause())
        size += len(violation.supported)
    return found


def invalid(value: Any, detail: str) -> SchemaViolation:
    """Returns the fault of a value that breaks a rule."""
    return SchemaViolation("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def in_body(value: Any, detail: str) -> SchemaViolation:
    """Returns the fault of a value that breaks a keyword; the server repeats the path before the detail."""
    return SchemaViolation("FieldValueInvalid", f"Invalid value: {shown(value)}: ", f" in body {detail}")


def type_invalid(expected: str, got: str) -> SchemaViolation:
    """Returns the fault of a value of another type; `got` is the type, or the text that does not have the format."""
    return SchemaViolation(
        "FieldValueTypeInvalid",
        f"Invalid value: {go_quoted(got)}: ",
        f" in body must be of type {expected}: {go_quoted(got)}",
    )


def required() -> SchemaViolation:
    """Returns the fault of a missing value."""
    return SchemaViolation("FieldValueRequired", "Required value")


def below(step: str, violations: list[SchemaViolation]) -> list[SchemaViolation]:
    """Returns the violations of a part with its step prepended."""
    for violation in violations:
        violation.path = step + violation.path
    return violations


def duplicate(value: Any) -> SchemaViolation:
    """Returns the fault of a value that occurs twice."""
    return SchemaViolation("FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def supported_values(values: list[Any]) -> str:
    """Returns the values of an enum as a message lists them; of very many only the first."""
    told, size = [], 0
    for known in values:
        told.append(go_quoted(known if isinstance(known, str) else _json(known)))
        size += len(told[-1])
        if size > _LONGEST_TOLD:
            return f"{', '.join(told)} and {len(values) - len(told)} more"
    return ", ".join(told)


def not_supported(value: Any, supported: str) -> SchemaViolation:
    """Returns the fault of a value outside of an enum. All such faults of a schema share the text of the supported
    values.
    """
    return SchemaViolation(
        "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: ", supported=supported
    )


def too_long(limit: int) -> SchemaViolation:
    """Returns the fault of a string that is too long; the message does not repeat it."""
    return SchemaViolation(
        "FieldValueTooLong", f"Too long: may not be more than {limit} byte{'' if limit == 1 else 's'}"
    )


def too_many(actual: int, limit: int) -> SchemaViolation:
    """Returns the fault of a list or map with too many entries."""
    items = "item" if limit == 1 else "items"
    return SchemaViolation("FieldValueTooMany", f"Too many: {actual}: must have at most {limit} {items}")


def shown(value: Any) -> str:
    """Returns a value as a message shows it."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return _json(value)
    return go_number(value)


def go_number(number: float) -> str:
    """Returns a number as Go prints it.

    >>> go_number(3.0), go_number(0.1), go_number(2500000.0)
    ('3', '0.1', '2.5e+06')
    """
    if isinstance(number, int) and -(2**63) <= number < 2**63:
        return str(number)
    number = float(number)  # as Go reads an integer that is too large for it
    digits, _, power = f"{number:e}".partition("e")
    if not -4 <= int(power) < 6:
        shortest = (
            repr(number) if "e" in repr(number) else f"{number:.{len(repr(number).strip('-0').replace('.', '')) - 1}e}"
        )
        digits, _, power = shortest.partition("e")
        mantissa = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return f"{mantissa}e{power[0]}{power[1:].zfill(2)}"
    return repr(number).removesuffix(".0")


def _json(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
