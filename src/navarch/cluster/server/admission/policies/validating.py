"""ValidatingAdmissionPolicies and their bindings as a part of admission."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import msgspec

from navarch.cluster.server.access.authorization import Authorizer
from navarch.cluster.server.admission.attributes import Attributes, Warnings
from navarch.cluster.server.admission.expressions import variables_of
from navarch.cluster.server.admission.kept import Compiled, Kept
from navarch.cluster.server.admission.matching import Equivalents, FindNamespace, Matcher, is_exempt, shown_as
from navarch.cluster.server.admission.objects import Objects
from navarch.cluster.server.admission.policies.params import (
    NoParamsError,
    UnknownParamKindError,
    param_type,
    params_of,
)
from navarch.cluster.server.admission.policies.policy import Fault, Policy, matcher_of
from navarch.cluster.server.refusal import Refusal, forbidden
from navarch.cluster.server.request import Json

__all__ = ["Judging", "ValidatingPolicies"]

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


class Judging(msgspec.Struct, frozen=True):
    """What it takes to judge by policies."""

    objects: Objects
    equivalents: Equivalents
    find_namespace: FindNamespace
    authorizer: Authorizer


class _Binding(NamedTuple):
    name: str
    matcher: Matcher
    actions: tuple[str, ...]
    reference: Json | None


class _Judgement(NamedTuple):
    """A fault, and what is to follow from it. `binding` is empty if the policy itself cannot be used."""

    policy: str
    binding: str
    fault: Fault
    actions: tuple[str, ...] = ("Deny",)


class ValidatingPolicies:
    """All policies that are bound; `policies` and `bindings` are kept."""

    def __init__(self, policies: Kept, bindings: Kept, judging: Judging) -> None:
        self._bound = Compiled(lambda: _bound(policies, bindings), policies, bindings)
        self._judging = judging

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """Refuses with the first fault, and warns of those that are only to be warned of."""
        bound = self._bound.current()
        if not bound or is_exempt(attributes) or _is_never_judged(attributes):
            return
        refusal: Refusal | None = None
        for policy, bindings in bound:
            async for judgement in self._judgements(policy, bindings, attributes):
                if "Deny" in judgement.actions:
                    refusal = refusal or _refused(attributes, judgement)
                if "Warn" in judgement.actions:
                    warnings.append(_warning(judgement))
        if refusal is not None:
            raise refusal

    async def _judgements(
        self, policy: Policy, bindings: list[_Binding], attributes: Attributes
    ) -> AsyncIterator[_Judgement]:
        judging = self._judging
        resource = await policy.matcher.match(attributes, judging.equivalents, judging.find_namespace)
        if resource is None:
            return
        variables = variables_of(attributes, await shown_as(attributes, resource), judging.authorizer)
        variables["namespaceObject"] = await self._namespace(attributes)
        for binding in bindings:
            if await binding.matcher.match(attributes, judging.equivalents, judging.find_namespace) is None:
                continue
            try:
                async for judgement in self._bound_judgements(policy, binding, attributes, variables):
                    yield judgement
            except UnknownParamKindError as error:
                if policy.fails:
                    yield _Judgement(policy.name, "", Fault(f"failed to configure policy: {error}"))
                return
            except NoParamsError as error:
                if policy.fails:
                    yield _Judgement(policy.name, binding.name, Fault(f"failed to configure binding: {error}"))

    async def _bound_judgements(
        self, policy: Policy, binding: _Binding, attributes: Attributes, variables: dict[str, object]
    ) -> AsyncIterator[_Judgement]:
        for param in await self._params(policy, binding, attributes):
            known = variables if policy.param_kind is None else {**variables, "params": param}
            for fault in policy.faults(known):
                yield _Judgement(policy.name, binding.name, fault, binding.actions)
            for fault in policy.annotation_faults(known):
                yield _Judgement(policy.name, binding.name, fault)

    async def _params(self, policy: Policy, binding: _Binding, attributes: Attributes) -> list[Json | None]:
        if policy.param_kind is None:
            return [None]
        resource = param_type(policy.param_kind, self._judging.objects.catalog)
        return await params_of(binding.reference, resource, attributes, self._judging.objects)

    async def _namespace(self, attributes: Attributes) -> Json | None:
        return await self._judging.find_namespace(attributes.namespace) if attributes.namespace else None


def _bound(policies: Kept, bindings: Kept) -> list[tuple[Policy, list[_Binding]]]:
    by_policy: dict[str, list[_Binding]] = {}
    for document in bindings.in_order():
        by_policy.setdefault(document["spec"]["policyName"], []).append(_binding(document))
    found = ((document, by_policy.get(document["metadata"]["name"])) for document in policies.in_order())
    return [(Policy(document), bound) for document, bound in found if bound]


def _binding(document: Json) -> _Binding:
    spec = document["spec"]
    return _Binding(
        document["metadata"]["name"],
        matcher_of(spec.get("matchResources") or {}, is_required=False),
        tuple(spec.get("validationActions") or ()),
        spec.get("paramRef"),
    )


def _is_never_judged(attributes: Attributes) -> bool:
    return (attributes.resource.group, attributes.resource.plural) in _NEVER_JUDGED


def _refused(attributes: Attributes, judgement: _Judgement) -> Refusal:
    bound = f" with binding '{judgement.binding}'" if judgement.binding else ""
    said = f"ValidatingAdmissionPolicy '{judgement.policy}'{bound} denied request: {judgement.fault.message}"
    refusal = forbidden(attributes.resource.group, attributes.resource.plural, attributes.name, said)
    refusal.reason = judgement.fault.reason
    refusal.code = _CODES.get(judgement.fault.reason, 422)
    refusal.details = {**(refusal.details or {}), "causes": [{"message": said}]}
    return refusal


def _warning(judgement: _Judgement) -> str:
    said = f"ValidatingAdmissionPolicy '{judgement.policy}' with binding '{judgement.binding}'"
    return f"Validation failed for {said}: {judgement.fault.message}"
