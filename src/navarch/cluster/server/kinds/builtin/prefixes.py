"""Where Kubernetes keeps the objects of a built-in kind in etcd."""

from __future__ import annotations

from typing import Final

__all__ = ["storage_prefix"]

_EXCEPTIONS: Final = {
    ("", "endpoints"): "services/endpoints",
    ("", "nodes"): "minions",
    ("", "replicationcontrollers"): "controllers",
    ("", "services"): "services/specs",
    ("networking.k8s.io", "ingresses"): "ingress",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/customresourcedefinitions",
    ("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
}


def storage_prefix(group: str, plural: str) -> str:
    """The prefix of all its keys; the same for every version, and for events in both of their groups.

    >>> storage_prefix("", "pods"), storage_prefix("", "services")
    ('/registry/pods/', '/registry/services/specs/')
    """
    return f"/registry/{_EXCEPTIONS.get((group, plural), plural)}/"
