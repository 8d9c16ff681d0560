"""CEL rules looked at: each has to compile against the schema it stands on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navarch.errors import DefinitionError, InvalidValueError
from navarch.schema import cel
from navarch.schema.faults import DefinitionFault
from navarch.schema.fieldpaths import field_path
from navarch.schema.rules import compile_rule
from navarch.schema.scalars import JsonSchema

__all__ = ["rule_faults"]

_REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")


def rule_faults(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """Every rule of a kind's schema that the API server does not take."""
    yield from _node(schema, path, root=True, uncorrelated="")


def _node(schema: JsonSchema, path: str, *, root: bool = False, uncorrelated: str) -> Iterator[DefinitionFault]:
    """`uncorrelated` is the nearest list around whose items have no old value."""
    rules = schema.get("x-kubernetes-validations") or []
    if rules:
        yield from _own(rules, schema, path, root=root, uncorrelated=uncorrelated)
    items, values = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        correlated = schema.get("x-kubernetes-list-type") == "map"
        yield from _node(items, f"{path}.items", uncorrelated=uncorrelated or ("" if correlated else path))
    if isinstance(values, dict):
        yield from _node(values, f"{path}.additionalProperties", uncorrelated=uncorrelated)
    for name, child in (schema.get("properties") or {}).items():
        yield from _node(child, f"{path}.properties[{name}]", uncorrelated=uncorrelated)


def _own(
    rules: list[JsonSchema], schema: JsonSchema, path: str, *, root: bool, uncorrelated: str
) -> Iterator[DefinitionFault]:
    path = f"{path}.x-kubernetes-validations"
    try:
        self_type = cel.type_of_schema(schema, resource=root)
    except DefinitionError as error:
        yield _fault(path, "rules on a value that CEL knows", str(error), "put the rule on the struct around it")
        return
    for index, rule in enumerate(rules):
        yield from _rule(rule, schema, self_type, f"{path}[{index}]", uncorrelated)


def _rule(
    rule: JsonSchema, schema: JsonSchema, self_type: Any, path: str, uncorrelated: str
) -> Iterator[DefinitionFault]:
    faults = [*_form_faults(rule, schema, path)]
    yield from faults
    if faults:
        return
    try:
        compiled = compile_rule(rule, schema, self_type)
    except cel.CelError as error:
        yield _fault(
            f"{path}.rule", "a CEL rule that fits the schema", f"{rule['rule']!r}: {error}", "correct the rule"
        )
        return
    if compiled.uses_old and uncorrelated:
        yield _fault(
            f"{path}.rule",
            "no oldSelf inside a list whose items cannot be told apart",
            repr(rule["rule"]),
            "make the list a ListMap, or put the rule on the list itself",
        )
    if not compiled.uses_old and rule.get("optionalOldSelf") is not None:
        yield _fault(f"{path}.optionalOldSelf", "optional_old_self on a rule that uses oldSelf", "another", "remove it")


def _form_faults(rule: JsonSchema, schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    expression, message = rule.get("rule", "").strip(), rule.get("message")
    if not expression:
        yield _fault(f"{path}.rule", "an expression", "nothing", "write one, or remove the rule")
    if message is not None and (not message.strip() or _has_lines(message.strip())):
        yield _fault(f"{path}.message", "one line of text", repr(message), "put it on one line")
    if _has_lines(expression) and not (message or "").strip():
        yield _fault(f"{path}.message", "a message, since the rule has several lines", "none", "add message=")
    if rule.get("messageExpression") is not None and not rule["messageExpression"].strip():
        yield _fault(f"{path}.messageExpression", "an expression", "nothing", "write one, or remove it")
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield _fault(f"{path}.reason", f"one of {', '.join(_REASONS)}", repr(rule["reason"]), "use one of them")
    field = rule.get("fieldPath")
    if field is not None:
        try:
            field_path(field, schema)
        except InvalidValueError as error:
            yield _fault(
                f"{path}.fieldPath", "the path of a field below the rule", f"{field!r} ({error})", "correct it"
            )
        if not field.strip():
            yield _fault(f"{path}.fieldPath", "a path like .size", repr(field), "write one, or remove it")


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _fault(path: str, expected: str, got: str, remedy: str) -> DefinitionFault:
    return DefinitionFault(path, f"expected {expected}, got {got}", remedy)
