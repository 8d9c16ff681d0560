"""ValidatingAdmissionPolicies, and the bindings and parameters of both sorts of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from navarch.api.selectors import Labels
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.expressions import Conditions, Expression, judged
from navarch.cluster.server.pipeline.admission.listers import CompiledObjects, ObjectReader
from navarch.cluster.server.pipeline.admission.matching import Equivalents, FindNamespace, Matcher
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.wire.budget import cel_budget
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError
from navarch.schema import cel
from navarch.schema.cel.schema_types import policy_environment, with_variables

_LONGEST_MESSAGE: Final = 5 * 1024


class PolicyFailure(NamedTuple):
    """Why a policy does not let a request pass."""

    message: str
    reason: str = "Invalid"


class _Validation(NamedTuple):
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str

    def fault(self, variables: Mapping[str, object], budget: cel.CostBudget) -> PolicyFailure | None:
        """None if the request is as it should be. Raises `ValueError` if nobody knows, and `CelBudgetError`."""
        condition = judged(self.expression, variables, budget)
        if condition.error:
            raise ValueError(condition.error)
        return None if condition.holds else PolicyFailure(self._said(variables, budget), self.reason)

    def _said(self, variables: Mapping[str, object], budget: cel.CostBudget) -> str:
        """Returns the result of the message expression if it is one line, else the message or the expression."""
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


class ValidatingPolicy:
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

    def faults(self, variables: Mapping[str, object]) -> list[PolicyFailure]:
        """Everything that is wrong with a request that the policy is about."""
        verdict = self.conditions.verdict(variables)
        found = [PolicyFailure(verdict.error)] if verdict.error and self.fails else []
        if not verdict.holds:
            return found
        try:
            with cel_budget(cel.RUNTIME_COST_BUDGET) as budget:
                return found + self._validation_faults(variables, budget)
        except cel.CelBudgetError as error:
            return [*found, PolicyFailure(str(error))] if self.fails else found

    def _validation_faults(self, variables: Mapping[str, object], budget: cel.CostBudget) -> list[PolicyFailure]:
        """Raises `CelBudgetError`."""
        known = {**variables, "variables": Variables(self._variables, variables, budget)}
        found: list[PolicyFailure] = []
        for validation in self._validations:
            try:
                fault = validation.fault(known, budget)
            except ValueError as error:
                fault = PolicyFailure(str(error), validation.reason) if self.fails else None
            if fault is not None:
                found.append(fault)
        return found

    def annotation_faults(self, variables: Mapping[str, object]) -> list[PolicyFailure]:
        """Audit annotations that have no value: these refuse a request whatever the binding's actions are."""
        found: list[PolicyFailure] = []
        if not self.fails or not self._annotations:
            return found
        with cel_budget(cel.RUNTIME_COST_BUDGET) as budget:
            known = {**variables, "variables": Variables(self._variables, variables, budget)}
            for expression in self._annotations:
                try:
                    expression.evaluate(known, budget)
                except cel.CelEvaluationError as error:
                    found.append(PolicyFailure(f"valueExpression '{expression.text}' resulted in error: {error}"))
                except cel.CelBudgetError as error:
                    return [*found, PolicyFailure(str(error))]
        return found


def _validation(document: Json, environment: Mapping[str, cel.CelType]) -> _Validation:
    text = document.get("messageExpression")
    return _Validation(
        Expression(document["expression"], environment, cel.BOOL),
        (document.get("message") or "").strip(),
        Expression(text, environment, cel.STRING) if text else None,
        document.get("reason") or "Invalid",
    )


def matcher_of(document: Json, *, is_required: bool) -> Matcher:
    """Returns the matcher of a policy or binding. A binding without rules matches all requests of its policy."""
    rules = document.get("resourceRules")
    if not rules and not is_required:
        rules = None
    return Matcher(document, rules, document.get("excludeResourceRules") or ())


class UnknownParamKindError(Exception):
    """The policy names a kind that is not served."""


class NoParamsError(Exception):
    """The binding asks for parameters that cannot be had."""


def param_type(kind: Json, catalog: Catalog) -> ResourceType:
    """The resource of a `paramKind`. Raises `UnknownParamKindError`."""
    found = catalog.of_kind(kind["apiVersion"], kind["kind"])
    if found is None:
        said = f"'{kind['apiVersion']}, Kind={kind['kind']}'"
        raise UnknownParamKindError(f"failed to find resource referenced by paramKind: {said}")
    return found


async def params_of(
    reference: Json | None, resource: ResourceType, attributes: Attributes, objects: ObjectReader
) -> list[Json | None]:
    """Returns the values of `params`: null if the binding names none. Raises `NoParamsError`."""
    if not reference:
        return [None]
    namespace = _namespace(reference, resource, attributes)
    found: list[Json | None] = [*await _found(reference, resource, namespace, objects)]
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise NoParamsError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


def _namespace(reference: Json, resource: ResourceType, attributes: Attributes) -> str:
    given: str = reference.get("namespace") or ""
    if not resource.namespaced:
        if given:
            raise NoParamsError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not given and not attributes.namespace:
        raise NoParamsError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return given or attributes.namespace


async def _found(reference: Json, resource: ResourceType, namespace: str, objects: ObjectReader) -> list[Json]:
    if name := reference.get("name"):
        found = await objects.get(resource, namespace, name)
        return [] if found is None else [found]
    selector = _selector(reference.get("selector"))
    listed = await objects.list(resource, namespace)
    return [each for each in listed if selector.matches(each["metadata"].get("labels"))]


def _selector(wanted: Any) -> Labels:
    try:
        return Labels.from_wire(wanted)
    except InvalidValueError as error:
        raise NoParamsError(str(error)) from None


_T = TypeVar("_T")


class PolicyDeps(msgspec.Struct, frozen=True):
    """The parts of the server that policies need."""

    objects: ObjectReader
    equivalents: Equivalents
    find_namespace: FindNamespace
    authorizer: RbacAuthorizer

    async def namespace_of(self, attributes: Attributes) -> Json | None:
        """Returns the value of `namespaceObject`."""
        return await self.find_namespace(attributes.namespace) if attributes.namespace else None


class PolicyBinding(NamedTuple):
    """A binding of a policy; `actions` are those of a validating policy."""

    name: str
    matcher: Matcher
    actions: tuple[str, ...]
    reference: Json | None


def bound_policies(
    made: CompiledObjects[_T], policies: Sequence[Json], bindings: Sequence[Json]
) -> list[tuple[_T, list[PolicyBinding]]]:
    """The policies that are bound, by name."""
    by_policy: dict[str, list[PolicyBinding]] = {}
    for document in bindings:
        by_policy.setdefault(document["spec"]["policyName"], []).append(_binding(document))
    documents = [each for each in policies if each["metadata"]["name"] in by_policy]
    names = [each["metadata"]["name"] for each in documents]
    return [(policy, by_policy[name]) for name, policy in zip(names, made.of(documents), strict=True)]


def _binding(document: Json) -> PolicyBinding:
    spec = document["spec"]
    return PolicyBinding(
        document["metadata"]["name"],
        matcher_of(spec.get("matchResources") or {}, is_required=False),
        tuple(spec.get("validationActions") or ()),
        spec.get("paramRef"),
    )


async def params_for(
    param_kind: Json | None, binding: PolicyBinding, attributes: Attributes, judging: PolicyDeps
) -> list[Json | None]:
    """Returns the values of `params`. Raises `UnknownParamKindError` and `NoParamsError`."""
    if param_kind is None:
        return [None]
    resource = param_type(param_kind, judging.objects.catalog)
    return await params_of(binding.reference, resource, attributes, judging.objects)
