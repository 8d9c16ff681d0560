"""The parameters of a policy: objects that its expressions look at."""

from __future__ import annotations

from typing import Any

from navarch.api.selectors import Labels
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.objects import Objects
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError

__all__ = ["NoParamsError", "UnknownParamKindError", "param_type", "params_of"]


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
    reference: Json | None, resource: ResourceType, attributes: Attributes, objects: Objects
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


async def _found(reference: Json, resource: ResourceType, namespace: str, objects: Objects) -> list[Json]:
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
