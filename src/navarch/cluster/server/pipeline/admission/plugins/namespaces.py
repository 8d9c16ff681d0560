"""NamespaceLifecycle: refuses writes to namespaces that do not exist or terminate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, forbidden, not_found

FindNamespace = Callable[[str], Awaitable[Json | None]]
"""The namespace of that name; None if there is none."""
_WRITES: Final = frozenset({"CREATE", "UPDATE"})
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    """Refuses what needs a namespace that is not there, and the deletion of those that Kubernetes cannot do without."""

    def __init__(self, find: FindNamespace) -> None:
        self._find = find

    async def check(self, attributes: Attributes) -> None:
        """Raises StatusError. The chain calls it before anything else, so that its refusal is the one that a client sees."""
        if _is_namespace(attributes):
            _refuse_end_of_immortal(attributes)
        elif attributes.namespace and attributes.operation in _WRITES and not _is_review(attributes):
            await self._refuse_misplaced(attributes)

    async def _refuse_misplaced(self, attributes: Attributes) -> None:
        namespace = await self._find(attributes.namespace)
        if namespace is None:
            raise not_found("", "namespaces", attributes.namespace)
        if attributes.operation == "CREATE" and (namespace.get("status") or {}).get("phase") == "Terminating":
            raise _terminating(attributes)


def _is_namespace(attributes: Attributes) -> bool:
    return attributes.resource.plural == "namespaces" and not attributes.resource.group


def _is_review(attributes: Attributes) -> bool:
    resource = attributes.resource
    return resource.plural == "localsubjectaccessreviews" and resource.group == "authorization.k8s.io"


def _refuse_end_of_immortal(attributes: Attributes) -> None:
    if attributes.operation == "DELETE" and attributes.name in _IMMORTAL:
        raise forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")


def _terminating(attributes: Attributes) -> StatusError:
    resource, namespace = attributes.resource, attributes.namespace
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refusal = forbidden(resource.group, resource.plural, _said_name(attributes), why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refusal.details = {**(refusal.details or {}), "causes": [cause]}
    return refusal


def _said_name(attributes: Attributes) -> str:
    """A name that the server was to make up has not been made up yet."""
    metadata = (attributes.value or {}).get("metadata") or {}
    return str(metadata.get("generateName") or attributes.name)
