"""Decodes the messages of Kubernetes' API, compiled from a table when they are first needed, and their envelope."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.protobuf.values import SHAPES, VALUES, Inline, ProtobufField, ValueType
from navarch.cluster.server.wire.protobuf.wire import BYTES, MalformedError, Part, parts
from navarch.cluster.server.wire.request import Json

_MARK: Final = b"k8s\0"
_SCHEME: Final = "pkg/runtime/scheme.go:111"
_UNKNOWN: Final = {1: "TypeMeta", 2: "Raw", 3: "ContentEncoding", 4: "ContentType"}
_TYPE_META: Final = {1: "APIVersion", 2: "Kind"}
DEEPEST: Final = 100
"""How many messages may lie in each other: a schema could go on without end, but nobody could read it."""
_CHARGED_AT_ONCE: Final = 1024
_EMPTY: Final = frozenset({"string", "bytes", "bool", "int32", "int64", "double", "strings"})
"""The types of values that can be empty in Go."""
_TABLE: Final = Path(__file__).parent / "data" / "messages.json"
_CHOICES: Final[dict[str, Callable[[Json], Any]]] = {
    "apiextensions/v1.JSONSchemaPropsOrArray": lambda found: found["jSONSchemas"] or found["schema"],
    "apiextensions/v1.JSONSchemaPropsOrBool": lambda found: (
        found["allows"] if found["schema"] is None else found["schema"]
    ),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": lambda found: found["property"] or found["schema"],
}


@dataclass(frozen=True, slots=True)
class ProtobufEnvelope:
    """A message that is not read yet; the kind may be left out."""

    api_version: str
    kind: str
    raw: bytes

    def read(self, api_version: str, kind: str) -> Json:
        """The message as an object of that kind; raises MalformedError if it is none, or nobody knows the kind."""
        message = message_of(api_version, kind)
        if message is None:
            raise MalformedError(f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"')
        return {"apiVersion": api_version, "kind": kind, **message.read(self.raw)}


def opened(body: bytes) -> ProtobufEnvelope:
    """The envelope that a body is; raises MalformedError, with the words of Kubernetes."""
    if not body:
        raise MalformedError("empty data")
    if not body.startswith(_MARK):
        mark = " ".join(str(byte) for byte in _MARK)
        raise MalformedError(f"provided data does not appear to be a protobuf message, expected prefix [{mark}]")
    if len(body) == len(_MARK):
        raise MalformedError("empty body")
    found = _contents(body[len(_MARK) :], "Unknown", _UNKNOWN)
    meta = _contents(found.get(1, b""), "TypeMeta", _TYPE_META)
    api_version, kind = (meta.get(number, b"").decode(errors="replace") for number in (1, 2))
    return ProtobufEnvelope(api_version, kind, found.get(2, b""))


def _contents(data: bytes, message: str, fields: dict[int, str]) -> dict[int, bytes]:
    """The fields of a message that has nothing but bytes."""
    found = {}
    for number, wire, content in _charged(parts(data, message)):
        if number in fields:
            if not isinstance(content, bytes):
                raise MalformedError(f"proto: wrong wireType = {wire} for field {fields[number]}")
            found[number] = content
    return found


def _charged(found: Iterator[Part]) -> Iterator[Part]:
    """The parts of a message; many are charged while they are read, since they may all be of one field."""
    while several := [*islice(found, _CHARGED_AT_ONCE)]:
        if len(several) == _CHARGED_AT_ONCE:
            current_budget().charge_nodes(_CHARGED_AT_ONCE)
        yield from several


class _Table(msgspec.Struct):
    """As it lies in the file; what the text of a field means is said in scripts/go_types/protobuf/messages.go."""

    kinds: dict[str, dict[str, str]]
    messages: dict[str, dict[int, str]]


@cache
def _table() -> _Table:
    return msgspec.json.decode(_TABLE.read_bytes(), type=_Table)


def message_of(api_version: str, kind: str) -> ProtobufMessage | None:
    """The message of a kind; None for one that has none. Each version of each group has options of a deletion."""
    name = name_of("meta.k8s.io/v1" if kind == "DeleteOptions" else api_version, kind)
    return None if name is None else _message(name)


def name_of(api_version: str, kind: str) -> str | None:
    """What the message of a kind is called; None for a kind that has none."""
    return _table().kinds.get(api_version, {}).get(kind)


def fields_of(name: str) -> dict[int, str]:
    """The fields of a message by their numbers, each as the table has it."""
    return _table().messages[name]


class ProtobufMessage:
    """Reads objects of one type."""

    wire: Final = BYTES

    def __init__(self, name: str) -> None:
        self.name = name
        self._short = name.rpartition(".")[2]

    @cached_property
    def _fields(self) -> dict[int, ProtobufField]:
        """Made late, since messages may contain themselves."""
        return {number: _field(text) for number, text in _table().messages[self.name].items()}

    @cached_property
    def _constant(self) -> dict[int, ProtobufField]:
        """The fields that JSON has even if there is nothing in them."""
        return {number: field for number, field in self._fields.items() if not field.omitted}

    def read(self, part: bytes, depth: int = 0) -> Json:
        """The object as JSON; raises MalformedError. An empty part of two bytes may be an object with many fields."""
        if depth > DEEPEST:
            raise MalformedError("exceeded max depth")
        found: Json = {}
        seen, fields = set(), self._fields
        for number, wire, content in _charged(parts(part, self._short)):
            field = fields.get(number)
            if field is not None:
                field.take(found, wire, content, depth + 1)
                seen.add(number)
        for number, field in self._constant.items():
            if number not in seen:
                field.fill(found)
        current_budget().charge_nodes(1 + len(found))
        return found

    def absent(self) -> Json:
        """The object with nothing in it."""
        return self.read(b"")


class _Choice:
    """A message that stands for one of the things in it."""

    wire: Final = BYTES

    def __init__(self, name: str, chosen: Callable[[Json], Any]) -> None:
        self._message = ProtobufMessage(name)
        self._chosen = chosen

    def read(self, part: bytes, depth: int) -> Any:
        return self._chosen(self._message.read(part, depth))

    def absent(self) -> Any:
        return self.read(b"", 0)


@cache
def _message(name: str) -> ProtobufMessage:
    return ProtobufMessage(name)


def _field(text: str) -> ProtobufField:
    name, flags, shape, type_name = text.split(" ")
    if name == "-":
        return Inline(name, omitted=False, type=_type(type_name))
    return SHAPES[shape](name, _is_omitted(flags, shape, type_name), _type(type_name))


def _is_omitted(flags: str, shape: str, type_name: str) -> bool:
    """Go's omitempty leaves out no struct, whatever is in it; its omitzero does."""
    return flags == "z" or (flags == "o" and (shape != "value" or type_name in _EMPTY))


def _type(name: str) -> ValueType:
    if (value := VALUES.get(name)) is not None:
        return value
    chosen = _CHOICES.get(name)
    return _message(name) if chosen is None else _Choice(name, chosen)
