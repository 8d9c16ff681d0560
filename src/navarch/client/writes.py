"""The verbs create, replace, patch, apply, delete and update."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from navarch._base.backoff import Backoff, BackoffDelays
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
from navarch.client.reads import Reads
from navarch.client.rest_client import FieldSelector, LabelSelector, RestClient, query_of, selectors_of
from navarch.client.target import ALL, Readable, accept, kind_of, reader_of, required_object
from navarch.client.transport import Request
from navarch.errors import ApiError, Conflict, InvalidValueError

W = TypeVar("W", bound=Object | Dynamic)

_PAUSE = Backoff(initial=0.01, maximum=1.0, jitter=1.0)


def _refuse_coroutine(result: object) -> None:
    """Refuses a coroutine function: it would not have run, and the object would be written unchanged."""
    if isinstance(result, Coroutine):
        result.close()
        raise InvalidValueError("expected change as a plain function, got a coroutine; write def, or a lambda")


T = TypeVar("T")


class Writes(RestClient):
    """create, replace, patch, apply and delete. Each returns the object as the server stores it."""

    async def create(self, new: W, *, namespace: str | None = None) -> W:
        """Creates the object. Raises `AlreadyExists`, or `Invalid` with the causes field by field."""
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
        """Writes the object back. Raises `Conflict` if it has changed since it was read.

        Fields that its class lacks stay as they were read. An object without a resourceVersion overwrites a built-in
        kind; custom kinds refuse it.
        """
        kind, namespace = await self._place(changed, namespace)
        path = self._path(kind, namespace, required_name(changed), subresource)
        request = self._write("PUT", path, object_body(changed, kind, subresource))
        what = self._what(_of("replace", subresource), kind, namespace, changed.name)
        return await self._written(changed, kind, request, what)

    async def replace_status(self, changed: W, *, namespace: str | None = None) -> W:
        """Writes only the status back. Raises `Conflict` if the object has changed since it was read."""
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
        """Changes an object without reading it first."""
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
        """Server-side apply: `manager` takes ownership of the fields that are set and gives up those that it no longer
        sets.

        Raises `Conflict` with the other managers, unless `force` takes over their fields; and, with a
        `resource_version`, if the object has another version.
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
        """Deletes the object. Returns it if it still exists, waiting for its finalizers or grace period.

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
        """Deletes every matching object of a namespace. The API has no such verb for all namespaces at once."""
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
        """Returns the kind and the namespace of an object. Refuses an object in another namespace."""
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


class Updates(Reads, Writes):
    """Read-modify-write with retries."""

    async def update(
        self,
        what: Readable[W],
        name: str,
        change: Callable[[W], object],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> W:
        """Reads the object, calls `change` with it and writes it back; repeats all of it after a `Conflict`.

        `change` is a plain function; it may run several times, each time on the current object. Raises the last
        `Conflict` when the client's time limit has passed.
        """
        clock, delays = self._caller.clock, BackoffDelays(_PAUSE, self._caller.rng)
        limit = clock.monotonic() + self.options.timeout
        while True:
            found = await self.get(what, name, namespace=namespace)
            _refuse_coroutine(change(found))
            try:
                return await self.replace(found, namespace=namespace, subresource=subresource)
            except Conflict:
                if clock.monotonic() >= limit:
                    raise
            await clock.sleep(delays.next_delay())
