"""`Thing`: a kind with one field, of whatever type a test is about."""

from __future__ import annotations

import enum
from typing import Any, NewType, cast

from navarch.api import Model, Object, Resource, Spec, Status
from navarch.api.model import ModelType
from navarch.api.resource import ObjectType
from navarch.schema import schema_of

Name = NewType("Name", str)


class Shade(enum.Enum):
    LIGHT = "light"
    DARK = "dark"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Point(Model):
    x: int
    y: int = 0


class Node(Model):
    inner: Node | None = None


class Own:
    """A type that says itself what it looks like on the wire."""

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        return {"type": "string", "pattern": "^own$"}

    @classmethod
    def from_wire(cls, value: object) -> Own:
        return cls()

    def to_wire(self) -> str:
        return "own"


def kind_with(annotation: Any, *, default: Any = None, **keywords: Any) -> type[Object]:
    """A kind whose spec has one field, `value`."""
    model_type, object_type = cast(Any, ModelType), cast(Any, ObjectType)
    spec = model_type("ThingSpec", (Spec,), {"__annotations__": {"value": annotation}, "value": default})
    bases = {
        "__orig_bases__": (cast(Any, Resource)[spec, Status],),
        "__annotations__": {"spec": spec, "status": Status},
    }
    named = {"group": "things.example.com", "version": "v1"} | keywords
    return cast(type[Object], object_type("Thing", (Resource,), bases, **named))


def value_schema(annotation: Any, **keywords: Any) -> dict[str, Any]:
    """The schema of `value`."""
    schema = schema_of(kind_with(annotation, **keywords))
    found: dict[str, Any] = schema["properties"]["spec"]["properties"]["value"]
    return found
