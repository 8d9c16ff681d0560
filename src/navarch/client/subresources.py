"""Subresources: scale, eviction, and any other by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from navarch.api import Kind, Object, encode
from navarch.client.bodies import MergePatch, Preconditions, delete_options
from navarch.client.rest_client import RestClient, query_of
from navarch.client.target import Readable, kind_of, reader_of
from navarch.client.transport import Request

if TYPE_CHECKING:
    from navarch.k8s.autoscaling.v1 import Scale


T = TypeVar("T")
W = TypeVar("W", bound=Object)

PODS = Kind("", "v1", "Pod", plural="pods")


class Subresources(RestClient):
    """Reads and writes the subresources of objects."""

    async def get_subresource(
        self,
        what: Readable[Any],
        name: str,
        subresource: str,
        answer: Readable[T],
        *,
        namespace: str | None = None,
    ) -> T:
        """Reads a subresource, for example `get_subresource(Deployment, "web", "scale", Scale)`."""
        kind = kind_of(what)
        request = self._request("GET", kind, name, subresource, namespace)
        return await self._object(answer, request, self._what(f"get {subresource} of", kind, namespace, name))

    async def create_subresource(
        self,
        what: Readable[Any],
        name: str,
        subresource: str,
        body: W,
        *,
        namespace: str | None = None,
    ) -> W:
        """Posts `body` to a subresource and returns the answer as an object of the same class.

        For example `create_subresource(ServiceAccount, "default", "token", TokenRequest(...))`.
        """
        kind = kind_of(what)
        request = self._request("POST", kind, name, subresource, namespace, body=encode(body))
        return await self._object(
            reader_of(body, kind), request, self._what(f"create {subresource} of", kind, namespace, name)
        )

    async def get_scale(self, what: Readable[Any], name: str, *, namespace: str | None = None) -> Scale:
        """Returns the wanted and the observed number of replicas."""
        return await self.get_subresource(what, name, "scale", _scale(), namespace=namespace)

    async def scale(
        self,
        what: Readable[Any],
        name: str,
        replicas: int,
        *,
        namespace: str | None = None,
    ) -> Scale:
        """Sets the number of replicas."""
        kind, patch = kind_of(what), MergePatch({"spec": {"replicas": replicas}})
        request = self._request("PATCH", kind, name, "scale", namespace, body=patch.body(), media_type=patch.media_type)
        return await self._object(_scale(), request, self._what("scale", kind, namespace, name))

    async def evict(
        self,
        name: str,
        *,
        namespace: str | None = None,
        grace_seconds: int | None = None,
        preconditions: Preconditions | None = None,
    ) -> None:
        """Evicts a pod within its disruption budget. Raises `TooManyRequests` if the budget forbids it now."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace or self.options.namespace},
            "deleteOptions": delete_options(None, grace_seconds, preconditions, dry_run=self.options.dry_run),
        }
        request = self._request("POST", PODS, name, "eviction", namespace, body=encode(body))
        # A 429 here is the answer, not a busy server: when to ask again is the caller's to decide.
        answer = await self._caller.call(request, self._what("evict", PODS, namespace, name), once=True)
        answer.type()

    async def bind(self, name: str, node: str, *, namespace: str | None = None, uid: str | None = None) -> None:
        """Assigns a pod to that node. Raises `Conflict` if it has a node, or another uid."""
        metadata = {"name": name, "namespace": namespace or self.options.namespace, **({"uid": uid} if uid else {})}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        request = self._request("POST", PODS, name, "binding", namespace, body=encode(body))
        answer = await self._caller.call(request, self._what(f"bind to {node}", PODS, namespace, name))
        answer.type()

    def _request(
        self,
        method: str,
        kind: Kind,
        name: str,
        subresource: str,
        namespace: str | None,
        *,
        body: bytes | None = None,
        media_type: str = "application/json",
    ) -> Request:
        written = body is not None
        return Request(
            method=method,
            path=self._object_path(kind, namespace, name, subresource),
            query=self._written_by() if written else {},
            headers={"Content-Type": media_type} if written else {},
            body=body,
            timeout=self.options.timeout,
        )

    def _written_by(self) -> Mapping[str, str]:
        dry_run = "All" if self.options.dry_run else None
        return query_of(
            fieldManager=self.options.manager, fieldValidation=self.options.field_validation, dryRun=dry_run
        )


def _scale() -> type[Scale]:
    from navarch.k8s.autoscaling.v1 import Scale  # noqa: PLC0415 - only those who scale pay for the import

    return Scale
