"""MutatingAdmissionPolicies: their mutations, and the plug-in that applies them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from navarch.api import apply_json_patch
from navarch.api.json_patch import copy_json
from navarch.cluster.server.objects.fields import shape_of
from navarch.cluster.server.objects.fields.merging import merged
from navarch.cluster.server.objects.fields.shapes import FieldShape
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.expressions import Conditions, Expression, variables_of
from navarch.cluster.server.pipeline.admission.listers import CompiledObjects, LatestCompiled, ObjectLister
from navarch.cluster.server.pipeline.admission.matching import converted, is_exempt, shown_as
from navarch.cluster.server.pipeline.admission.policies.policy import (
    NoParamsError,
    PolicyBinding,
    PolicyDeps,
    UnknownParamKindError,
    Variables,
    bound_policies,
    matcher_of,
    params_for,
)
from navarch.cluster.server.pipeline.admission.policies.validating import is_never_judged
from navarch.cluster.server.wire.budget import cel_budget, current_budget
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, forbidden
from navarch.errors import PatchError
from navarch.schema import cel
from navarch.schema.cel.containers import nodes_of
from navarch.schema.cel.schema_types import policy_environment, with_variables
from navarch.schema.cel.types import list_of, opaque

_OBJECT: Final = opaque("Object")
_PATCHES: Final = list_of(opaque("JSONPatch"))


class MutationError(Exception):
    """A policy could not do what it says; the text is what Kubernetes says of it."""


class MutatingPolicy:
    """A policy. `fails`: whether a request is refused if the policy cannot be carried out; `is_asked_again`: whether it
    looks once more at an object that others have changed after it.
    """

    def __init__(self, document: Json) -> None:
        spec = document["spec"]
        self.name: str = document["metadata"]["name"]
        self.matcher = matcher_of(spec.get("matchConstraints") or {}, is_required=True)
        self.fails = spec.get("failurePolicy") != "Ignore"
        self.is_asked_again = spec.get("reinvocationPolicy") == "IfNeeded"
        self.param_kind: Json | None = spec.get("paramKind")
        environment = policy_environment(has_params=self.param_kind is not None)
        self.conditions = Conditions(spec.get("matchConditions") or (), environment)
        self._variables: dict[str, Expression] = {}
        known: dict[str, cel.CelType] = {}
        for each in spec.get("variables") or ():
            expression = Expression(each["expression"], with_variables(environment, known), builds=True)
            self._variables[each["name"]] = expression
            known[each["name"]] = expression.result_type
        self._mutations = [_mutation(each, with_variables(environment, known)) for each in spec.get("mutations") or ()]

    def mutated(self, value: Json, resource: ResourceType, variables: Mapping[str, object]) -> Json:
        """The object after all mutations: each sees what those before it made. Raises `MutationError`."""
        for mutation in self._mutations:
            with cel_budget(cel.RUNTIME_COST_BUDGET) as budget:
                known = {**variables, "object": value}
                known["variables"] = Variables(self._variables, known, budget)
                value = mutation.mutated(value, resource, known, budget)
        return value


class _Application:
    """Merges an object that the expression builds, as server-side apply would; nobody owns its fields."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def mutated(
        self, value: Json, resource: ResourceType, variables: Mapping[str, object], budget: cel.CostBudget
    ) -> Json:
        built = _evaluated(self._expression, variables, budget)
        assert isinstance(built, cel.Built)
        _refuse_misnamed(built)
        patch = {**_plain(built), "apiVersion": value["apiVersion"], "kind": value["kind"]}
        shape = shape_of(resource).root
        if atomics := [*_atomics(patch, shape, "")]:
            said = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
            raise MutationError(f"error applying patch: invalid ApplyConfiguration: {said}")
        result: Json = merged(value, patch, shape)
        return result


class _Operations:
    """Carries out the JSON patch that the expression builds; one whose test fails changes nothing."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def mutated(self, value: Json, _: ResourceType, variables: Mapping[str, object], budget: cel.CostBudget) -> Json:
        built = _evaluated(self._expression, variables, budget)
        assert isinstance(built, list)
        operations = [_operation(each) for each in built]
        try:
            request = current_budget()
            result = apply_json_patch(operations, copy_json(value), charge_copy=request.charge_copy)
            request.charge_value(result)
        except RecursionError:
            raise MutationError("JSON Patch: exceeded max depth") from None
        except PatchError as error:
            if "test" in {each.get("op") for each in operations} and "test" in str(error):
                return value
            raise MutationError(f"JSON Patch: {error}") from None
        if not isinstance(result, dict):
            raise MutationError("JSON Patch: the patch leaves no object")
        return result


def _mutation(document: Json, environment: Mapping[str, cel.CelType]) -> _Application | _Operations:
    if document.get("patchType") == "JSONPatch":
        text = (document.get("jsonPatch") or {}).get("expression") or ""
        return _Operations(Expression(text, environment, _PATCHES, builds=True))
    text = (document.get("applyConfiguration") or {}).get("expression") or ""
    return _Application(Expression(text, environment, _OBJECT, builds=True))


def _evaluated(expression: Expression, variables: Mapping[str, object], budget: cel.CostBudget) -> object:
    """Returns the value that the expression builds; each repeated value is charged, since it is copied."""
    try:
        built = expression.evaluate(variables, budget)
        budget.charge(nodes_of(built))
    except cel.CelEvaluationError as error:
        raise MutationError(expression.error_text(error)) from None
    except cel.CelBudgetError as error:
        raise MutationError(str(error)) from None
    return built


def _operation(built: object) -> Json:
    assert isinstance(built, cel.Built)
    for value in built.values():
        if isinstance(value, cel.Built):
            _refuse_misnamed(value)
    return {name: _plain(value) for name, value in built.items() if name == "value" or value != ""}


def _plain(value: Any) -> Any:
    """Returns the built value as JSON."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _refuse_misnamed(built: cel.Built) -> None:
    """An object must be of the type that its place has: `Object.spec.template` where the field `template` is."""
    if faults := [*_misnamed(built, built.type_name)]:
        raise MutationError(f"type mismatch: {'; '.join(faults)}")


def _misnamed(value: object, expected: str) -> Iterator[str]:
    if isinstance(value, cel.Built):
        if value.type_name != expected:
            why = "which matches field name path from root Object type"
            yield f'unexpected type name "{value.type_name}", expected "{expected}", {why}'
        for name, each in value.items():
            yield from _misnamed(each, f"{expected}.{name}")
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _misnamed(each, expected)


def _atomics(value: Any, shape: FieldShape, path: str) -> Iterator[str]:
    """Finds atomic lists and maps, which an apply would replace as a whole."""
    if isinstance(value, dict):
        if not shape.by_member:
            yield path
            return
        for name, each in value.items():
            yield from _atomics(each, shape.member(name)[1], f"{path}.{name}")
    elif isinstance(value, list):
        if not shape.by_item or shape.items is None:
            yield path
            return
        for place, each in enumerate(value):
            yield from _atomics(each, shape.items, f"{path}[{place}]")


_CONFIGURATION: Final = "failed to configure"


class MutatingPolicies:
    """Applies all bound MutatingAdmissionPolicies."""

    def __init__(self, policies: ObjectLister, bindings: ObjectLister, judging: PolicyDeps) -> None:
        self._bound = LatestCompiled(partial(bound_policies, CompiledObjects(MutatingPolicy)), policies, bindings)
        self._judging = judging

    async def mutate(self, attributes: Attributes, *, is_again: bool) -> Attributes:
        """The request with the object as the policies want it: the very same if they change nothing.

        If it `is_again`, only those that ask for it look at it. Raises `StatusError` for what a policy could not do.
        """
        policies = await self._bound.current()
        if not policies or attributes.value is None or is_exempt(attributes) or is_never_judged(attributes):
            return attributes
        faults: list[tuple[str, str]] = []
        for policy, bindings in policies:
            if is_again and not policy.is_asked_again:
                continue
            found: list[tuple[str, str]] = []
            attributes = await self._after(policy, bindings, attributes, found)
            faults += found if policy.fails else []
        if faults:
            raise _refused(attributes, faults)
        return attributes

    async def _after(
        self,
        policy: MutatingPolicy,
        bindings: list[PolicyBinding],
        attributes: Attributes,
        faults: list[tuple[str, str]],
    ) -> Attributes:
        judging = self._judging
        resource = await policy.matcher.match(attributes, judging.equivalents, judging.find_namespace)
        if resource is None:
            return attributes
        async for binding, param in self._met(policy, bindings, attributes, faults):
            try:
                attributes = await self._mutated(policy, resource, attributes, param)
            except MutationError as error:
                faults.append((_reason(policy, binding.name, str(error)), "Invalid"))
        return attributes

    async def _met(
        self,
        policy: MutatingPolicy,
        bindings: list[PolicyBinding],
        attributes: Attributes,
        faults: list[tuple[str, str]],
    ) -> AsyncIterator[tuple[PolicyBinding, Json | None]]:
        """Each binding that is about the request, with each of its parameters."""
        judging = self._judging
        for binding in bindings:
            if await binding.matcher.match(attributes, judging.equivalents, judging.find_namespace) is None:
                continue
            try:
                params = await params_for(policy.param_kind, binding, attributes, judging)
            except UnknownParamKindError as error:
                faults.append((_reason(policy, "", f"{_CONFIGURATION} policy: {error}"), ""))
                return
            except NoParamsError as error:
                faults.append((_reason(policy, binding.name, f"{_CONFIGURATION} binding: {error}"), ""))
                continue
            for param in params:
                yield binding, param

    async def _mutated(
        self, policy: MutatingPolicy, resource: ResourceType, attributes: Attributes, param: Json | None
    ) -> Attributes:
        shown = await shown_as(attributes, resource)
        variables = variables_of(attributes, shown, self._judging.authorizer)
        variables["namespaceObject"] = await self._judging.namespace_of(attributes)
        if policy.param_kind is not None:
            variables["params"] = param
        verdict = await current_budget().run(partial(policy.conditions.verdict, variables))
        if verdict.error:
            raise MutationError(verdict.error)
        if not verdict.holds or shown.value is None:
            return attributes
        value = await current_budget().run(partial(policy.mutated, shown.value, resource, variables))
        if value == shown.value:
            return attributes
        _fit(value, resource)
        return replace(attributes, value=await converted(value, resource, attributes.resource))


def _fit(value: Json, resource: ResourceType) -> None:
    """Checks and defaults the object of a policy like one from a client."""
    faults = resource.schema.faults(value)
    if faults:
        raise MutationError(f"error applying patch: {faults[0].message}")
    resource.schema.unknown_fields(value)
    resource.strategy.default(value)


def _reason(policy: MutatingPolicy, binding: str, why: str) -> str:
    if binding:
        return f"policy '{policy.name}' with binding '{binding}' denied request: {why}"
    return f'policy "{policy.name}" denied request: {why}'


def _refused(attributes: Attributes, faults: list[tuple[str, str]]) -> StatusError:
    """403 with all of them; the first is the message, and gives the reason if it has one."""
    refusal = forbidden(attributes.resource.group, attributes.resource.plural, attributes.told_name, "")
    refusal.message, reason = faults[0]
    refusal.reason = reason or refusal.reason
    refusal.details = {**(refusal.details or {}), "causes": [{"message": message} for message, _ in faults]}
    return refusal
