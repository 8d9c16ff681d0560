"""Protobuf by hand: messages of numbered fields, and what Kubernetes puts around them."""

from __future__ import annotations

__all__ = ["MARK", "enveloped", "field", "named", "varint"]

MARK = b"k8s\0"


def varint(value: int) -> bytes:
    """An integer that is not negative."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def field(number: int, content: bytes | int) -> bytes:
    """One part of a message."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def enveloped(raw: bytes, api_version: str = "v1", kind: str = "ConfigMap") -> bytes:
    """A message as the body of a request."""
    return MARK + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, raw)


def named(name: str) -> bytes:
    """The metadata of an object of that name, as every kind has it."""
    return field(1, field(1, name.encode()))
