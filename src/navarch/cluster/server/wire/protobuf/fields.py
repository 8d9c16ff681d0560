"""The fields of a message: how their parts come together, and which of them JSON leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from navarch.cluster.server.wire.protobuf.wire import BYTES, VARINT, MalformedError, integers, parts
from navarch.cluster.server.wire.request import Json

__all__ = ["SHAPES", "Field", "Inline", "Type"]


class Type(Protocol):
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


class Field(Protocol):
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
class _Named:
    """What all fields have."""

    name: str
    omitted: bool
    type: Type

    def _read(self, wire: int, part: Any, depth: int) -> Any:
        if wire != self.type.wire:
            raise MalformedError(f"proto: wrong wireType = {wire} for field {_go_name(self.name)}")
        return self.type.read(part, depth)


@dataclass(frozen=True, slots=True)
class _Plain(_Named):
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
class _Pointer(_Named):
    """A value that Go can do without."""

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        found[self.name] = self._read(wire, part, depth)

    def fill(self, found: Json) -> None:
        found[self.name] = None


@dataclass(frozen=True, slots=True)
class _List(_Pointer):
    """One part for each item, or integers packed into one."""

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        items = found.setdefault(self.name, [])
        if wire == BYTES and self.type.wire == VARINT:
            items += [self.type.read(each, depth) for each in integers(part)]
        else:
            items.append(self._read(wire, part, depth))


@dataclass(frozen=True, slots=True)
class _Map(_Pointer):
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
class Inline(_Named):
    """A message whose fields JSON has among those of the one around it."""

    def take(self, found: Json, wire: int, part: Any, depth: int) -> None:
        found.update(self._read(wire, part, depth))

    def fill(self, found: Json) -> None:
        found.update(self.type.absent())


SHAPES: dict[str, Callable[[str, bool, Type], Field]] = {
    "value": _Plain,
    "pointer": _Pointer,
    "list": _List,
    "map": _Map,
}


def _go_name(name: str) -> str:
    return "ObjectMeta" if name == "metadata" else name[:1].upper() + name[1:]
