"""Encodes OpenAPI version 2 in protobuf, the only form of it that Go clients request.

The messages are those of gnostic's OpenAPIv2.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from navarch.cluster.server.wire.protobuf.wire import BYTES, EIGHT_BYTES, VARINT
from navarch.cluster.server.wire.protobuf.writing import part, varint
from navarch.cluster.server.wire.request import Json

_EXTENSION: Final = 31


def in_protobuf(document: Json) -> bytes:
    """A document that has schemas, and no paths."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    definitions = _named_schemas(document["definitions"])
    return _text(1, document["swagger"]) + _bytes(2, info) + _bytes(8, b"") + _bytes(9, definitions)


def _named_schemas(schemas: Json) -> bytes:
    return b"".join(_bytes(1, _text(1, name) + _bytes(2, _schema(schema))) for name, schema in schemas.items())


def _schema(schema: Json) -> bytes:
    return b"".join(_keywords(schema))


def _keywords(schema: Json) -> Iterator[bytes]:
    for keyword, value in schema.items():
        if keyword in _KEYWORDS:
            number, write = _KEYWORDS[keyword]
            yield write(number, value)
        elif keyword.startswith("x-"):
            yield _bytes(_EXTENSION, _text(1, keyword) + _anything(2, value))


def _integer(number: int, value: Any) -> bytes:
    return part(number, VARINT, varint(int(value)))


def _bytes(number: int, content: bytes) -> bytes:
    return part(number, BYTES, content)


def _text(number: int, value: Any) -> bytes:
    return _bytes(number, str(value).encode())


def _double(number: int, value: Any) -> bytes:
    return part(number, EIGHT_BYTES, struct.pack("<d", value))


def _anything(number: int, value: Any) -> bytes:
    """Any value, as YAML, which JSON is."""
    return _bytes(number, _bytes(2, msgspec.json.encode(value)))


def _each(write: Callable[[int, Any], bytes]) -> Callable[[int, Iterable[Any]], bytes]:
    return lambda number, values: b"".join(write(number, value) for value in values)


def _nested(number: int, value: Json) -> bytes:
    return _bytes(number, _schema(value))


def _type(number: int, value: Any) -> bytes:
    return _bytes(number, _each(_text)(1, [value] if isinstance(value, str) else value))


def _items(number: int, value: Any) -> bytes:
    return _bytes(number, _each(_nested)(1, value if isinstance(value, list) else [value]))


def _additional(number: int, value: Any) -> bytes:
    return _bytes(number, _integer(2, value) if isinstance(value, bool) else _nested(1, value))


def _properties(number: int, value: Json) -> bytes:
    return _bytes(number, _named_schemas(value))


_KEYWORDS: Final[dict[str, tuple[int, Callable[[int, Any], bytes]]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _anything),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _integer),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _integer),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _integer),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _each(_text)),
    "enum": (20, _each(_anything)),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "properties": (25, _properties),
}
