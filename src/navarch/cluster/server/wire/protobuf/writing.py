"""Encodes objects as protobuf, for clients that accept nothing else."""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, Final

import msgspec

from navarch.api import Duration
from navarch.cluster.server.wire.protobuf.messages import fields_of, name_of
from navarch.cluster.server.wire.protobuf.wire import BYTES, EIGHT_BYTES, VARINT
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.times import read_time

Encoding = tuple[int, Callable[[Any], bytes]]
"""How a value of one type is encoded, and what makes the bytes, without tag and length."""

_64_BITS: Final = 2**64
_MARK: Final = b"k8s\0"
_LIST: Final = "List"
_META: Final = "meta.k8s.io/"
_OWN: Final[dict[str, dict[int, str]]] = {
    "ListMeta": {
        1: "selfLink o value string",
        2: "resourceVersion o value string",
        3: "continue o value string",
        4: "remainingItemCount o pointer int64",
    },
    "Status": {
        1: "metadata o value ListMeta",
        2: "status o value string",
        3: "message o value string",
        4: "reason o value string",
        5: "details o pointer StatusDetails",
        6: "code o value int32",
    },
    "StatusDetails": {
        1: "name o value string",
        2: "group o value string",
        3: "kind o value string",
        4: "causes o list StatusCause",
        5: "retryAfterSeconds o value int32",
        6: "uid o value string",
    },
    "StatusCause": {1: "reason o value string", 2: "message o value string", 3: "field o value string"},
    "PartialObjectMetadata": {1: "metadata o value meta/v1.ObjectMeta"},
}
"""What is only ever written, and therefore is not in the table."""
_CHOICES: Final[dict[str, Callable[[Any], Json]]] = {
    "apiextensions/v1.JSONSchemaPropsOrArray": lambda value: (
        {"jSONSchemas": value} if isinstance(value, list) else {"schema": value}
    ),
    "apiextensions/v1.JSONSchemaPropsOrBool": lambda value: (
        {"allows": value} if isinstance(value, bool) else {"allows": True, "schema": value}
    ),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": lambda value: (
        {"property": value} if isinstance(value, list) else {"schema": value}
    ),
}


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


def enveloped(value: Json) -> bytes:
    """An object, a list of objects or a Status, with the mark and the kind that Kubernetes puts around it."""
    api_version, kind = value["apiVersion"], value["kind"]
    meta = part(1, BYTES, api_version.encode()) + part(2, BYTES, kind.encode())
    body = _body(api_version, kind, value)
    return _MARK + part(1, BYTES, meta) + part(2, BYTES, body) + part(3, BYTES, b"") + part(4, BYTES, b"")


def framed_event(kind: str, value: Json) -> bytes:
    """One event of a watch, after its length."""
    event = part(1, BYTES, kind.encode()) + part(2, BYTES, part(1, BYTES, enveloped(value)))
    return len(event).to_bytes(4, "big") + event


def _body(api_version: str, kind: str, value: Json) -> bytes:
    if (name := _name(api_version, kind)) is not None:
        return _writer(name).write(value)
    item = _name(api_version, kind.removesuffix(_LIST))
    assert item is not None, f"{api_version} {kind} has no message"
    writer = _writer(item)
    items = b"".join(part(2, BYTES, writer.write(each)) for each in value.get("items") or ())
    return part(1, BYTES, _writer("ListMeta").write(value["metadata"])) + items


def _name(api_version: str, kind: str) -> str | None:
    is_own = kind in _OWN and (kind == "Status" or api_version.startswith(_META))
    return kind if is_own else name_of(api_version, kind)


class _MessageWriter:
    """Writes objects of one message. What JSON leaves out, protobuf does."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _fields(self) -> list[tuple[int, str, str, Encoding]]:
        """Made late, since messages may contain themselves."""
        described = _OWN.get(self._name) or fields_of(self._name)
        return [_field(number, text) for number, text in sorted(described.items())]

    def write(self, value: Json) -> bytes:
        return b"".join(self._parts(value))

    def _parts(self, value: Json) -> Iterator[bytes]:
        for number, name, shape, (wire, encode) in self._fields:
            if name == "-":
                yield part(number, wire, encode(value))
            elif (found := value.get(name)) is None:
                continue
            elif shape == "list":
                yield from (part(number, wire, encode(each)) for each in found)
            elif shape == "map":
                yield from (part(number, BYTES, _entry(key, each, wire, encode)) for key, each in found.items())
            else:
                yield part(number, wire, encode(found))


def _entry(key: str, value: Any, wire: int, encode: Callable[[Any], bytes]) -> bytes:
    return part(1, BYTES, key.encode()) + part(2, wire, encode(value))


def _field(number: int, text: str) -> tuple[int, str, str, Encoding]:
    name, _, shape, type_name = text.split(" ")
    return number, name, shape, _encoding(type_name)


def _encoding(type_name: str) -> Encoding:
    if (known := ENCODINGS.get(type_name)) is not None:
        return known
    chosen, writer = _CHOICES.get(type_name), _writer(type_name)
    return (BYTES, writer.write) if chosen is None else (BYTES, lambda value: writer.write(chosen(value)))


@cache
def _writer(name: str) -> _MessageWriter:
    return _MessageWriter(name)
