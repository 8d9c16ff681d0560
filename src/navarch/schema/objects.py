"""Typed objects held against the schema of their own class."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from navarch.api.codec import to_builtins
from navarch.api.resource import Object
from navarch.errors import ValidationError
from navarch.schema.generation.definition import schema_of
from navarch.schema.values.compiled import Schema

__all__ = ["check"]


def check(obj: Object, old: Object | None = None) -> None:
    """Raises `ValidationError` with every cause if `obj` does not satisfy the schema of its own class.

    It is judged as a server would, after its defaults are filled in; `old` is the object before an update. Only the
    schema is asked: names, labels and unknown fields are not looked at.
    """
    schema = _schema_of_class(type(obj))
    found = schema.validate(_admitted(obj, schema), None if old is None else _admitted(old, schema))
    if found:
        kind = type(obj).__kind__
        raise ValidationError(f"{kind.kind} {obj.name!r} is not valid", found)


def _admitted(obj: Object, schema: Schema) -> Any:
    body = to_builtins(obj)
    schema.admit(body)
    return body


@lru_cache(maxsize=256)
def _schema_of_class(kind: type[Object]) -> Schema:
    return Schema(schema_of(kind, description_limit=0))
