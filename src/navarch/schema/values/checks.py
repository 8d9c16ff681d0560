"""Compiles schemas into functions that check values.

The order of checks, the quirks and the messages are those of the API server. With an old value, faults of unchanged
parts are ignored (the server calls it ratcheting), so that a tightened schema does not block updates of objects that
were stored before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from navarch.schema.json_schema import JsonSchema
from navarch.schema.patterns import pattern_check
from navarch.schema.values.formats import format_check, is_known_format
from navarch.schema.values.list_types import MISSING, old_items, same
from navarch.schema.values.numbers import LARGEST_INT, SMALLEST_INT, is_whole, number_check
from navarch.schema.values.violations import (
    MOST_VIOLATIONS,
    SchemaViolation,
    in_body,
    not_supported,
    required,
    supported_values,
    too_long,
    too_many,
    type_invalid,
)

Check = Callable[[Any, Any], Sequence[SchemaViolation]]
"""Returns the faults of a value; takes its old value too, or MISSING."""

_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_GO_FORMATS = {int: "int64", float: "float64"}
_NO_FAULTS: tuple[SchemaViolation, ...] = ()
_NO_TYPES: frozenset[type] = frozenset()


def compile_check(schema: JsonSchema, *, root: bool = False, forgiving: bool = True) -> Check:
    """Returns the check of one node and all below it. `forgiving` is off inside junctors, where the server does not
    ratchet.
    """
    check, _ = _compiled(schema, root=root, forgiving=forgiving)
    return check


def _compiled(schema: JsonSchema, *, root: bool = False, forgiving: bool = True) -> tuple[Check, frozenset[type]]:
    """The check, and the types whose values all pass: those need not be asked, and most values are such texts.

    Each part of a schema is compiled once, whatever the number of types: parts of parts would take exponential time.
    """
    junctors, enum = _junctor_checks(schema), _enum_check(schema)
    checks = {python_type: _checks_for(python_type, schema, junctors, enum, root=root) for python_type in _NAMES}
    null_checks = [check for check in (_type_check(type(None), schema), enum) if check]

    def run(value: Any, old: Any) -> Sequence[SchemaViolation]:
        if value is None:
            wanted = null_checks
        else:
            kind = _kind(value)
            wanted = checks[kind]
            if kind is float and isinstance(value, int):
                value = float(value)
        found: Sequence[SchemaViolation] = _NO_FAULTS
        for check in wanted:
            faults = check(value, old)
            if faults:
                found = [*found, *faults]
        return _NO_FAULTS if found and forgiving and old is not MISSING and same(old, value) else found

    return run, frozenset(kind for kind in (str, bool) if not checks[kind])


def _kind(value: Any) -> type:
    """The type that decides; integers beyond 64 bits are floats to the server."""
    kind = type(value)
    if kind is int:
        return int if SMALLEST_INT <= value <= LARGEST_INT else float
    return (
        kind
        if kind in _NAMES
        else next(known for known in (str, bool, int, float, list, dict) if isinstance(value, known))
    )


def _checks_for(
    python_type: type, schema: JsonSchema, junctors: list[Check], enum: Check | None, *, root: bool
) -> list[Check]:
    by_type: list[Check | None] = [_type_check(python_type, schema), *junctors]
    if python_type is str:
        by_type += [_string_check(schema), _format_check(schema)]
    if python_type in {int, float}:
        check = number_check(schema, _single_type(schema))
        by_type.append(None if check is None else lambda value, _: check(value))
    if python_type is list:
        by_type.append(_list_check(schema))
    by_type.append(enum)
    if python_type is dict:
        by_type.append(_object_check(schema, root=root))
    return [check for check in by_type if check is not None]


def _types(schema: JsonSchema) -> list[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def _single_type(schema: JsonSchema) -> str | None:
    types = _types(schema)
    return types[0] if len(types) == 1 else None


def _type_check(python_type: type, schema: JsonSchema) -> Check | None:
    types = _types(schema)
    checked_format = schema.get("format") if is_known_format(_single_type(schema), schema.get("format") or "") else None
    if python_type is type(None):
        wrong = bool(types) and not schema.get("nullable")
        return (lambda _value, _old: [type_invalid(",".join(types), "null")]) if wrong else None
    name = _NAMES[python_type]
    if not types and not checked_format:
        return None
    if name in types or (name == "integer" and "number" in types):
        return None
    numeric = bool({"integer", "number"} & set(types))
    if checked_format and not numeric and python_type in {str, list}:
        return None  # the server looks at the format alone here, and a format says nothing about lists
    if checked_format and python_type not in {str, list}:
        expected, got = checked_format, _GO_FORMATS.get(python_type, "")
    else:
        expected, got = ",".join(types), name
    if python_type is float and "integer" in types:
        return lambda value, _: _NO_FAULTS if is_whole(value) else [type_invalid(expected, got)]
    return lambda _value, _old: [type_invalid(expected, got)]


def _string_check(schema: JsonSchema) -> Check | None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is None and shortest is None and not pattern:
        return None
    matches = pattern_check(pattern) if pattern else None

    def check(text: str, _old: Any) -> Sequence[SchemaViolation]:
        if longest is not None and len(text) > longest:
            return [too_long(longest)]
        if shortest is not None and len(text) < shortest:
            return [in_body(text, f"should be at least {shortest} chars long")]
        if matches is not None and not matches(text):
            return [in_body(text, f"should match '{pattern}'")]
        return _NO_FAULTS

    return check


def _format_check(schema: JsonSchema) -> Check | None:
    name = schema.get("format") or ""
    fits = format_check(name) if is_known_format(_single_type(schema), name) else None
    if fits is None:
        return None
    return lambda text, _: _NO_FAULTS if fits(text) else [type_invalid(name, text)]


def _enum_check(schema: JsonSchema) -> Check | None:
    values = schema.get("enum")
    if not values:
        return None
    texts = frozenset(value for value in values if isinstance(value, str))
    numbers = frozenset(value for value in values if type(value) is int)
    others = [value for value in values if not isinstance(value, str) and type(value) is not int]
    supported = supported_values(values)

    def check(value: Any, _old: Any) -> Sequence[SchemaViolation]:
        if isinstance(value, str):
            known = value in texts
        elif isinstance(value, float) and numbers:
            known = any(_equals_enum(value, entry) for entry in values)
        else:
            known = type(value) is int and value in numbers
            known = known or any(_equals_enum(value, entry) for entry in others)
        return _NO_FAULTS if known else [not_supported(value, supported)]

    return check


def _equals_enum(value: Any, entry: Any) -> bool:
    """Equal after the value is made a number of the entry's type, as Go converts it: 1.5 is 1 to an integer."""
    if value is None or isinstance(value, bool) or isinstance(entry, bool):
        return value is not None and same(entry, value)
    if isinstance(value, int | float) and isinstance(entry, int | float):
        return bool(type(entry)(value) == entry)
    return same(entry, value)


def _list_check(schema: JsonSchema) -> Check | None:
    items, fewest, most = schema.get("items"), schema.get("minItems"), schema.get("maxItems")
    check_item, passing = _compiled(items) if isinstance(items, dict) else (None, _NO_TYPES)

    def check(values: list[Any], old: Any) -> Sequence[SchemaViolation]:
        found: list[SchemaViolation] = []
        if check_item is not None:
            old_of = old_items(schema, old)
            for index, item in enumerate(values):
                if type(item) in passing:
                    continue
                for fault in check_item(item, old_of(item)):
                    fault.path = f"[{index}]{fault.path}"
                    found.append(fault)
                if len(found) >= MOST_VIOLATIONS:
                    break
        if fewest is not None and len(values) < fewest:
            found.append(in_body(len(values), f"should have at least {fewest} items"))
        if most is not None and len(values) > most:
            found.append(too_many(len(values), most))
        return found

    return check


def _object_check(schema: JsonSchema, *, root: bool) -> Check | None:
    fields = {name: _compiled(child) for name, child in (schema.get("properties") or {}).items()}
    values = schema.get("additionalProperties")
    others = _compiled(values) if isinstance(values, dict) else None
    needed = tuple(schema.get("required") or ())
    fewest, most = schema.get("minProperties"), schema.get("maxProperties")
    unforgiven = {"apiVersion", "kind"} if root else frozenset[str]()

    def check(value: dict[str, Any], old: Any) -> Sequence[SchemaViolation]:
        found: list[SchemaViolation] = []
        if fewest is not None and len(value) < fewest:
            found.append(in_body(len(value), f"should have at least {fewest} properties"))
        if most is not None and len(value) > most:
            found.append(too_many(len(value), most))
        before = old if isinstance(old, dict) else {}
        for name, inner in value.items():
            part = fields.get(name, others)
            if part is not None:
                check_inner, passing = part
                if type(inner) in passing:
                    continue
                for fault in check_inner(inner, MISSING if name in unforgiven else before.get(name, MISSING)):
                    fault.path = f".{name}{fault.path}"
                    found.append(fault)
            elif values is False:
                found.append(in_body(name, "is a forbidden property"))
            if len(found) >= MOST_VIOLATIONS:
                break
        found += [_missing(name) for name in needed if name not in value]
        return found

    return check


def _missing(name: str) -> SchemaViolation:
    fault = required()
    fault.path = f".{name}"
    return fault


def _junctor_checks(schema: JsonSchema) -> list[Check]:
    checks: list[Check] = []
    if schema.get("anyOf"):
        checks.append(_any_of([compile_check(part, forgiving=False) for part in schema["anyOf"]]))
    if schema.get("oneOf"):
        checks.append(_one_of([compile_check(part, forgiving=False) for part in schema["oneOf"]]))
    if schema.get("allOf"):
        checks.append(_all_of([compile_check(part, forgiving=False) for part in schema["allOf"]]))
    if schema.get("not") is not None:
        inner = compile_check(schema["not"], forgiving=False)
        checks.append(
            lambda value, old: _NO_FAULTS if inner(value, old) else [_junctor("must not validate the schema (not)")]
        )
    return checks


def _any_of(parts: list[Check]) -> Check:
    def check(value: Any, old: Any) -> Sequence[SchemaViolation]:
        best: Sequence[SchemaViolation] | None = None
        for part in parts:
            found = part(value, old)
            if not found:
                return _NO_FAULTS
            best = found if best is None or len(found) < len(best) else best
        return [_junctor("must validate at least one schema (anyOf)"), *(best or ())]

    return check


def _one_of(parts: list[Check]) -> Check:
    def check(value: Any, old: Any) -> Sequence[SchemaViolation]:
        results = [part(value, old) for part in parts]
        valid = sum(not found for found in results)
        if valid == 1:
            return _NO_FAULTS
        found = "Found none valid" if valid == 0 else f"Found {valid} valid alternatives"
        best = min(results, key=len) if valid == 0 else ()
        return [_junctor(f"must validate one and only one schema (oneOf). {found}"), *best]

    return check


def _all_of(parts: list[Check]) -> Check:
    def check(value: Any, old: Any) -> Sequence[SchemaViolation]:
        results = [part(value, old) for part in parts]
        if not any(results):
            return _NO_FAULTS
        none = ". None validated" if all(results) else ""
        found = [fault for result in results for fault in result]
        return [*found, _junctor(f"must validate all the schemas (allOf){none}")]

    return check


def _junctor(detail: str) -> SchemaViolation:
    """The server repeats the path in quotes here."""
    return SchemaViolation("FieldValueInvalid", 'Invalid value: "": "', f'" {detail}')
