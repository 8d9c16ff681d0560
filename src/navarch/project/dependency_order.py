"""The order in which objects depend on each other: an object comes after those that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["rank", "rank_of"]

_BEFORE: Final = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "RuntimeClass",
    "IngressClass",
    "ServiceAccount",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ResourceQuota",
    "LimitRange",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Service",
    "Issuer",
    "Certificate",
)
_AFTER: Final = (
    "NetworkPolicy",
    "ServiceMonitor",
    "PrometheusRule",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
"""Webhooks come last: they refuse requests until their server runs."""
_RANKS: Final = {kind: place for place, kind in enumerate((*_BEFORE, "", *_AFTER))}


def rank(kind: str) -> int:
    """Returns the position of a kind. All kinds that are not listed, such as Deployment, have the same one."""
    return _RANKS.get(kind, len(_BEFORE))


def rank_of(found: Mapping[str, Any]) -> int:
    """Returns the position of an object, for sorting: objects of equal rank keep their order."""
    return rank(found["kind"])
