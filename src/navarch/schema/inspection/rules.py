"""Checks CEL rules: each has to compile against its schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from navarch.errors import DefinitionError, InvalidValueError
from navarch.schema import cel
from navarch.schema.inspection.structural import DefinitionFault, children, unexpected
from navarch.schema.json_schema import JsonSchema, field_path
from navarch.schema.values.rules import CompiledRule, compile_message, compile_rule

_REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")


def rule_faults(schema: JsonSchema, path: str) -> list[DefinitionFault]:
    """Yields every rule of a kind's schema that the API server refuses, and all of them if they cost too much
    together.
    """
    inspection = _Inspection()
    inspection.node(schema, path, _RuleContext(resource=True, cardinality=1))
    if inspection.total > cel.CRD_COST_LIMIT:
        named = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        cost = _Cost("all rules together", named, inspection.total, cel.CRD_COST_LIMIT)
        inspection.faults += inspection.most_expensive()
        inspection.faults.append(_expensive(path, cost))
    return inspection.faults


@dataclass(frozen=True, slots=True)
class _RuleContext:
    """`uncorrelated` is the nearest list around whose items have no old value, `cardinality` how often the value can
    occur (None if there is no limit).
    """

    resource: bool = False
    uncorrelated: str = ""
    cardinality: int | None = None


@dataclass(slots=True)
class _Inspection:
    faults: list[DefinitionFault] = field(default_factory=list)
    total: int = 0
    """The cost of all rules so far."""
    costs: list[tuple[int, str, str]] = field(default_factory=list)
    """What the expensive ones cost, where they are, and what they say."""

    def node(self, schema: JsonSchema, path: str, around: _RuleContext) -> None:
        if schema.get("x-kubernetes-validations"):
            self._rules(schema, f"{path}.x-kubernetes-validations", around)
        inside = _RuleContext(uncorrelated=around.uncorrelated, cardinality=_inner_cardinality(schema, around))
        for child, inner in children(schema, path):
            is_item = inner == f"{path}.items" and schema.get("x-kubernetes-list-type") != "map"
            self.node(child, inner, replace(inside, uncorrelated=inside.uncorrelated or (path if is_item else "")))

    def _rules(self, schema: JsonSchema, path: str, around: _RuleContext) -> None:
        try:
            self_type = cel.type_of_schema(schema, resource=around.resource)
        except DefinitionError as error:
            remedy = "put the rule on the struct around it"
            self.faults.append(unexpected(path, "rules on a value that CEL knows", str(error), remedy))
            return
        for index, rule in enumerate(schema["x-kubernetes-validations"]):
            inner = f"{path}[{index}]"
            faults = [*_form_faults(rule, schema, inner)]
            self.faults += faults or self._compiled(rule, schema, self_type, inner, around)

    def _compiled(
        self, rule: JsonSchema, schema: JsonSchema, self_type: cel.CelType, path: str, around: _RuleContext
    ) -> list[DefinitionFault]:
        try:
            compiled = compile_rule({**rule, "messageExpression": None}, schema, self_type)
        except cel.CelError as error:
            return [_uncompiled(f"{path}.rule", rule, "rule", error, error.told)]
        times = cel.cardinality_of(self_type) if around.cardinality is None else around.cardinality
        faults = self._affordable(rule, "rule", path, compiled.program.estimated_cost * times)
        try:
            message = compile_message(rule, self_type)
        except cel.CelError as error:
            return [
                *faults,
                _uncompiled(f"{path}.messageExpression", rule, "messageExpression", error, _of_message(error)),
            ]
        if message is not None:
            faults += self._affordable(rule, "messageExpression", path, message.estimated_cost)
        return [*faults, *_transition_faults(compiled, path, around)]

    def _affordable(self, rule: JsonSchema, key: str, path: str, cost: int) -> list[DefinitionFault]:
        """Adds the cost of an expression to that of all."""
        self.total += cost
        if cost >= cel.CRD_COST_LIMIT // 100:
            self.costs.append((cost, f"{path}.{key}", repr(rule[key])))
        if cost <= cel.RULE_COST_LIMIT:
            return []
        return [_expensive(f"{path}.{key}", _Cost(repr(rule[key]), f"estimated {key} cost", cost, cel.RULE_COST_LIMIT))]

    def most_expensive(self) -> Iterator[DefinitionFault]:
        """Those that have the greatest part in a total that is too high."""
        said = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        expected, remedy = f"all rules to cost at most {cel.CRD_COST_LIMIT:,} in the worst case", "simplify this one"
        for cost, path, text in sorted(self.costs, key=lambda each: -each[0])[:_TOLD_COSTS]:
            yield unexpected(path, expected, f"{text}, which costs {cost:,}", remedy, told=f"Forbidden: {said}")


def _inner_cardinality(schema: JsonSchema, around: _RuleContext) -> int | None:
    """How often a value inside of this one can occur."""
    limits = {"array": "maxItems"} | ({"object": "maxProperties"} if schema.get("additionalProperties") else {})
    keyword = limits.get(schema.get("type", ""))
    if keyword is None or around.cardinality is None:
        return around.cardinality
    return None if schema.get(keyword) is None else around.cardinality * max(schema[keyword], 0)


def _uncompiled(path: str, rule: JsonSchema, key: str, error: cel.CelError, told: str) -> DefinitionFault:
    got = f"{rule[key]!r}: {error}"
    said = f"Invalid value: {_as_go_shows(rule)}: {told}"
    return unexpected(path, "a CEL rule that fits the schema", got, "correct the rule", told=said)


def _of_message(error: cel.CelError) -> str:
    """What is said of the expression of a message, where the rule itself would be told otherwise."""
    said = error.told.replace("program instantiation", "instantiation").removeprefix("cel expression ")
    return f"messageExpression {said}"


def _as_go_shows(rule: JsonSchema) -> str:
    """A rule as the API server's own type is written: with all its fields, and safe for HTML."""
    fields = {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    text = msgspec.json.encode(fields).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@dataclass(frozen=True, slots=True)
class _Cost:
    """The cost of `what`, which the API server calls by another name."""

    what: str
    named: str
    cost: int
    limit: int

    def factor(self) -> str:
        """How many times the limit it is."""
        times = self.cost / self.limit
        if times > _FAR_TOO_MUCH:
            return "more than 100x"
        return f"{times:.6f}x" if times < _HARDLY_TOO_MUCH else f"{times:.1f}x"


_TOLD_COSTS = 4
_FAR_TOO_MUCH = 100
_HARDLY_TOO_MUCH = 1.5
_TO_TRY = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"


def _expensive(path: str, cost: _Cost) -> DefinitionFault:
    over = f"exceeds budget by factor of {cost.factor()}"
    return unexpected(
        path,
        f"rules that cost at most {cost.limit:,} in the worst case",
        f"{cost.what}, which {over}",
        "give max_length to the strings, lists and maps it looks at, or simplify it",
        told=f"Forbidden: {cost.named} {over} ({_TO_TRY})",
    )


def _transition_faults(compiled: CompiledRule, path: str, around: _RuleContext) -> list[DefinitionFault]:
    rule = compiled.given
    if compiled.uses_old and around.uncorrelated:
        expected = "no oldSelf inside a list whose items cannot be told apart"
        remedy = "make the list a ListMap, or put the rule on the list itself"
        said = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {around.uncorrelated}"
        told = f"Invalid value: {_quoted(rule['rule'])}: {said}"
        return [unexpected(f"{path}.rule", expected, repr(rule["rule"]), remedy, told=told)]
    if not compiled.uses_old and rule.get("optionalOldSelf") is not None:
        expected = "optional_old_self on a rule that uses oldSelf"
        said = f"Invalid value: {_quoted(rule['optionalOldSelf'])}: may not be set if oldSelf is not used in rule"
        return [unexpected(f"{path}.optionalOldSelf", expected, "another", "remove it", told=said)]
    return []


def _quoted(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _form_faults(rule: JsonSchema, schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    expression, message = rule.get("rule", "").strip(), rule.get("message")
    if not expression:
        yield unexpected(
            f"{path}.rule",
            "a rule with an expression",
            "nothing",
            "write one, or remove the rule",
            told="Required value: rule is not specified",
        )
    if message is not None and (not message.strip() or _has_lines(message.strip())):
        expected = f"the message of the rule {expression!r} to be one line of text"
        said = "must not contain line breaks" if message.strip() else "must be non-empty if specified"
        told = f"Invalid value: {_quoted(message)}: {said}"
        yield unexpected(f"{path}.message", expected, repr(message), "write one line, or leave message= out", told=told)
    if _has_lines(expression) and not (message or "").strip():
        expected, told = (
            "a message, since the rule has several lines",
            "message must be specified if rule contains line breaks",
        )
        yield unexpected(f"{path}.message", expected, "none", "add message=", told=f"Required value: {told}")
    if rule.get("messageExpression") is not None and not rule["messageExpression"].strip():
        expected = f"the message_expression of the rule {expression!r} to be an expression"
        told = "Required value: messageExpression must be non-empty if specified"
        yield unexpected(f"{path}.messageExpression", expected, "nothing", "write one, or remove it", told=told)
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        expected, listed = f"one of {', '.join(_REASONS)}", ", ".join(map(_quoted, sorted(_REASONS)))
        told = f"Unsupported value: {_quoted(rule['reason'])}: supported values: {listed}"
        yield unexpected(f"{path}.reason", expected, repr(rule["reason"]), "use one of them", told=told)
    if rule.get("fieldPath") is not None:
        yield from _path_faults(rule["fieldPath"], schema, f"{path}.fieldPath")


def _path_faults(where: str, schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    told = f"Invalid value: {_quoted(where)}: "
    if not where.strip():
        remedy, said = "write one, or remove it", f"{told}must be non-empty if specified"
        yield unexpected(path, "a path like .size", repr(where), remedy, told=said)
        return
    try:
        field_path(where, schema)
    except InvalidValueError as error:
        said, got = f"{told}must be a valid path", f"{where!r} ({error})"
        yield unexpected(path, "the path of a field below the rule", got, "correct it", told=said)


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text
