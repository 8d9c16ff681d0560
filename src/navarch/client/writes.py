"""Verbs that write: create, replace, patch, apply, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from navarch.api import Dynamic, Kind, Object, encode
from navarch.client.bodies import (
    Patch,
    Preconditions,
    Propagation,
    applied_body,
    delete_options,
    explain_refusal,
    explain_types,
    object_body,
    required_name,
    required_patch,
)
from navarch.client.call import TypeOf
from navarch.client.core import Core, FieldSelector, LabelSelector, query_of, selectors_of
from navarch.client.target import ALL, Readable, accept, kind_of, reader_of, required_object
from navarch.client.transport import Request
from navarch.errors import ApiError, InvalidValueError

__all__ = ["Writes"]

T = TypeVar("T")
W = TypeVar("W", bound=Object | Dynamic)


class Writes(Core):
    """create, replace, patch, apply and delete. Each returns the object as the server has it afterwards."""

    async def create(self, new: W, *, namespace: str | None = None) -> W:
        """Creates the object; raises `AlreadyExists`, or `Invalid` with the causes field by field."""
        kind, namespace = await self._place(new, namespace)
        what = self._what("create", kind, namespace, new.name)
        request = self._write("POST", self._path(kind, namespace), object_body(new, kind, None))
        return await self._written(new, kind, request, what)

    async def replace(
        self,
        changed: W,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> W:
        """Writes the object back; raises `Conflict` if it has changed since it was read.

        Fields that its class does not know stay as they were read. An object without a resource version overwrites a
        built-in kind; custom kinds refuse it.
        """
        kind, namespace = await self._place(changed, namespace)
        path = self._path(kind, namespace, required_name(changed), subresource)
        request = self._write("PUT", path, object_body(changed, kind, subresource))
        what = self._what(_of("replace", subresource), kind, namespace, changed.name)
        return await self._written(changed, kind, request, what)

    async def replace_status(self, changed: W, *, namespace: str | None = None) -> W:
        """Writes only the status back; raises `Conflict` if the object has changed since it was read."""
        return await self.replace(changed, namespace=namespace, subresource="status")

    async def patch(
        self,
        what: Readable[T],
        name: str,
        patch: Patch,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> T:
        """Changes an object without having read it."""
        kind = kind_of(what)
        path = self._object_path(kind, namespace, name, subresource)
        request = self._write(
            "PATCH", path, required_patch(patch).body(), media_type=patch.media_type, headers=accept(what)
        )
        try:
            return await self._object(what, request, self._what(_of("patch", subresource), kind, namespace, name))
        except ApiError as error:
            explain_refusal(error, patch)
            raise

    async def apply(
        self,
        desired: W,
        *,
        namespace: str | None = None,
        force: bool = False,
        subresource: str | None = None,
        resource_version: str | None = None,
    ) -> W:
        """Server-side apply: the fields that are set become `manager`'s, those it no longer sets are given up.

        Raises `Conflict` naming the other managers, unless `force` takes their fields over; and, where a
        `resource_version` is given, if that is not the object's version.
        """
        kind, namespace = await self._place(desired, namespace)
        path = self._path(kind, namespace, required_name(desired), subresource)
        request = self._write(
            "PATCH",
            path,
            applied_body(desired, kind, subresource, resource_version),
            media_type="application/apply-patch+yaml",
            force=force,
        )
        what = self._what(_of("apply", subresource), kind, namespace, desired.name)
        return await self._written(desired, kind, request, what)

    async def _written(self, given: W, kind: Kind, request: Request, what: str) -> W:
        try:
            return await self._object(reader_of(given, kind), request, what)
        except ApiError as error:
            explain_types(error, given, request.body or b"")
            raise

    async def delete(
        self,
        what: Readable[T],
        name: str,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        preconditions: Preconditions | None = None,
    ) -> T | None:
        """Deletes the object. Returns it if it is still there, waiting for its finalizers or grace period.

        Raises `NotFound`, or `Conflict` if the preconditions do not hold.
        """
        kind = kind_of(what)
        body = encode(delete_options(propagation, grace_seconds, preconditions, dry_run=self.options.dry_run))
        request = Request(
            method="DELETE",
            path=self._object_path(kind, namespace, name),
            headers={"Content-Type": "application/json", **accept(what)},
            body=body,
            timeout=self.options.timeout,
        )
        answer = await self._caller.call(request, self._what("delete", kind, namespace, name))
        gone = answer.type() == TypeOf(kind="Status", api_version="v1")
        return None if gone else answer.decoded(what.from_json)

    async def delete_all(
        self,
        what: Readable[Any],
        *,
        namespace: str | None = None,
        labels: LabelSelector = None,
        fields: FieldSelector = None,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Deletes every object of a namespace that matches. The API has no such verb for all namespaces at once."""
        kind = kind_of(what)
        if namespace == ALL and kind.namespaced:
            raise InvalidValueError(f"expected one namespace to delete {kind.plural} from, got all of them (ALL)")
        request = Request(
            method="DELETE",
            path=self._path(kind, namespace),
            query=selectors_of(labels, fields),
            headers={"Content-Type": "application/json"},
            body=encode(delete_options(propagation, grace_seconds, None, dry_run=self.options.dry_run)),
            timeout=self.options.timeout,
        )
        answer = await self._caller.call(request, self._what("delete all", kind, namespace))
        answer.type()

    async def _place(self, target: Object | Dynamic, namespace: str | None) -> tuple[Kind, str | None]:
        """The kind of an object and the namespace it belongs to; one that says otherwise is refused."""
        kind = await self.discovery.kind_of(required_object(target))
        own = target.namespace or None
        if own and namespace and own != namespace:
            raise InvalidValueError(
                f"{kind.kind} {target.name!r} says it is in namespace {own!r}, got namespace={namespace!r}; leave one out"
            )
        return kind, own or namespace

    def _write(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        media_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> Request:
        query = query_of(
            fieldManager=self.options.manager,
            fieldValidation=self.options.field_validation,
            dryRun="All" if self.options.dry_run else None,
            force=force,
        )
        return Request(
            method=method,
            path=path,
            query=query,
            headers={"Content-Type": media_type, **(headers or {})},
            body=body,
            timeout=self.options.timeout,
        )


def _of(verb: str, subresource: str | None) -> str:
    return f"{verb} {subresource} of" if subresource else verb
