"""What is wrong with a value, in the API server's words.

A violation is made where it is found, without a path; each level on the way up puts its own step before it. A valid
value therefore costs no path at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from navarch.errors import Cause

__all__ = [
    "MOST_VIOLATIONS",
    "Violation",
    "below",
    "causes",
    "duplicate",
    "go_number",
    "go_quoted",
    "in_body",
    "invalid",
    "not_supported",
    "required",
    "shown",
    "supported_values",
    "too_long",
    "too_many",
    "type_invalid",
]

MOST_VIOLATIONS: Final = 1000
"""How many violations of one value are looked for: nobody reads more, and each costs more than the value."""
_LONGEST_TOLD: Final = 10_000
_LONGEST_ANSWER: Final = 1_000_000
_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    '"': r"\"",
    "\\": r"\\",
}


class Violation:
    """One fault. The message is `head`, or `head`, the path and `tail` where the server repeats the path; then come the
    values that are `supported`.
    """

    __slots__ = ("head", "path", "reason", "supported", "tail")

    def __init__(self, reason: str, head: str, tail: str | None = None, path: str = "", *, supported: str = "") -> None:
        self.reason = reason
        self.head = head
        self.tail = tail
        self.path = path
        self.supported = supported

    def cause(self) -> Cause:
        """The finished fault."""
        path = self.path.removeprefix(".")
        told = self.head if self.tail is None else f"{self.head}{path}{self.tail}"
        return Cause(path, self.reason, told + self.supported)


def causes(violations: Iterable[Violation]) -> list[Cause]:
    """Violations as the server reports them, or the first of very many.

    The texts of all of them together are bounded too: values that are supported are told with the first of them.
    """
    found, size = [], 0
    for violation in islice(violations, MOST_VIOLATIONS):
        if size > _LONGEST_ANSWER:
            violation.supported = "see above"
        found.append(violation.cause())
        size += len(violation.supported)
    return found


def invalid(value: Any, detail: str) -> Violation:
    """A value that breaks a rule."""
    return Violation("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def in_body(value: Any, detail: str) -> Violation:
    """A value that breaks a keyword; the server repeats the path before the detail."""
    return Violation("FieldValueInvalid", f"Invalid value: {shown(value)}: ", f" in body {detail}")


def type_invalid(expected: str, got: str) -> Violation:
    """A value of another type; `got` is the type, or the text that is not of the format."""
    return Violation(
        "FieldValueTypeInvalid",
        f"Invalid value: {go_quoted(got)}: ",
        f" in body must be of type {expected}: {go_quoted(got)}",
    )


def required() -> Violation:
    """A value that is missing."""
    return Violation("FieldValueRequired", "Required value")


def below(step: str, violations: list[Violation]) -> list[Violation]:
    """The violations of a part, seen from the value around it."""
    for violation in violations:
        violation.path = step + violation.path
    return violations


def duplicate(value: Any) -> Violation:
    """A value that is there twice."""
    return Violation("FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def supported_values(values: list[Any]) -> str:
    """The values of an enum, as they are told to whoever gives another one; of very many only the first."""
    told, size = [], 0
    for known in values:
        told.append(go_quoted(known if isinstance(known, str) else _json(known)))
        size += len(told[-1])
        if size > _LONGEST_TOLD:
            return f"{', '.join(told)} and {len(values) - len(told)} more"
    return ", ".join(told)


def not_supported(value: Any, supported: str) -> Violation:
    """A value that is not one of an enum. What is supported is a text that all such faults of a schema share."""
    return Violation(
        "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: ", supported=supported
    )


def too_long(limit: int) -> Violation:
    """A string that is too long; it is not repeated."""
    return Violation("FieldValueTooLong", f"Too long: may not be more than {limit} byte{'' if limit == 1 else 's'}")


def too_many(actual: int, limit: int) -> Violation:
    """A list or map with too many entries."""
    items = "item" if limit == 1 else "items"
    return Violation("FieldValueTooMany", f"Too many: {actual}: must have at most {limit} {items}")


def shown(value: Any) -> str:
    """A value inside a message."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return _json(value)
    return go_number(value)


def go_quoted(text: str) -> str:
    r"""A string as Go quotes it.

    >>> print(go_quoted('say "ja"\n'))
    "say \"ja\"\n"
    """
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_number(number: float) -> str:
    """A number as Go prints it.

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
