"""The fields of protobuf messages and their value types, with their JSON."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, Protocol

import msgspec

from navarch.api import Duration
from navarch.cluster.server.wire.budget import bounded_json
from navarch.cluster.server.wire.protobuf.wire import (
    BYTES,
    EIGHT_BYTES,
    VARINT,
    MalformedError,
    integers,
    parts,
    signed,
)
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.times import WireTime

_ZERO_TIME: Final = -62135596800
"""The first second of the year 1, which Go takes for no time at all."""


class ValueType(Protocol):
    """What one part of a field is."""

    @property
    def wire(self) -> int:
        """How it is encoded."""
        ...

    def read(self, part: Any, depth: int) -> Any:
        """The JSON of a part; raises MalformedError."""
        ...

    def absent(self) -> Any:
        """The JSON of Go's zero value."""
        ...


class ProtobufField(Protocol):
    """One field of a message."""

    @property
    def omitted(self) -> bool:
        """Whether JSON has no such field where Go has nothing in it."""
        ...

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        """Puts a part into the object; raises MalformedError."""
        ...

    def fill(self, found: Json) -> None:
        """Puts what JSON has of a field without parts into the object, if it has anything."""
        ...


@dataclass(frozen=True, slots=True)
class _NamedField:
    """What all fields have."""

    name: str
    omitted: bool
    type: ValueType

    def _read(self, wire: int, part: Any, depth: int) -> Any:
        if wire != self.type.wire:
            raise MalformedError(f"proto: wrong wireType = {wire} for field {_go_name(self.name)}")
        return self.type.read(part, depth)


@dataclass(frozen=True, slots=True)
class _PlainField(_NamedField):
    """A value that is always there in Go: encoded even if it is zero."""

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        value = self._read(wire, part, depth)
        if self.omitted and not value:
            found.pop(self.name, None)
        else:
            found[self.name] = value

    def fill(self, found: Json) -> None:
        found[self.name] = self.type.absent()


@dataclass(frozen=True, slots=True)
class _OptionalField(_NamedField):
    """A value that Go can do without."""

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        found[self.name] = self._read(wire, part, depth)

    def fill(self, found: Json) -> None:
        found[self.name] = None


@dataclass(frozen=True, slots=True)
class _RepeatedField(_OptionalField):
    """One part for each item, or integers packed into one."""

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        items = found.setdefault(self.name, [])
        if wire == BYTES and self.type.wire == VARINT:
            items += [self.type.read(each, depth) for each in integers(part)]
        else:
            items.append(self._read(wire, part, depth))


@dataclass(frozen=True, slots=True)
class _MapField(_OptionalField):
    """One part for each entry: a small message of a text and a value."""

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        if wire != BYTES:
            raise MalformedError(f"proto: wrong wireType = {wire} for field {_go_name(self.name)}")
        key, value = "", None
        for number, inner, content in parts(part, self.name):
            if number == 1 and isinstance(content, bytes):
                key = content.decode(errors="replace")
            elif number == 2:
                value = self._read(inner, content, depth)
        found.setdefault(self.name, {})[key] = self.type.absent() if value is None else value


@dataclass(frozen=True, slots=True)
class Inline(_NamedField):
    """A message whose fields JSON has among those of the one around it."""

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        found.update(self._read(wire, part, depth))

    def fill(self, found: Json) -> None:
        found.update(self.type.absent())


SHAPES: dict[str, Callable[[str, bool, ValueType], ProtobufField]] = {
    "value": _PlainField,
    "pointer": _OptionalField,
    "list": _RepeatedField,
    "map": _MapField,
}


def _go_name(name: str) -> str:
    return "ObjectMeta" if name == "metadata" else name[:1].upper() + name[1:]


@dataclass(frozen=True, slots=True)
class Value:
    """How the parts of one type are encoded, what they are in JSON, and what Go writes where there is none."""

    wire: int
    convert: Callable[[Any], Any]
    zero: Any

    def read(self, part: Any, _: int) -> Any:
        """The JSON of a part; raises MalformedError."""
        return self.convert(part)

    def absent(self) -> Any:
        """The JSON of none."""
        return self.zero


def _text(part: bytes) -> str:
    """As Go writes it: what is not UTF-8 is replaced."""
    return part.decode(errors="replace")


def _number(part: bytes) -> int | float:
    """As in JSON, where a whole number has no fraction."""
    value: float = struct.unpack("<d", part)[0]
    if not isfinite(value):
        raise MalformedError(f"json: unsupported value: {value}")
    return int(value) if value.is_integer() else value


def _inner(part: bytes, message: str) -> dict[int, Any]:
    """What a small message has under each number; the last counts."""
    return {number: value for number, _, value in parts(part, message)}


def _typed(found: dict[int, Any], number: int, expected: type, field: str) -> Any:
    value = found.get(number, expected())
    if not isinstance(value, expected):
        raise MalformedError(f"proto: wrong wireType = {BYTES if expected is int else VARINT} for field {field}")
    return value


def _moment(part: bytes, *, fractions: bool) -> WireTime | None:
    found = _inner(part, "Timestamp")
    seconds = signed(_typed(found, 1, int, "Seconds"), 64)
    nanoseconds = signed(_typed(found, 2, int, "Nanos"), 32) if fractions else 0
    if not part or (seconds, nanoseconds // 1000) == (_ZERO_TIME, 0):
        return None
    more, microseconds = divmod(int(nanoseconds / 1000), 10**6)
    moment = WireTime(seconds + more, microseconds)
    if not moment.has_text:
        raise MalformedError("Time.MarshalJSON: year outside of range [0,9999]")
    return moment


def _time(part: bytes) -> str | None:
    moment = _moment(part, fractions=False)
    return None if moment is None else moment.text()


def _micro_time(part: bytes) -> str | None:
    moment = _moment(part, fractions=True)
    return None if moment is None else moment.text(fractions=True)


def _duration(part: bytes) -> str:
    return str(Duration.of_nanoseconds(signed(_typed(_inner(part, "Duration"), 1, int, "Duration"), 64)))


def _quantity(part: bytes) -> str:
    return _text(_typed(_inner(part, "Quantity"), 1, bytes, "String_")) or "0"


def _int_or_string(part: bytes) -> int | str:
    found = _inner(part, "IntOrString")
    if _typed(found, 1, int, "ValueType"):
        return _text(_typed(found, 3, bytes, "StrVal"))
    return signed(_typed(found, 2, int, "IntVal"), 32)


def _raw(part: bytes) -> Any:
    """JSON inside protobuf."""
    text = _typed(_inner(part, "RawExtension"), 1, bytes, "Raw")
    try:
        return bounded_json(text) if text else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"json: error calling MarshalJSON for type runtime.RawExtension: {error}") from None


def _strings(part: bytes) -> list[str] | None:
    found = [value for number, _, value in parts(part, "ExtraValue") if number == 1]
    if not all(isinstance(value, bytes) for value in found):
        raise MalformedError("proto: wrong wireType = 0 for field Items")
    return [_text(value) for value in found if isinstance(value, bytes)] or None


VALUES: Final = {
    "string": Value(BYTES, _text, ""),
    "bytes": Value(BYTES, lambda part: b64encode(part).decode(), None),
    "bool": Value(VARINT, bool, False),
    "int32": Value(VARINT, lambda part: signed(part, 32), 0),
    "int64": Value(VARINT, lambda part: signed(part, 64), 0),
    "double": Value(EIGHT_BYTES, _number, 0),
    "time": Value(BYTES, _time, None),
    "microtime": Value(BYTES, _micro_time, None),
    "duration": Value(BYTES, _duration, "0s"),
    "quantity": Value(BYTES, _quantity, "0"),
    "intorstring": Value(BYTES, _int_or_string, 0),
    "raw": Value(BYTES, _raw, None),
    "strings": Value(BYTES, _strings, None),
}
