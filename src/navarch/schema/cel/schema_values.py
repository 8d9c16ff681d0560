"""Converts JSON to the values of rules, according to its schema.

The schema is read once: `converter_of` returns a function that converts any number of values. A part of an object, map
or list that does not fit its schema becomes `UnreadableValue`, which fails only the rules that read it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from navarch.api.strconv import parse_int64
from navarch.schema.cel.containers import KeyedList, SchemaList, SchemaObject, SetList, UnreadableValue
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.lexer import escape
from navarch.schema.cel.library.formats import is_date
from navarch.schema.cel.library.times import parse_duration, parse_timestamp
from navarch.schema.cel.schema_types import Schema, is_embedded, with_resource_fields
from navarch.schema.cel.values import INT_MAX, NANOS, CelDuration, Timestamp, checked_duration, counted_units

Converter: TypeAlias = Callable[[Any], object]

_HUMAN_UNITS = {
    ("ns", "nano"): 1,
    ("us", "µs", "micro"): 1_000,
    ("ms", "milli"): 1_000_000,
    ("s", "sec"): NANOS,
    ("m", "min"): 60 * NANOS,
    ("h", "hr", "hour"): 3600 * NANOS,
    ("d", "day"): 86_400 * NANOS,
    ("w", "wk", "week"): 604_800 * NANOS,
}
_GO_NAMES = {float: "float64", int: "int64", str: "string"}
_BASE64 = re.compile(r"[A-Za-z0-9_-]*={0,2}\Z")


def value_of(json_value: Any, schema: Schema, *, resource: bool = False) -> object:
    """Returns the value of a variable for `Program.evaluate`; `resource` for the root of a custom resource.

    Raises `CelEvaluationError` if the value itself does not have the type of its schema.
    """
    return converter_of(schema, resource=resource)(json_value)


def converter_of(schema: Schema, *, resource: bool = False) -> Converter:
    """Returns `value_of` for one schema and many values."""
    return _nullable(schema, _converter(schema, resource or is_embedded(schema)))


def _nullable(schema: Schema, convert: Converter) -> Converter:
    nullable = bool(schema.get("nullable"))

    def run(value: Any) -> object:
        if value is not None:
            return convert(value)
        if nullable:
            return None
        raise CelEvaluationError("null is given where the schema does not allow it")

    return run


def _converter(schema: Schema, resource: bool) -> Converter:
    if schema.get("x-kubernetes-int-or-string"):
        return _expect(int, str)
    match schema.get("type"):
        case "object":
            return _object(with_resource_fields(schema) if resource else schema)
        case "array":
            return _list(schema)
        case "string":
            return _STRINGS.get(schema.get("format", ""), _expect(str))
        case "integer":
            return _expect(int)
        case "number":
            return _number
        case "boolean":
            return _expect(bool)
    return lambda value: value


def _expect(*kinds: type) -> Converter:
    """The value itself, if it is of one of these types exactly: true is no integer."""
    names = " or ".join(kind.__name__ for kind in kinds)

    def run(value: Any) -> object:
        if type(value) in kinds:
            return value
        raise CelEvaluationError(
            f"invalid data, expected {names}, got {_GO_NAMES.get(type(value), type(value).__name__)}"
        )

    return run


_text = _expect(str)


def _number(value: Any) -> float:
    if type(value) in {int, float}:
        return float(value)
    raise CelEvaluationError(f"a {type(value).__name__} is given where the schema wants a number")


def _object(schema: Schema) -> Converter:
    values = schema.get("additionalProperties")
    if schema.get("properties") is None and isinstance(values, Mapping):
        return _map(converter_of(values))
    fields = {
        name: (escaped, _converter(inner, is_embedded(inner)))
        for name, inner in (schema.get("properties") or {}).items()
        if (escaped := escape(name)) is not None and _reachable(inner)
    }

    def run(value: Any) -> SchemaObject:
        """A property that is null counts as absent."""
        found: dict[str, object] = {}
        hidden: dict[str, object] = {}
        for name, item in _mapping(value).items():
            field = fields.get(name)
            if field is None:
                hidden[name] = item
            elif item is not None:
                found[field[0]] = _part(item, field[1])
        return SchemaObject(found, hidden or None)

    return run


def _reachable(schema: Schema) -> bool:
    return "type" in schema or bool(schema.get("x-kubernetes-int-or-string"))


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise CelEvaluationError(f"a {type(value).__name__} is given where the schema wants an object")


def _part(value: Any, convert: Converter) -> object:
    try:
        return convert(value)
    except CelEvaluationError as error:
        return UnreadableValue(error)


def _map(convert: Converter) -> Converter:
    return lambda value: SchemaObject({key: _part(item, convert) for key, item in _mapping(value).items()})


def _list(schema: Schema) -> Converter:
    convert = converter_of(schema.get("items") or {})
    keys = tuple(escape(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ())

    def items(value: Any) -> list[object]:
        if not isinstance(value, list | tuple):
            raise CelEvaluationError(f"a {type(value).__name__} is given where the schema wants an array")
        try:
            return [convert(item) for item in value]
        except CelEvaluationError:
            return [_part(item, convert) for item in value]

    match schema.get("x-kubernetes-list-type"):
        case "set":
            return lambda value: SetList(items(value))
        case "map":
            return lambda value: KeyedList(items(value), keys)
    return lambda value: SchemaList(items(value))


def _date(value: Any) -> Timestamp:
    if not is_date(str(_text(value))):
        raise CelEvaluationError(f"{value!r} is no date; expected one such as 2024-01-31")
    return parse_timestamp(f"{value}T00:00:00Z")


def _date_time(value: Any) -> Timestamp:
    """A time without a zone is taken to be UTC."""
    text = str(_text(value)) or "1970-01-01T00:00:00Z"
    local = re.search(r"(?:[Zz]|[+-]\d\d:\d\d)\Z", text) is None
    return parse_timestamp(f"{text}Z" if local else text)


def _duration(value: Any) -> CelDuration:
    text = str(_text(value))
    try:
        return parse_duration(text)
    except CelEvaluationError:
        parts = [(parse_int64(count), _unit(unit)) for count, unit in counted_units(text)]
        if not any(nanos for _, nanos in parts):
            raise
        return checked_duration(sum(INT_MAX + 1 if count is None else count * nanos for count, nanos in parts))


def _unit(name: str) -> int:
    """The last spelling of each unit may go on: week, weeks."""
    for spellings, nanos in _HUMAN_UNITS.items():
        if name in spellings or name.startswith(spellings[-1]):
            return nanos
    return 0


def _bytes(value: Any) -> bytes:
    """The URL alphabet only, which is all the API server decodes for rules."""
    text = re.sub(r"[\r\n]", "", str(_text(value)))
    fault = CelEvaluationError("the value is no base64 in the alphabet for URLs, which has - and _")
    if _BASE64.match(text) is None:
        raise fault
    try:
        return base64.urlsafe_b64decode(text)
    except binascii.Error:
        raise fault from None


_STRINGS: dict[str, Converter] = {"date": _date, "date-time": _date_time, "duration": _duration, "byte": _bytes}
