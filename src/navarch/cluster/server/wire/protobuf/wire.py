"""Protobuf's own encoding: numbered parts that are integers or bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

VARINT: Final = 0
EIGHT_BYTES: Final = 1
BYTES: Final = 2
_END_GROUP: Final = 4
_FOUR_BYTES: Final = 5
_FIXED: Final = {EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_WIRES: Final = frozenset({VARINT, BYTES, *_FIXED})
_LARGEST_TAG: Final = 2**34
"""Go takes the number of a field for an integer of 32 bits with a sign."""
_64_BITS: Final = 2**64 - 1
_EOF: Final = "unexpected EOF"

Part = tuple[int, int, "int | bytes"]
"""Its number, how it is encoded, and what is in it: an integer, or bytes."""


class MalformedError(Exception):
    """What is no protobuf of that message; the text is what Kubernetes would say."""


def parts(data: bytes, message: str) -> Iterator[Part]:
    """The parts of a message in order; raises MalformedError.

    Most tags and lengths are one byte: those are read here, the others by `_varint`.
    """
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _varint(data, at)
        wire = tag & 7
        if not 8 <= tag < _LARGEST_TAG or wire not in _WIRES:
            raise _bad_tag(tag, message)
        if wire in _FIXED:
            length = _FIXED[wire]
        else:
            if at < end and data[at] < 0x80:
                length = data[at]
                at += 1
            else:
                length, at = _varint(data, at)
            if wire == VARINT:
                yield tag >> 3, wire, length
                continue
        if at + length > end:
            raise MalformedError(_EOF if length < 2**63 else "proto: negative length found during unmarshaling")
        yield tag >> 3, wire, data[at : at + length]
        at += length


def _bad_tag(tag: int, message: str) -> MalformedError:
    wire = tag & 7
    if wire == _END_GROUP:
        return MalformedError(f"proto: {message}: wiretype end group for non-group")
    if wire not in _WIRES:
        return MalformedError(f"proto: illegal wireType {wire}")
    return MalformedError(f"proto: {message}: illegal tag {signed(tag >> 3, 32)} (wire type {tag})")


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
