"""MutatingAdmissionPolicies and their bindings as a part of admission."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from msgspec.structs import replace

from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.expressions import variables_of
from navarch.cluster.server.pipeline.admission.kept import Compiled, Kept, Made
from navarch.cluster.server.pipeline.admission.matching import converted, is_exempt, shown_as
from navarch.cluster.server.pipeline.admission.policies.bound import Binding, Judging, bound, params_for
from navarch.cluster.server.pipeline.admission.policies.mutation import MutatingPolicy, MutationError
from navarch.cluster.server.pipeline.admission.policies.params import NoParamsError, UnknownParamKindError
from navarch.cluster.server.pipeline.admission.policies.validating import is_never_judged
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, forbidden

__all__ = ["MutatingPolicies"]

_CONFIGURATION: Final = "failed to configure"


class MutatingPolicies:
    """All policies that are bound; `policies` and `bindings` are kept."""

    def __init__(self, policies: Kept, bindings: Kept, judging: Judging) -> None:
        made = Made(MutatingPolicy)
        self._bound = Compiled(lambda: bound(policies, bindings, made), policies, bindings)
        self._judging = judging

    async def mutate(self, attributes: Attributes, *, is_again: bool) -> Attributes:
        """The request with the object as the policies want it: the very same if they change nothing.

        If it `is_again`, only those that ask for it look at it. Raises `StatusError` for what a policy could not do.
        """
        policies = self._bound.current()
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
        self, policy: MutatingPolicy, bindings: list[Binding], attributes: Attributes, faults: list[tuple[str, str]]
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
        self, policy: MutatingPolicy, bindings: list[Binding], attributes: Attributes, faults: list[tuple[str, str]]
    ) -> AsyncIterator[tuple[Binding, Json | None]]:
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
        verdict = policy.conditions.verdict(variables)
        if verdict.error:
            raise MutationError(verdict.error)
        if not verdict.holds or shown.value is None:
            return attributes
        value = policy.mutated(shown.value, resource, variables)
        if value == shown.value:
            return attributes
        _fit(value, resource)
        return replace(attributes, value=await converted(value, resource, attributes.resource))


def _fit(value: Json, resource: ResourceType) -> None:
    """What a policy made is taken as what a client sends: its types must fit, and it gets its defaults."""
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
