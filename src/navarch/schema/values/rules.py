"""Compiles CEL rules with their schema and evaluates them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from navarch.errors import InvalidValueError
from navarch.schema import cel
from navarch.schema.cel.containers import nodes_of
from navarch.schema.json_schema import JsonSchema, field_path
from navarch.schema.values.list_types import MISSING, old_items, same
from navarch.schema.values.violations import SchemaViolation, below, invalid, shown

_LONGEST_MESSAGE = 5 * 1024
_CONVERSION = 3
"""What it costs to make one value of an object ready for rules; the API server does that for free."""
_HEADINGS = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One compiled rule."""

    given: JsonSchema
    program: cel.Program
    message: cel.Program | None
    path: str
    optional_old: bool

    @property
    def uses_old(self) -> bool:
        """True for a transition rule."""
        return self.program.uses_variable("oldSelf")


def compile_rule(given: JsonSchema, schema: JsonSchema, self_type: cel.CelType) -> CompiledRule:
    """Raises `CelError` if the rule or its message does not fit the type."""
    program = cel.compile(given.get("rule", ""), _known(given, self_type), result=cel.BOOL)
    message = compile_message(given, self_type)
    path = _shown_path(given.get("fieldPath"), schema)
    return CompiledRule(given, program, message, path, bool(given.get("optionalOldSelf")))


def compile_message(given: JsonSchema, self_type: cel.CelType) -> cel.Program | None:
    """Returns the expression of a rule's message. Raises `CelError` if it does not fit the type."""
    expression = given.get("messageExpression")
    return cel.compile(expression, _known(given, self_type), result=cel.STRING) if expression else None


def _known(given: JsonSchema, self_type: cel.CelType) -> dict[str, cel.CelType]:
    return {"self": self_type, "oldSelf": cel.optional_of(self_type) if given.get("optionalOldSelf") else self_type}


def _shown_path(path: str | None, schema: JsonSchema) -> str:
    if not path:
        return ""
    try:
        shown_path = field_path(path, schema)[0]
    except InvalidValueError:
        return ""
    return shown_path if shown_path.startswith("[") else f".{shown_path}"


@dataclass(slots=True)
class RuleNode:
    """The rules of one node of a schema, and of the nodes below it."""

    schema: JsonSchema
    convert: Callable[[Any], Any] | None = None
    rules: list[CompiledRule] = field(default_factory=list)
    fields: dict[str, RuleNode] = field(default_factory=dict)
    values: RuleNode | None = None
    items: RuleNode | None = None

    def check(
        self, value: Any, old: Any, unchanged: Callable[[], bool], budget: cel.CostBudget
    ) -> list[SchemaViolation]:
        """Returns the faults of `value`. `unchanged` tells if the nearest known old value around it is equal. Charges
        the budget, and evaluates no rule once it is closed.
        """
        if value is None or budget.is_closed:
            return []
        if old is not MISSING:
            unchanged = _remembered(old, value)
        found = self._own(value, old, unchanged, budget) if self.rules else []
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for name, inner in value.items():
                node, step = (self.fields[name], f".{name}") if name in self.fields else (self.values, f"[{name}]")
                if node is not None and (step[0] == "." or name not in (self.schema.get("properties") or {})):
                    found += below(step, node.check(inner, before.get(name, MISSING), unchanged, budget))
        elif isinstance(value, list) and self.items is not None:
            old_of = old_items(self.schema, old)
            for index, inner in enumerate(value):
                found += below(f"[{index}]", self.items.check(inner, old_of(inner), unchanged, budget))
        return found

    def _own(
        self, value: Any, old: Any, unchanged: Callable[[], bool], budget: cel.CostBudget
    ) -> list[SchemaViolation]:
        found: list[SchemaViolation] = []
        try:
            self._ask_all(value, old, unchanged, budget, found)
        except cel.CelBudgetError as error:
            budget.is_closed = True
            found.append(self._invalid(str(error)))
        return found

    def _ask_all(
        self,
        value: Any,
        old: Any,
        unchanged: Callable[[], bool],
        budget: cel.CostBudget,
        found: list[SchemaViolation],
    ) -> None:
        """Adds to what was `found`. Raises `CelBudgetError`."""
        has_old = old is not MISSING and old is not None
        asked = [rule for rule in self.rules if has_old or rule.optional_old or not rule.uses_old]
        try:
            plain, optional = self._variables(value, old, has_old=has_old)
        except cel.CelEvaluationError as error:  # a whole number that was written as 3.0
            found += [self._failure(rule, error) for rule in asked]
            return
        budget.charge(_CONVERSION * sum(map(nodes_of, plain.values())))
        for rule in asked:
            fault = self._ask(rule, optional if rule.optional_old else plain, value, budget)
            if fault is not None and (rule.uses_old or budget.is_closed or not unchanged()):
                found.append(fault)
            if budget.is_closed:
                return

    def _variables(self, value: Any, old: Any, *, has_old: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """What rules can name; once with `oldSelf` as it is, once as an optional."""
        assert self.convert is not None
        plain = {"self": self.convert(value)}
        if not has_old:
            return plain, plain | {"oldSelf": cel.NONE}
        before = self.convert(old)
        return plain | {"oldSelf": before}, plain | {"oldSelf": cel.some(before)}

    def _ask(
        self, rule: CompiledRule, variables: dict[str, Any], value: Any, budget: cel.CostBudget
    ) -> SchemaViolation | None:
        try:
            if budget.evaluate(rule.program, variables) is True:
                return None
        except cel.CelCostError as error:
            budget.is_closed = True
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            return self._invalid(f"'{error}': {why}: {_text(rule.given)}")
        except cel.CelEvaluationError as error:
            return self._failure(rule, error)
        try:
            message = _message(rule, variables, budget)
        except _MessageError as error:
            budget.is_closed = True
            fault = self._invalid(str(error))
        else:
            shown_value = value if self.schema.get("type") not in {"object", "array"} else MISSING
            fault = _broken(rule, shown_value, message)
        fault.path = rule.path
        return fault

    def _invalid(self, detail: str) -> SchemaViolation:
        return invalid(self.schema.get("type", ""), detail)

    def _failure(self, rule: CompiledRule, error: cel.CelEvaluationError) -> SchemaViolation:
        text = _text(rule.given)
        if str(error).startswith("no such overload"):
            detail = f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: {text}"
        else:
            detail = f"{error} evaluating rule: {text}"
        return self._invalid(detail)


class _MessageError(Exception):
    """A message costs too much."""


def _remembered(old: Any, value: Any) -> Callable[[], bool]:
    answers: list[bool] = []

    def unchanged() -> bool:
        if not answers:
            answers.append(same(old, value))
        return answers[0]

    return unchanged


def _broken(rule: CompiledRule, value: Any, detail: str) -> SchemaViolation:
    reason = rule.given.get("reason") or "FieldValueInvalid"
    heading = _HEADINGS[reason]
    if reason in {"FieldValueInvalid", "FieldValueDuplicate"} and value is not MISSING:
        heading += f": {shown(value)}"
    return SchemaViolation(reason, heading if reason == "FieldValueDuplicate" else f"{heading}: {detail}")


def _message(rule: CompiledRule, variables: dict[str, Any], budget: cel.CostBudget) -> str:
    """What is said of a rule that does not hold. Raises `_MessageError` if finding that out costs too much."""
    if rule.message is not None:
        try:
            text = str(budget.evaluate(rule.message, variables)).strip()
        except cel.CelBudgetError:
            why = "messageExpression evaluation failed due to running out of cost budget"
            raise _MessageError(f"{why}, no further validation rules will be run") from None
        except cel.CelCostError:
            why = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
            raise _MessageError(f"{why}: {shown(rule.message.expression)}") from None
        except cel.CelEvaluationError:
            text = ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    own: str | None = rule.given.get("message")
    return own.strip() if own else f"failed rule: {_text(rule.given)}"


def _text(given: JsonSchema) -> str:
    return str(given.get("message") or given["rule"]).strip()


def compile_rules(schema: JsonSchema, *, is_object: bool) -> RuleNode | None:
    """Returns the rules of a schema and everything below it; None if there are none."""
    node = RuleNode(schema)
    if schema.get("x-kubernetes-validations"):
        self_type = cel.type_of_schema(schema, resource=is_object)
        node.convert = cel.converter_of(schema, resource=is_object)
        node.rules = [compile_rule(given, schema, self_type) for given in schema["x-kubernetes-validations"]]
    for name, child in (schema.get("properties") or {}).items():
        compiled = compile_rules(child, is_object=False)
        if compiled is not None:
            node.fields[name] = compiled
    values, items = schema.get("additionalProperties"), schema.get("items")
    node.values = compile_rules(values, is_object=False) if isinstance(values, dict) else None
    node.items = compile_rules(items, is_object=False) if isinstance(items, dict) else None
    return node if node.rules or node.fields or node.values or node.items else None
