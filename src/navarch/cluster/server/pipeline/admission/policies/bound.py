"""Policies and their bindings: which of them a request meets, and with which parameters."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.kept import Kept, Made
from navarch.cluster.server.pipeline.admission.matching import Equivalents, FindNamespace, Matcher
from navarch.cluster.server.pipeline.admission.objects import Objects
from navarch.cluster.server.pipeline.admission.policies.params import param_type, params_of
from navarch.cluster.server.pipeline.admission.policies.policy import matcher_of
from navarch.cluster.server.pipeline.authorization.authorizer import Authorizer
from navarch.cluster.server.wire.request import Json

__all__ = ["Binding", "Judging", "bound", "params_for"]

_T = TypeVar("_T")


class Judging(msgspec.Struct, frozen=True):
    """What it takes to judge by policies."""

    objects: Objects
    equivalents: Equivalents
    find_namespace: FindNamespace
    authorizer: Authorizer

    async def namespace_of(self, attributes: Attributes) -> Json | None:
        """What `namespaceObject` is."""
        return await self.find_namespace(attributes.namespace) if attributes.namespace else None


class Binding(NamedTuple):
    """Where a policy holds; `actions` are those of a validating one."""

    name: str
    matcher: Matcher
    actions: tuple[str, ...]
    reference: Json | None


def bound(policies: Kept, bindings: Kept, made: Made[_T]) -> list[tuple[_T, list[Binding]]]:
    """The policies that are bound, by name."""
    by_policy: dict[str, list[Binding]] = {}
    for document in bindings.in_order():
        by_policy.setdefault(document["spec"]["policyName"], []).append(_binding(document))
    documents = [each for each in policies.in_order() if each["metadata"]["name"] in by_policy]
    names = [each["metadata"]["name"] for each in documents]
    return [(policy, by_policy[name]) for name, policy in zip(names, made.of(documents), strict=True)]


def _binding(document: Json) -> Binding:
    spec = document["spec"]
    return Binding(
        document["metadata"]["name"],
        matcher_of(spec.get("matchResources") or {}, is_required=False),
        tuple(spec.get("validationActions") or ()),
        spec.get("paramRef"),
    )


async def params_for(
    param_kind: Json | None, binding: Binding, attributes: Attributes, judging: Judging
) -> list[Json | None]:
    """What `params` is, one after the other. Raises `UnknownParamKindError` and `NoParamsError`."""
    if param_kind is None:
        return [None]
    resource = param_type(param_kind, judging.objects.catalog)
    return await params_of(binding.reference, resource, attributes, judging.objects)
