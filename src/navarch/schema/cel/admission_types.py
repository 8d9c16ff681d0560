"""What expressions about requests can speak of, as types: the request itself, and the namespace it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from navarch.schema.cel.types import (
    AUTHORIZER,
    BOOL,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
    object_of,
)

__all__ = ["NAMESPACE", "REQUEST_VARIABLES", "policy_environment", "with_variables"]

_TEXTS: Final = ("name", "namespace", "operation", "subResource", "requestSubResource")
_KIND: Final = object_of("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), STRING))
_RESOURCE: Final = object_of("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), STRING))
_USER: Final = object_of(
    "kubernetes.UserInfo",
    {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
)
_REQUEST: Final = object_of(
    "kubernetes.AdmissionRequest",
    {
        **dict.fromkeys(_TEXTS, STRING),
        "kind": _KIND,
        "requestKind": _KIND,
        "resource": _RESOURCE,
        "requestResource": _RESOURCE,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)

REQUEST_VARIABLES: Final[Mapping[str, CelType]] = {
    "object": DYN,
    "oldObject": DYN,
    "request": _REQUEST,
    "authorizer": AUTHORIZER,
}

_CONDITION: Final = object_of(
    "kubernetes.NamespaceCondition",
    {**dict.fromkeys(("status", "type", "message", "reason"), STRING), "lastTransitionTime": TIMESTAMP},
)
_METADATA: Final = object_of(
    "kubernetes.NamespaceMetadata",
    {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        **dict.fromkeys(("labels", "annotations"), map_of(STRING, STRING)),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
        "finalizers": list_of(STRING),
    },
)
NAMESPACE: Final = object_of(
    "kubernetes.Namespace",
    {
        "metadata": _METADATA,
        "spec": object_of("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)}),
        "status": object_of("kubernetes.NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}),
    },
)
"""What expressions know of a namespace."""


def policy_environment(*, has_params: bool) -> dict[str, CelType]:
    """Returns the types of the variables that every expression of a policy has."""
    environment = {**REQUEST_VARIABLES, "namespaceObject": DYN}
    return {**environment, "params": DYN} if has_params else environment


def with_variables(environment: dict[str, CelType], known: Mapping[str, CelType]) -> dict[str, CelType]:
    """Returns the environment with `variables`, whose members are the policy's own."""
    return {**environment, "variables": object_of("kubernetes.variables", dict(known))}
