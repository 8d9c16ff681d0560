"""Bindings of admission policies and their parameters."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import msgspec

from navarch.api.selectors import Labels
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.objects.views import ObjectReader
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.listers import CompiledObjects, ObjectLister
from navarch.cluster.server.pipeline.admission.matching import Equivalents, FindNamespace, Matcher
from navarch.cluster.server.pipeline.admission.policies.policy import matcher_of
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError


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
    """What `params` is, one after the other: null if the binding names none. Raises `NoParamsError`."""
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
    """What it takes to judge by policies."""

    objects: ObjectReader
    equivalents: Equivalents
    find_namespace: FindNamespace
    authorizer: RbacAuthorizer

    async def namespace_of(self, attributes: Attributes) -> Json | None:
        """What `namespaceObject` is."""
        return await self.find_namespace(attributes.namespace) if attributes.namespace else None


class PolicyBinding(NamedTuple):
    """Where a policy holds; `actions` are those of a validating one."""

    name: str
    matcher: Matcher
    actions: tuple[str, ...]
    reference: Json | None


def bound_policies(
    policies: ObjectLister, bindings: ObjectLister, made: CompiledObjects[_T]
) -> list[tuple[_T, list[PolicyBinding]]]:
    """The policies that are bound, by name."""
    by_policy: dict[str, list[PolicyBinding]] = {}
    for document in bindings.in_order():
        by_policy.setdefault(document["spec"]["policyName"], []).append(_binding(document))
    documents = [each for each in policies.in_order() if each["metadata"]["name"] in by_policy]
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
    """What `params` is, one after the other. Raises `UnknownParamKindError` and `NoParamsError`."""
    if param_kind is None:
        return [None]
    resource = param_type(param_kind, judging.objects.catalog)
    return await params_of(binding.reference, resource, attributes, judging.objects)
