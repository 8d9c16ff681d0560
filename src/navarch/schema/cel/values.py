"""CEL's values in Python.

int, float, str, bytes, bool, None, list and dict represent themselves; this module adds the types that Python lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import ClassVar, Final

from navarch.schema.cel import types
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.types import CelType

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
UINT_MAX = (1 << 64) - 1
NANOS = 1_000_000_000
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()
    cel_type: ClassVar[CelType] = types.UINT


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Nanoseconds since 1970 in UTC; `offset` is only that of the text it came from, in seconds."""

    cel_type: ClassVar[CelType] = types.TIMESTAMP
    nanos: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class CelDuration:
    cel_type: ClassVar[CelType] = types.DURATION
    nanos: int


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A value, or the absence of one."""

    cel_type: ClassVar[CelType] = types.optional_of(types.DYN)
    present: bool
    value: object = None


class Built(dict[str, object]):
    """An object that an expression created, by its fields; `type_name` is such as `Object.spec`."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self.type_name = type_name

    @property
    def cel_type(self) -> CelType:
        """The type that the checker gave it."""
        return types.opaque(self.type_name)


NONE = Optional(present=False)


def some(value: object) -> Optional:
    return Optional(present=True, value=value)


_RUNTIME_TYPES: dict[type, CelType] = {
    type(None): types.NULL,
    bool: types.BOOL,
    int: types.INT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    list: types.list_of(types.DYN),
    dict: types.map_of(types.DYN, types.DYN),
    CelType: types.TYPE,
}


def runtime_type(value: object) -> CelType:
    """Returns the type of a value, without the types of its entries."""
    found = _RUNTIME_TYPES.get(type(value))
    if found is not None:
        return found
    own: CelType = value.cel_type  # type: ignore[attr-defined]  # every other value class has it
    return own


def no_such_overload() -> CelEvaluationError:
    return CelEvaluationError("no such overload: the values are not of types this operation takes")


def checked_int(value: int) -> int:
    """Returns `value` if it fits 64 bits. Raises `CelEvaluationError`."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelEvaluationError("integer overflow: the result does not fit 64 bits")


def checked_uint(value: int) -> Uint:
    """Returns `value` if it is not negative and fits 64 bits. Raises `CelEvaluationError`."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelEvaluationError("unsigned integer overflow: the result is negative or does not fit 64 bits")


def checked_duration(nanos: int) -> CelDuration:
    if INT_MIN <= nanos <= INT_MAX:
        return CelDuration(nanos)
    raise CelEvaluationError("duration overflow: a duration spans at most 292 years")


def checked_timestamp(nanos: int, offset: int = 0) -> Timestamp:
    if _FIRST_SECOND <= nanos // NANOS <= _LAST_SECOND:
        return Timestamp(nanos, offset)
    raise CelEvaluationError("timestamp overflow: a timestamp lies in the years 1 to 9999")


_DIGITS: Final = frozenset("0123456789")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ")


def counted_units(text: str) -> Iterator[tuple[str, str]]:
    """Yields every number with the word that follows it, in lower case; spaces may separate them.

    >>> list(counted_units("1 Week, 12h and 3"))
    [('1', 'week'), ('12', 'h')]
    """
    count = ""
    for kind, characters in groupby(text, _kind):
        run = "".join(characters)
        if kind == "letters" and count:
            yield count, run.lower()
        count = run if kind == "digits" else count if kind == "space" else ""


def _kind(character: str) -> str:
    if character in _DIGITS:
        return "digits"
    if character in _LETTERS:
        return "letters"
    return "space" if character.isspace() else "other"
