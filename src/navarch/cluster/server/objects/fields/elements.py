"""Path elements: how FieldsV1 names a member of an object or an item of a list.

`f:replicas` is a field, `k:{"name":"web"}` the item of a list with these keys, `v:"a"` the item of a set, `i:0` an
item by its place. Two elements are the same if and only if their texts are: values are written in one way only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from navarch.api.strconv import go_quoted, parse_int64
from navarch.cluster.server.wire.go_text import go_number

_PLAIN = re.compile('[^\x00-\x1f"\\\\<>&\u2028\u2029]*').fullmatch
_ESCAPES = {chr(code): f"\\u{code:04x}" for code in (*range(32), *map(ord, "<>&"), 0x2028, 0x2029)}
_ESCAPES |= {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def key_element(keys: Iterable[tuple[str, Any]]) -> str:
    """The item of a list that has these keys, given in the order of their names."""
    return "k:{" + ",".join(f'"{name}":{written(value)}' for name, value in keys) + "}"


def value_element(value: Any) -> str:
    """The item of a set."""
    return "v:" + written(value)


def written(value: Any) -> str:
    r"""A scalar in JSON as Kubernetes writes it inside a path element.

    >>> written("a<b"), written(1.0), written(True)
    ('"a\\u003cb"', '1', 'true')
    """
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, float):
        return _float(value)
    return str(value) if isinstance(value, int) else msgspec.json.encode(value).decode()


@lru_cache(maxsize=8192)
def quoted(text: str) -> str:
    """A text in JSON, as `written` writes it."""
    if _PLAIN(text):
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'


def _float(value: float) -> str:
    size = abs(value)
    if value == 0 or 1e-6 <= size < 1e21:
        return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
    return repr(value).replace("e-0", "e-")


def canonical_element(text: str) -> str | None:
    """The one way to write an element that a client may have written otherwise; None for a form of a later version.

    Raises ValueError for what is none.
    """
    if len(text) < 2 or text[1] != ":":
        raise ValueError(f"expected a path element such as f:spec, got {text!r}")
    form, rest = text[0], text[2:]
    if form == "f":
        return text
    if form == "k":
        keys = msgspec.json.decode(rest, type=dict[str, Any])
        return key_element(sorted(keys.items()))
    if form == "v":
        return value_element(msgspec.json.decode(rest))
    if form != "i":
        return None
    if (place := parse_int64(rest)) is None:
        raise ValueError(f"expected a place in a list, got {rest!r}")
    return f"i:{place}"


@lru_cache(maxsize=16384)
def order(element: str) -> tuple[Any, ...]:
    """What elements are sorted by: "." first, then fields, keys, values, places."""
    form, rest = element[0], element[2:]
    if form == "f":
        return 1, rest
    if form == "k":
        keys = msgspec.json.decode(rest, type=dict[str, Any])
        return 2, tuple((name, _value_order(value)) for name, value in sorted(keys.items()))
    if form == "v":
        return 3, _value_order(msgspec.json.decode(rest))
    return (4, int(rest)) if form == "i" else (0, "")


def _value_order(value: Any) -> tuple[int, Any]:
    """Numbers, then texts, then false and true."""
    if isinstance(value, bool):
        return 3, value
    if isinstance(value, int | float):
        return 1, value
    return (2, value) if isinstance(value, str) else (4, written(value))


def shown(element: str) -> str:
    """An element as messages show it.

    >>> shown("f:ports") + shown('k:{"port":80,"protocol":"TCP"}') + shown('v:"a"') + shown("i:0")
    '.ports[port=80,protocol="TCP"][="a"][0]'
    """
    form, rest = element[0], element[2:]
    if form == "f":
        return f".{rest}"
    if form == "k":
        keys = msgspec.json.decode(rest, type=dict[str, Any])
        return "[" + ",".join(f"{name}={shown_value(value)}" for name, value in keys.items()) + "]"
    return f"[={shown_value(msgspec.json.decode(rest))}]" if form == "v" else f"[{rest}]"


def shown_value(value: Any) -> str:
    """A value as messages show it: numbers as Go prints floats, texts quoted as Go quotes them, the rest as JSON."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, dict | list):
        return written(value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return go_number(value)
