"""Draws values of a structural schema, for property tests. Needs hypothesis."""

from __future__ import annotations

import base64
from typing import Any, Final

from hypothesis import strategies as st

from navarch.api.json_patch import Json
from navarch.schema import Schema

_TEXT: Final = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
_NAMES: Final = st.from_regex(r"[a-z][a-z0-9-]{0,6}[a-z0-9]", fullmatch=True)
_QUANTITIES: Final = st.sampled_from(["0", "1", "1000m", "0.5", "1Gi", "1024Mi", "2k", "1e3"])
_QUANTITY_PATTERN: Final = "[KMGTPE]i"
_DURATIONS: Final = st.sampled_from(["0s", "1s", "250ms", "1.5h", "1h30m0s", "8760h"])
_DURATION_PATTERN: Final = "ns|us"
_INT64: Final = 2**63
_UNTYPED: Final = st.one_of(st.booleans(), st.integers(-9, 9), _TEXT, st.lists(st.integers(0, 3), max_size=2))
_FORMATS: Final[dict[str, st.SearchStrategy[str]]] = {
    "date-time": st.datetimes().map(lambda time: f"{time.replace(microsecond=0).isoformat()}Z"),
    "date": st.dates().map(lambda date: date.isoformat()),
    "uuid": st.uuids().map(str),
    "byte": st.binary(max_size=6).map(lambda data: base64.b64encode(data).decode()),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
}
_UNION_KEYWORDS: Final = ("oneOf", "anyOf")


def valid_values(schema: Json) -> st.SearchStrategy[Any]:
    """Returns values that satisfy the schema, rules included, in which optional fields may be missing.

    Values that a rule refuses are dropped; a schema whose rules refuse nearly all values makes hypothesis complain.
    """
    compiled = Schema(schema)
    return _values(schema).filter(lambda value: not compiled.validate(value))


def _values(schema: Json) -> st.SearchStrategy[Any]:
    if schema.get("nullable"):
        return st.none() | _values({**schema, "nullable": False})
    if schema.get("enum"):
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return _QUANTITIES if _QUANTITY_PATTERN in schema.get("pattern", "") else _int_or_string(schema)
    match schema.get("type"):
        case "object":
            return _objects(schema)
        case "array":
            return _lists(schema)
        case "string":
            return _texts(schema)
        case "integer":
            return _integers(schema)
        case "number":
            return _numbers(schema)
        case "boolean":
            return st.booleans()
    return _UNTYPED


def _objects(schema: Json) -> st.SearchStrategy[Any]:
    if schema.get("x-kubernetes-embedded-resource"):
        named = st.fixed_dictionaries({"name": _NAMES})
        return st.fixed_dictionaries({"apiVersion": st.just("v1"), "kind": st.just("Pod"), "metadata": named})
    least, most = schema.get("minProperties", 0), schema.get("maxProperties")
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return st.dictionaries(_NAMES, _values(values), min_size=least, max_size=_bounded(least, most))
    properties = schema.get("properties") or {}
    if not properties:
        return st.dictionaries(_NAMES, _UNTYPED, min_size=least, max_size=_bounded(least, most))
    members = [part for keyword in _UNION_KEYWORDS for part in schema.get(keyword) or ()]
    if members and all("properties" in part for part in members):
        return st.one_of([_members(_of_union(schema, part)) for part in members])
    return _members(schema)


def _members(schema: Json) -> st.SearchStrategy[Any]:
    required = set(schema.get("required") or ())
    fields = {name: _values(inner) for name, inner in schema["properties"].items()}
    return st.fixed_dictionaries(
        {name: values for name, values in fields.items() if name in required},
        optional={name: values for name, values in fields.items() if name not in required},
    )


def _of_union(schema: Json, member: Json) -> Json:
    """Returns the fields of one member of a union, with the constraints that the member adds."""
    refused = (member.get("not") or {}).get("anyOf") or ()
    others = {name for part in refused for name in part.get("required") or ()}
    properties = {
        name: {**inner, **member["properties"].get(name, {})}
        for name, inner in schema["properties"].items()
        if name not in others
    }
    return {"properties": properties, "required": [*(schema.get("required") or ()), *(member.get("required") or ())]}


def _lists(schema: Json) -> st.SearchStrategy[Any]:
    items = _values(schema.get("items") or {})
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") == "map":
        return st.lists(
            items,
            min_size=least,
            max_size=_bounded(least, most),
            unique_by=lambda item: tuple(str(item.get(key)) for key in keys),
        )
    if schema.get("x-kubernetes-list-type") == "set":
        return st.lists(items, min_size=least, max_size=_bounded(least, most), unique_by=str)
    return st.lists(items, min_size=least, max_size=_bounded(least, most))


def _bounded(least: int, most: int | None) -> int:
    """Returns a small size: long lists show no more than short ones."""
    return min(least + 3, most) if most is not None else least + 3


def _int_or_string(schema: Json) -> st.SearchStrategy[Any]:
    return _integers(schema) | (st.from_regex(schema["pattern"]) if "pattern" in schema else _TEXT)


def _texts(schema: Json) -> st.SearchStrategy[str]:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if _DURATION_PATTERN in schema.get("pattern", ""):  # the pattern alone allows more than 64 bits hold
        return _DURATIONS
    if "pattern" in schema:
        return st.from_regex(schema["pattern"]).filter(
            lambda text: len(text) >= least and (most is None or len(text) <= most)
        )
    return st.text(
        st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")),
        min_size=least,
        max_size=least + 8 if most is None else min(least + 8, most),
    )


def _integers(schema: Json) -> st.SearchStrategy[int]:
    half = 2**31 if schema.get("format") == "int32" else _INT64
    least, most = _bounds(schema, 1)
    step = schema.get("multipleOf")
    found = st.integers(int(max(least, -half)), int(min(most, half - 1)))
    return found.map(lambda number: number - number % int(step)) if step else found


def _numbers(schema: Json) -> st.SearchStrategy[float]:
    least, most = _bounds(schema, 0)
    return st.floats(max(least, -1e6), min(most, 1e6), width=32, allow_nan=False) | st.sampled_from(
        [bound for bound in (least, most) if abs(bound) < _INT64] or [0.5]
    )


def _bounds(schema: Json, margin: int) -> tuple[float, float]:
    """Returns the smallest and largest number; `margin` is the distance to a bound that is excluded."""
    least, most = schema.get("minimum", -_INT64), schema.get("maximum", _INT64 - 1)
    return (
        least + margin if schema.get("exclusiveMinimum") else least,
        most - margin if schema.get("exclusiveMaximum") else most,
    )
