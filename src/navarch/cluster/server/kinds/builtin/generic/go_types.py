"""Go's types: which JSON values each decodes, which error it reports, and what it writes."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.generic.go_time import micro_time_fault, time_fault
from navarch.cluster.server.wire.go_text import go_kind
from navarch.cluster.server.wire.times import read_time
from navarch.errors import InvalidValueError

_INT_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint32": (0, 2**32 - 1)}
_QUANTITY_SENTENCE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class DecodePath(NamedTuple):
    """DecodePath a value stands, as Go's decoder says it: the innermost struct, and the fields from the outermost."""

    struct: str
    path: str

    def mismatch(self, value: Any, go_type: str) -> str:
        """The decoder's sentence about a value of the wrong type."""
        where = f"Go struct field {self.struct}.{self.path}"
        return f"json: cannot unmarshal {go_kind(value)} into {where} of type {go_type}"


class GoType(Protocol):
    """One Go type."""

    def unknown(self, value: Any, path: str, found: list[str]) -> None:
        """Drops unknown fields below `value` and adds their paths to `found`."""
        ...

    def fits(self, value: Any) -> bool:
        """Tells whether Go can decode the value."""
        ...

    def fault(self, value: Any, where: DecodePath) -> str:
        """Returns the decoder's error for the first value that does not fit; empty if all do."""
        ...

    def normal(self, value: Any) -> Any:
        """The value as it comes back out of Go."""
        ...

    def zero(self) -> Any:
        """Returns the value that Go writes for an unset value."""
        ...


class Scalar(msgspec.Struct, frozen=True):
    """A type without parts."""

    fits: Callable[[Any], bool]
    """Tells whether Go can decode a value."""
    say: Callable[[Any, DecodePath], str]
    """The decoder's sentence about a value that does not fit."""
    unset: Any = None
    write: Callable[[Any], Any] | None = None
    """The value as Go writes it, where that differs from what it read."""

    def unknown(self, value: Any, path: str, found: list[str]) -> None:
        """A scalar has no fields."""

    def fault(self, value: Any, where: DecodePath) -> str:
        """See GoType."""
        return "" if value is None or self.fits(value) else self.say(value, where)

    def normal(self, value: Any) -> Any:
        """See GoType."""
        return self.write(value) if self.write is not None else value

    def zero(self) -> Any:
        """See GoType."""
        return self.unset


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return go_kind(value) == "number"


def string_shape(go_type: str) -> Scalar:
    """A string, or a named type that is one."""
    return Scalar(_is_string, lambda value, where: where.mismatch(value, go_type), "")


def boolean_shape(go_type: str) -> Scalar:
    """A bool."""
    return Scalar(_is_boolean, lambda value, where: where.mismatch(value, go_type), unset=False)


def integer_shape(go_type: str, size: str) -> Scalar:
    """An integer of a size; a fraction and a number out of range do not fit."""
    lowest, highest = _INT_RANGES.get(size, _INT_RANGES["int64"])
    return Scalar(
        lambda value: type(value) is int and lowest <= value <= highest,
        lambda value, where: _integer_fault(value, where, go_type),
        0,
    )


def _integer_fault(value: Any, where: DecodePath, go_type: str) -> str:
    said = where.mismatch(value, go_type)
    return said if go_kind(value) != "number" else said.replace("number", f"number {value}", 1)


def number_shape(go_type: str) -> Scalar:
    """A float."""
    return Scalar(_is_number, lambda value, where: where.mismatch(value, go_type), 0, _whole_number)


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_base64(value: Any) -> bool:
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (AttributeError, binascii.Error, ValueError):
        return False
    return True


def _bytes_fault(value: Any, where: DecodePath) -> str:
    if not isinstance(value, str):
        return where.mismatch(value, "[]uint8")
    bad = re.search(r"[^A-Za-z0-9+/=\r\n]", value)
    position = bad.start() if bad else len(value.rstrip("=")) // 4 * 4
    return f"illegal base64 data at input byte {position}"


def _is_quantity(value: Any) -> bool:
    if not isinstance(value, str):
        return _is_number(value)
    try:
        Quantity(value)
    except InvalidValueError:
        return False
    return True


def _is_like_quantity(text: str) -> bool:
    """Tells whether a text matches the pattern of `_QUANTITY_SENTENCE`."""
    number = text[1:] if text[:1] in {"+", "-"} else text
    suffix = number.lstrip("0123456789.")
    exponent = suffix.lstrip("eEinumkKMGTP")
    power = exponent[1:] if exponent[:1] in {"+", "-"} else exponent
    return suffix != number and not power.strip("0123456789")


def _quantity_fault(value: Any, _: DecodePath) -> str:
    is_like_one = isinstance(value, str) and _is_like_quantity(value)
    return "unable to parse quantity's suffix" if is_like_one else _QUANTITY_SENTENCE


def _time_fault(value: Any, where: DecodePath) -> str:
    return time_fault(value) if isinstance(value, str) else where.mismatch(value, "string")


def _micro_time_fault(value: Any, where: DecodePath) -> str:
    return micro_time_fault(value) if isinstance(value, str) else where.mismatch(value, "string")


def _write_quantity(value: Any) -> str:
    return str(Quantity(value if isinstance(value, str) else str(value)))


def _write_time(value: Any) -> str:
    return value if len(value) == len("2006-01-02T15:04:05Z") and value[-1] == "Z" else read_time(value).text()


def _write_micro_time(value: Any) -> str:
    return read_time(value).text(fractions=True)


_INT32 = integer_shape("int32", "int32")
BYTES = Scalar(_is_base64, _bytes_fault, "")
QUANTITY = Scalar(_is_quantity, _quantity_fault, "0", _write_quantity)
INT_OR_STRING = Scalar(lambda value: _is_string(value) or _INT32.fits(value), _INT32.say, 0)
TIME = Scalar(lambda value: _is_string(value) and not time_fault(value), _time_fault, None, _write_time)
MICRO_TIME = Scalar(
    lambda value: _is_string(value) and not micro_time_fault(value), _micro_time_fault, None, _write_micro_time
)
ANYTHING = Scalar(lambda _: True, lambda _value, _where: "")


class ListOf(msgspec.Struct, frozen=True):
    """A slice."""

    element: GoType
    go_type: str

    def unknown(self, value: Any, path: str, found: list[str]) -> None:
        """See GoType."""
        if isinstance(value, list):
            for index, item in enumerate(value):
                self.element.unknown(item, f"{path}[{index}]", found)

    def fits(self, value: Any) -> bool:
        """See GoType."""
        fits = self.element.fits
        return isinstance(value, list) and all(item is None or fits(item) for item in value)

    def fault(self, value: Any, where: DecodePath) -> str:
        """See GoType."""
        if value is None:
            return ""
        if not isinstance(value, list):
            return where.mismatch(value, self.go_type)
        return next((said for item in value if (said := self.element.fault(item, where))), "")

    def normal(self, value: Any) -> Any:
        """See GoType."""
        element = self.element
        return [element.zero() if item is None else element.normal(item) for item in value] or None

    def zero(self) -> Any:
        """See GoType."""
        return None


class MapOf(msgspec.Struct, frozen=True):
    """A map with strings for keys."""

    element: GoType
    go_type: str

    def unknown(self, value: Any, path: str, found: list[str]) -> None:
        """See GoType."""
        if isinstance(value, dict):
            for key, item in value.items():
                self.element.unknown(item, f"{path}.{key}" if path else key, found)

    def fits(self, value: Any) -> bool:
        """See GoType."""
        fits = self.element.fits
        return isinstance(value, dict) and all(item is None or fits(item) for item in value.values())

    def fault(self, value: Any, where: DecodePath) -> str:
        """See GoType."""
        if value is None:
            return ""
        if not isinstance(value, dict):
            return where.mismatch(value, self.go_type)
        return next((said for item in value.values() if (said := self.element.fault(item, where))), "")

    def normal(self, value: Any) -> Any:
        """See GoType."""
        element = self.element
        return {key: element.zero() if item is None else element.normal(item) for key, item in value.items()} or None

    def zero(self) -> Any:
        """See GoType."""
        return None


class GoField(msgspec.Struct, frozen=True):
    """A field of a struct, and when Go writes it."""

    shape: GoType
    is_pointer: bool
    """Written whenever it was set, whatever is in it."""
    omits_empty: bool
    """Left out if it is false, 0, "", or has no elements."""
    omits_zero: bool
    """Left out if nothing in it was set."""
    is_always_written: bool
    """Written even if it was never set."""

    def left_out(self, written: Any) -> bool:
        """Tells whether Go omits a field with this value."""
        if self.omits_empty:
            return not written
        return self.omits_zero and written == self.shape.zero()

    def unset(self) -> Any:
        """Returns the value that Go writes for an unset field."""
        return None if self.is_pointer else self.shape.zero()


class Struct(msgspec.Struct):
    """A struct. Its fields are filled in after it was made: some structs contain themselves."""

    name: str
    go_type: str
    fields: dict[str, GoField] = msgspec.field(default_factory=dict)
    _always: list[tuple[str, GoField]] | None = None

    def unknown(self, value: Any, path: str, found: list[str]) -> None:
        """See GoType."""
        if not isinstance(value, dict):
            return
        fields = self.fields
        foreign = []
        for name, item in value.items():
            known = fields.get(name)
            place = f"{path}.{name}" if path else name
            if known is None:
                foreign.append(name)
                found.append(place)
            elif item.__class__ is dict or item.__class__ is list:
                known.shape.unknown(item, place, found)
        for name in foreign:
            del value[name]

    def fits(self, value: Any) -> bool:
        """See GoType."""
        if not isinstance(value, dict):
            return False
        fields = self.fields
        for name, item in value.items():
            known = fields.get(name)
            if known is not None and item is not None and not known.shape.fits(item):
                return False
        return True

    def fault(self, value: Any, where: DecodePath) -> str:
        """See GoType."""
        if value is None:
            return ""
        if not isinstance(value, dict):
            return where.mismatch(value, self.go_type)
        fields, path = self.fields, where.path
        for name, item in value.items():
            known = fields.get(name)
            if known is not None and (
                said := known.shape.fault(item, DecodePath(self.name, f"{path}.{name}" if path else name))
            ):
                return said
        return ""

    def normal(self, value: Any) -> Any:
        """See GoType. Works in place."""
        fields = self.fields
        for name, item in list(value.items()):
            known = fields.get(name)
            written = None if known is None or item is None else known.shape.normal(item)
            if written is None or (known is not None and known.left_out(written)):
                del value[name]
            elif written is not item:
                value[name] = written
        for name, known in self._written_always():
            if name not in value:
                value[name] = known.unset()
        return value

    def zero(self) -> Any:
        """See GoType."""
        return {name: known.unset() for name, known in self._written_always()}

    def _written_always(self) -> list[tuple[str, GoField]]:
        if self._always is None:
            self._always = [(name, known) for name, known in self.fields.items() if known.is_always_written]
        return self._always
