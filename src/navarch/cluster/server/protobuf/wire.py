"""Protobuf's own encoding: numbered parts that are integers or bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["BYTES", "EIGHT_BYTES", "VARINT", "MalformedError", "Part", "integers", "parts", "signed"]

VARINT: Final = 0
EIGHT_BYTES: Final = 1
BYTES: Final = 2
_END_GROUP: Final = 4
_FOUR_BYTES: Final = 5
_FIXED: Final = {EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_64_BITS: Final = 2**64 - 1
_EOF: Final = "unexpected EOF"

Part = tuple[int, int, "int | bytes"]
"""Its number, how it is encoded, and what is in it: an integer, or bytes."""


class MalformedError(Exception):
    """What is no protobuf of that message; the text is what Kubernetes would say."""


def parts(data: bytes, message: str) -> Iterator[Part]:
    """The parts of a message in order; raises MalformedError."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = signed(tag >> 3, 32), tag & 7
        if wire == _END_GROUP:
            raise MalformedError(f"proto: {message}: wiretype end group for non-group")
        if number <= 0:
            raise MalformedError(f"proto: {message}: illegal tag {number} (wire type {tag})")
        if wire == VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
        else:
            length, at = _length(data, at, wire)
            yield number, wire, data[at : at + length]
            at += length


def _length(data: bytes, at: int, wire: int) -> tuple[int, int]:
    """How many bytes a part has, and where they begin."""
    if wire == BYTES:
        length, at = _varint(data, at)
        if length >= 2**63:
            raise MalformedError("proto: negative length found during unmarshaling")
    elif wire in _FIXED:
        length = _FIXED[wire]
    else:
        raise MalformedError(f"proto: illegal wireType {wire}")
    if at + length > len(data):
        raise MalformedError(_EOF)
    return length, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer without its sign, and where it ends."""
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            raise MalformedError(_EOF)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _64_BITS, at
    raise MalformedError("proto: integer overflow")


def integers(packed: bytes) -> Iterator[int]:
    """The integers that lie one behind the other."""
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        yield value


def signed(value: int, bits: int) -> int:
    """The integer that the lowest bits stand for.

    >>> signed(2**64 - 1, 64), signed(2**32 + 5, 32)
    (-1, 5)
    """
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
