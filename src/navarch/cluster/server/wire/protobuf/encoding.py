"""Values as protobuf has them: the reverse of `values`."""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final

import msgspec

from navarch.api import Duration
from navarch.cluster.server.wire.protobuf.wire import BYTES, EIGHT_BYTES, VARINT
from navarch.cluster.server.wire.times import read_time

__all__ = ["ENCODINGS", "Encoding", "part", "varint"]

Encoding = tuple[int, Callable[[Any], bytes]]
"""How a value of one type is encoded, and what makes the bytes, without tag and length."""

_64_BITS: Final = 2**64


def varint(value: int) -> bytes:
    """An integer; a negative one as ten bytes, as Go has it.

    >>> varint(300).hex(), len(varint(-1))
    ('ac02', 10)
    """
    value %= _64_BITS
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def part(number: int, wire: int, content: bytes) -> bytes:
    """A numbered part of a message."""
    tag = varint(number << 3 | wire)
    return tag + varint(len(content)) + content if wire == BYTES else tag + content


def _moment(text: str) -> bytes:
    moment = read_time(text)
    return part(1, VARINT, varint(moment.seconds)) + part(2, VARINT, varint(moment.microseconds * 1000))


def _duration(text: str) -> bytes:
    return part(1, VARINT, varint(Duration(text).nanoseconds))


def _text_inside(text: Any) -> bytes:
    return part(1, BYTES, str(text).encode())


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return part(1, VARINT, varint(1)) + part(3, BYTES, value.encode())
    return part(1, VARINT, varint(0)) + part(2, VARINT, varint(value))


def _strings(values: list[str] | None) -> bytes:
    return b"".join(part(1, BYTES, each.encode()) for each in values or ())


ENCODINGS: Final[dict[str, Encoding]] = {
    "string": (BYTES, lambda value: str(value).encode()),
    "bytes": (BYTES, b64decode),
    "bool": (VARINT, lambda value: varint(int(value))),
    "int32": (VARINT, lambda value: varint(int(value))),
    "int64": (VARINT, lambda value: varint(int(value))),
    "double": (EIGHT_BYTES, lambda value: struct.pack("<d", value)),
    "time": (BYTES, _moment),
    "microtime": (BYTES, _moment),
    "duration": (BYTES, _duration),
    "quantity": (BYTES, _text_inside),
    "intorstring": (BYTES, _int_or_string),
    "raw": (BYTES, lambda value: part(1, BYTES, msgspec.json.encode(value))),
    "strings": (BYTES, _strings),
}
