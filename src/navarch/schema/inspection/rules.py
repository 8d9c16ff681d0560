"""CEL rules looked at: each has to compile against the schema it stands on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from navarch.errors import DefinitionError, InvalidValueError
from navarch.schema import cel
from navarch.schema.document import JsonSchema
from navarch.schema.fieldpaths import field_path
from navarch.schema.inspection.faults import DefinitionFault, unexpected
from navarch.schema.inspection.structural import children
from navarch.schema.values.rules import CompiledRule, compile_rule

__all__ = ["rule_faults"]

_REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")


def rule_faults(schema: JsonSchema, path: str) -> list[DefinitionFault]:
    """Every rule of a kind's schema that the API server does not take, and all of them if they cost too much together."""
    inspection = _Inspection()
    inspection.node(schema, path, _Surroundings(resource=True, cardinality=1))
    if inspection.total > cel.CRD_COST_LIMIT:
        inspection.faults.append(_expensive(path, "all rules together", inspection.total, cel.CRD_COST_LIMIT))
    return inspection.faults


@dataclass(frozen=True, slots=True)
class _Surroundings:
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

    def node(self, schema: JsonSchema, path: str, around: _Surroundings) -> None:
        if schema.get("x-kubernetes-validations"):
            self._rules(schema, f"{path}.x-kubernetes-validations", around)
        inside = _Surroundings(uncorrelated=around.uncorrelated, cardinality=_inner_cardinality(schema, around))
        for child, inner in children(schema, path):
            is_item = inner == f"{path}.items" and schema.get("x-kubernetes-list-type") != "map"
            self.node(child, inner, replace(inside, uncorrelated=inside.uncorrelated or (path if is_item else "")))

    def _rules(self, schema: JsonSchema, path: str, around: _Surroundings) -> None:
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
        self, rule: JsonSchema, schema: JsonSchema, self_type: cel.CelType, path: str, around: _Surroundings
    ) -> list[DefinitionFault]:
        try:
            compiled = compile_rule(rule, schema, self_type)
        except cel.CelError as error:
            got = f"{rule['rule']!r}: {error}"
            return [unexpected(f"{path}.rule", "a CEL rule that fits the schema", got, "correct the rule")]
        times = cel.cardinality_of(self_type) if around.cardinality is None else around.cardinality
        costs = {"rule": compiled.program.estimated_cost * times}
        if compiled.message is not None:
            costs["messageExpression"] = compiled.message.estimated_cost
        self.total += sum(costs.values())
        expensive = [
            _expensive(f"{path}.{key}", repr(rule[key]), cost, cel.RULE_COST_LIMIT)
            for key, cost in costs.items()
            if cost > cel.RULE_COST_LIMIT
        ]
        return [*expensive, *_transition_faults(compiled, path, around)]


def _inner_cardinality(schema: JsonSchema, around: _Surroundings) -> int | None:
    """How often a value inside of this one can occur."""
    limits = {"array": "maxItems"} | ({"object": "maxProperties"} if schema.get("additionalProperties") else {})
    keyword = limits.get(schema.get("type", ""))
    if keyword is None or around.cardinality is None:
        return around.cardinality
    return None if schema.get(keyword) is None else around.cardinality * max(schema[keyword], 0)


def _expensive(path: str, what: str, cost: int, limit: int) -> DefinitionFault:
    return unexpected(
        path,
        f"rules that cost at most {limit:,} in the worst case",
        f"{what}, which exceeds budget by factor of {'more than 100x' if cost > 100 * limit else f'{cost / limit:.1f}x'}",
        "give max_length to the strings, lists and maps it looks at, or simplify it",
    )


def _transition_faults(compiled: CompiledRule, path: str, around: _Surroundings) -> list[DefinitionFault]:
    rule = compiled.given
    if compiled.uses_old and around.uncorrelated:
        expected = "no oldSelf inside a list whose items cannot be told apart"
        remedy = "make the list a ListMap, or put the rule on the list itself"
        return [unexpected(f"{path}.rule", expected, repr(rule["rule"]), remedy)]
    if not compiled.uses_old and rule.get("optionalOldSelf") is not None:
        expected = "optional_old_self on a rule that uses oldSelf"
        return [unexpected(f"{path}.optionalOldSelf", expected, "another", "remove it")]
    return []


def _form_faults(rule: JsonSchema, schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    expression, message = rule.get("rule", "").strip(), rule.get("message")
    if not expression:
        yield unexpected(f"{path}.rule", "a rule with an expression", "nothing", "write one, or remove the rule")
    if message is not None and (not message.strip() or _has_lines(message.strip())):
        expected = f"the message of the rule {expression!r} to be one line of text"
        yield unexpected(f"{path}.message", expected, repr(message), "write one line, or leave message= out")
    if _has_lines(expression) and not (message or "").strip():
        yield unexpected(f"{path}.message", "a message, since the rule has several lines", "none", "add message=")
    if rule.get("messageExpression") is not None and not rule["messageExpression"].strip():
        expected = f"the message_expression of the rule {expression!r} to be an expression"
        yield unexpected(f"{path}.messageExpression", expected, "nothing", "write one, or remove it")
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield unexpected(f"{path}.reason", f"one of {', '.join(_REASONS)}", repr(rule["reason"]), "use one of them")
    where = rule.get("fieldPath")
    if where is not None:
        try:
            field_path(where, schema)
        except InvalidValueError as error:
            yield unexpected(
                f"{path}.fieldPath", "the path of a field below the rule", f"{where!r} ({error})", "correct it"
            )
        if not where.strip():
            yield unexpected(f"{path}.fieldPath", "a path like .size", repr(where), "write one, or remove it")


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text
