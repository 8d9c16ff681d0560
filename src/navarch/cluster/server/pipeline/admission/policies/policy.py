"""One ValidatingAdmissionPolicy, compiled, and what it makes of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from navarch.cluster.server.pipeline.admission.expressions import Conditions, Expression, judged
from navarch.cluster.server.pipeline.admission.matching import Matcher
from navarch.cluster.server.wire.budget import cel_budget
from navarch.cluster.server.wire.request import Json
from navarch.schema import cel
from navarch.schema.cel.admission_types import policy_environment, with_variables

__all__ = ["Fault", "Policy", "Variables", "matcher_of"]

_LONGEST_MESSAGE: Final = 5 * 1024


class Fault(NamedTuple):
    """Why a policy does not let a request pass."""

    message: str
    reason: str = "Invalid"


class _Validation(NamedTuple):
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str

    def fault(self, variables: Mapping[str, object], budget: cel.CostBudget) -> Fault | None:
        """None if the request is as it should be. Raises `ValueError` if nobody knows, and `CelBudgetError`."""
        condition = judged(self.expression, variables, budget)
        if condition.error:
            raise ValueError(condition.error)
        return None if condition.holds else Fault(self._said(variables, budget), self.reason)

    def _said(self, variables: Mapping[str, object], budget: cel.CostBudget) -> str:
        """What its message expression makes, if that is one line of text; else its message, or itself."""
        made = self._made(variables, budget)
        return made or self.message or f"failed expression: {self.expression.text.strip()}"

    def _made(self, variables: Mapping[str, object], budget: cel.CostBudget) -> str:
        if self.message_expression is None:
            return ""
        try:
            made = self.message_expression.evaluate(variables, budget)
        except cel.CelBudgetError as error:
            return f"failed messageExpression: {error}"
        except cel.CelEvaluationError:
            return ""
        text = made.strip() if isinstance(made, str) else ""
        return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


class Variables(dict[str, object]):
    """The policy's own variables: each is worked out when it is first asked for, by those before it.

    What that costs is charged to the budget of the expression that asks.
    """

    def __init__(
        self, expressions: Mapping[str, Expression], variables: Mapping[str, object], budget: cel.CostBudget
    ) -> None:
        super().__init__()
        self._expressions = expressions
        self._budget = budget
        self._variables = {**variables, "variables": self}

    def __missing__(self, name: str) -> object:
        try:
            value = self[name] = self._expressions[name].evaluate(self._variables, self._budget)
        except cel.CelEvaluationError as error:
            raise cel.CelEvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
        return value


class Policy:
    """A policy. `fails`: whether a request is refused if the policy cannot be judged by."""

    def __init__(self, document: Json) -> None:
        spec = document["spec"]
        self.name: str = document["metadata"]["name"]
        self.matcher = matcher_of(spec.get("matchConstraints") or {}, is_required=True)
        self.fails = spec.get("failurePolicy") != "Ignore"
        self.param_kind: Json | None = spec.get("paramKind")
        environment = policy_environment(has_params=self.param_kind is not None)
        self.conditions = Conditions(spec.get("matchConditions") or (), environment)
        self._variables: dict[str, Expression] = {}
        environment = self._with_variables(spec, environment)
        self._validations = [_validation(each, environment) for each in spec.get("validations") or ()]
        self._annotations = [
            Expression(each["valueExpression"], environment) for each in spec.get("auditAnnotations") or ()
        ]

    def _with_variables(self, spec: Json, environment: dict[str, cel.CelType]) -> dict[str, cel.CelType]:
        """The environment of validations; each variable knows those before it."""
        known: dict[str, cel.CelType] = {}
        for each in spec.get("variables") or ():
            expression = Expression(each["expression"], with_variables(environment, known))
            self._variables[each["name"]] = expression
            known[each["name"]] = expression.result_type
        return with_variables(environment, known)

    def faults(self, variables: Mapping[str, object]) -> Iterator[Fault]:
        """Everything that is wrong with a request that the policy is about."""
        verdict = self.conditions.verdict(variables)
        if verdict.error and self.fails:
            yield Fault(verdict.error)
        if not verdict.holds:
            return
        try:
            with cel_budget(cel.RUNTIME_COST_BUDGET) as budget:
                found = self._validation_faults(variables, budget)
        except cel.CelBudgetError as error:
            found = [Fault(str(error))] if self.fails else []
        yield from found

    def _validation_faults(self, variables: Mapping[str, object], budget: cel.CostBudget) -> list[Fault]:
        """Raises `CelBudgetError`."""
        known = {**variables, "variables": Variables(self._variables, variables, budget)}
        found: list[Fault] = []
        for validation in self._validations:
            try:
                fault = validation.fault(known, budget)
            except ValueError as error:
                fault = Fault(str(error), validation.reason) if self.fails else None
            if fault is not None:
                found.append(fault)
        return found

    def annotation_faults(self, variables: Mapping[str, object]) -> Iterator[Fault]:
        """Audit annotations that have no value: these refuse a request whatever the binding's actions are."""
        if not self.fails or not self._annotations:
            return
        with cel_budget(cel.RUNTIME_COST_BUDGET) as budget:
            known = {**variables, "variables": Variables(self._variables, variables, budget)}
            for expression in self._annotations:
                try:
                    expression.evaluate(known, budget)
                except cel.CelEvaluationError as error:
                    yield Fault(f"valueExpression '{expression.text}' resulted in error: {error}")
                except cel.CelBudgetError as error:
                    yield Fault(str(error))
                    return


def _validation(document: Json, environment: Mapping[str, cel.CelType]) -> _Validation:
    text = document.get("messageExpression")
    return _Validation(
        Expression(document["expression"], environment, cel.BOOL),
        (document.get("message") or "").strip(),
        Expression(text, environment, cel.STRING) if text else None,
        document.get("reason") or "Invalid",
    )


def matcher_of(document: Json, *, is_required: bool) -> Matcher:
    """Which requests a policy, or one of its bindings, is about. A binding without rules takes all of its policy's."""
    rules = document.get("resourceRules")
    if not rules and not is_required:
        rules = None
    return Matcher(document, rules, document.get("excludeResourceRules") or ())
