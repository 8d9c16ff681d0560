"""ValidatingAdmissionPolicies and their bindings as a part of admission."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Final, NamedTuple

from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.expressions import variables_of
from navarch.cluster.server.pipeline.admission.listers import CompiledObjects, LatestCompiled, ObjectLister
from navarch.cluster.server.pipeline.admission.matching import is_exempt, shown_as
from navarch.cluster.server.pipeline.admission.policies.policy import (
    NoParamsError,
    PolicyBinding,
    PolicyDeps,
    PolicyFailure,
    UnknownParamKindError,
    ValidatingPolicy,
    bound_policies,
    params_for,
)
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.status_errors import StatusError, forbidden

_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}
_NEVER_JUDGED: Final = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)


class _PolicyVerdict(NamedTuple):
    """A fault, and what is to follow from it. `binding` is empty if the policy itself cannot be used."""

    policy: str
    binding: str
    fault: PolicyFailure
    actions: tuple[str, ...] = ("Deny",)


class ValidatingPolicies:
    """All policies that are bound; `policies` and `bindings` are kept."""

    def __init__(self, policies: ObjectLister, bindings: ObjectLister, judging: PolicyDeps) -> None:
        self._bound = LatestCompiled(partial(bound_policies, CompiledObjects(ValidatingPolicy)), policies, bindings)
        self._judging = judging

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """Refuses with the first fault, and warns of those that are only to be warned of."""
        policies = await self._bound.current()
        if not policies or is_exempt(attributes) or is_never_judged(attributes):
            return
        refusal: StatusError | None = None
        for policy, bindings in policies:
            async for judgement in self._judgements(policy, bindings, attributes):
                if "Deny" in judgement.actions:
                    refusal = refusal or _refused(attributes, judgement)
                if "Warn" in judgement.actions:
                    warnings.append(_warning(judgement))
        if refusal is not None:
            raise refusal

    async def _judgements(
        self, policy: ValidatingPolicy, bindings: list[PolicyBinding], attributes: Attributes
    ) -> AsyncIterator[_PolicyVerdict]:
        judging = self._judging
        resource = await policy.matcher.match(attributes, judging.equivalents, judging.find_namespace)
        if resource is None:
            return
        variables = variables_of(attributes, await shown_as(attributes, resource), judging.authorizer)
        variables["namespaceObject"] = await judging.namespace_of(attributes)
        for binding in bindings:
            if await binding.matcher.match(attributes, judging.equivalents, judging.find_namespace) is None:
                continue
            try:
                async for judgement in self._bound_judgements(policy, binding, attributes, variables):
                    yield judgement
            except UnknownParamKindError as error:
                if policy.fails:
                    yield _PolicyVerdict(policy.name, "", PolicyFailure(f"failed to configure policy: {error}"))
                return
            except NoParamsError as error:
                if policy.fails:
                    yield _PolicyVerdict(
                        policy.name, binding.name, PolicyFailure(f"failed to configure binding: {error}")
                    )

    async def _bound_judgements(
        self, policy: ValidatingPolicy, binding: PolicyBinding, attributes: Attributes, variables: dict[str, object]
    ) -> AsyncIterator[_PolicyVerdict]:
        for param in await params_for(policy.param_kind, binding, attributes, self._judging):
            known = variables if policy.param_kind is None else {**variables, "params": param}
            for fault in await current_budget().run(partial(policy.faults, known)):
                yield _PolicyVerdict(policy.name, binding.name, fault, binding.actions)
            for fault in await current_budget().run(partial(policy.annotation_faults, known)):
                yield _PolicyVerdict(policy.name, binding.name, fault)


def is_never_judged(attributes: Attributes) -> bool:
    """Tells whether policies skip the resource, because a CEL authorizer check would recurse."""
    return (attributes.resource.group, attributes.resource.plural) in _NEVER_JUDGED


def _refused(attributes: Attributes, judgement: _PolicyVerdict) -> StatusError:
    bound = f" with binding '{judgement.binding}'" if judgement.binding else ""
    said = f"ValidatingAdmissionPolicy '{judgement.policy}'{bound} denied request: {judgement.fault.message}"
    refusal = forbidden(attributes.resource.group, attributes.resource.plural, attributes.told_name, said)
    refusal.reason = judgement.fault.reason
    refusal.code = _CODES.get(judgement.fault.reason, 422)
    refusal.details = {**(refusal.details or {}), "causes": [{"message": said}]}
    return refusal


def _warning(judgement: _PolicyVerdict) -> str:
    said = f"ValidatingAdmissionPolicy '{judgement.policy}' with binding '{judgement.binding}'"
    return f"Validation failed for {said}: {judgement.fault.message}"
