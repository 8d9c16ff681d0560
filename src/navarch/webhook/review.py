"""`Review`: one admission request as a webhook function sees it, and the verdict that it builds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

from navarch.api import Kind
from navarch.api.names import LABEL_KEY
from navarch.cache import Collection, Lookup
from navarch.client.rest_client import LabelSelector
from navarch.client.target import Readable, kind_of
from navarch.errors import InvalidValueError

T = TypeVar("T")
W = TypeVar("W")

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

Fetch = Callable[[Readable[Any], str, str], Awaitable[Any]]
"""Reads an object of a kind by its name and namespace; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """One reason to refuse a request; without a field it concerns the request as a whole."""

    field: str
    message: str


class Review(Generic[T]):
    """One admission request, and the verdict on it: `warn`, `annotate`, `deny`.

    `old` is the object before the request, None for a CREATE. `user` is the user's name. `options` are the options of the
    request, such as `{"fieldManager": "kubectl"}`. In a dry run (`dry_run`) nothing is stored: do nothing outside of the
    object either.
    """

    def __init__(
        self,
        *,
        operation: Operation = "CREATE",
        old: T | None = None,
        user: str = "",
        groups: tuple[str, ...] = (),
        dry_run: bool = False,
        subresource: str = "",
        options: Mapping[str, Any] | None = None,
        name: str = "",
        namespace: str = "",
        lookup: CachedKinds | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self.operation: Operation = operation
        self.old = old
        self.user = user
        self.groups = groups
        self.dry_run = dry_run
        self.subresource = subresource
        self.options: Mapping[str, Any] = options or {}
        self.name = name
        self.namespace = namespace
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}
        self.denials: list[Denial] = []
        self._lookup = lookup or CachedKinds({})
        self._fetch = fetch

    def warn(self, message: str) -> None:
        """Shows a warning to the user, whatever the verdict: kubectl prints it as `Warning: ...`."""
        self.warnings.append(" ".join(message.split()))

    def annotate(self, key: str, value: str) -> None:
        """Adds an annotation to the request's record in the audit log. The API server prepends the webhook's name to `key`.

        Raises `InvalidValueError` for a key that the API server would refuse.
        """
        if "/" in key:
            raise InvalidValueError(f"expected the key of an audit annotation without a prefix, got {key!r}")
        LABEL_KEY.check(key, where="the key of an audit annotation")
        self.annotations[key] = value

    @overload
    def deny(self, message: str, /) -> None: ...
    @overload
    def deny(self, field: str, message: str, /) -> None: ...
    def deny(self, *words: str) -> None:
        """Refuses the request: `deny("spec.size", "must not shrink")`, or `deny("the cluster is being restored")`.

        May be called several times: the user is shown every reason. Faults of fields are reported like those of a schema, as
        422 Invalid; without a field the answer is 403 Forbidden. The function goes on: return to end it.
        """
        if len(words) not in {1, 2}:
            raise InvalidValueError(f"expected deny(message) or deny(field, message), got {len(words)} arguments")
        *place, message = words
        self.denials.append(Denial(field=place[0] if place else "", message=message))

    def get(self, what: Readable[W], name: str, *, namespace: str | None = None) -> W | None:
        """Returns an object of a kind in `reads=` from the cache, None if there is none; shared, so do not change it.

        The namespace defaults to that of the request.
        """
        return self._lookup.get(what, name, self._namespace(what, namespace))

    def list(
        self,
        what: Readable[W],
        *,
        labels: LabelSelector = None,
        namespace: str | None = None,
        index: tuple[str, str] | None = None,
    ) -> list[W]:
        """Returns objects of a kind in `reads=` from the cache; shared, so do not change them.

        The namespace defaults to that of the request; a request for a cluster-scoped object lists all namespaces.
        """
        return self._lookup.list(what, labels, self._namespace(what, namespace) or None, index)

    async def fetch(self, what: Readable[W], name: str, *, namespace: str | None = None) -> W | None:
        """Reads an object of any kind from the API server, None if there is none; for kinds that are not worth a cache.

        The operator needs the permission: `Uses(Secret, ("get",))`. Raises `ApiError`.
        """
        if self._fetch is None:
            return None
        found: W | None = await self._fetch(what, name, self._namespace(what, namespace))
        return found

    def _namespace(self, what: Readable[Any], given: str | None) -> str:
        if not kind_of(what).namespaced:
            return ""
        return self.namespace if given is None else given


class CachedKinds:
    """The kinds in `reads=` of a function, from any thread: the event loop owns the cache."""

    def __init__(
        self, collections: Mapping[Kind, Collection[Any]], loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self._lookup = Lookup(collections)
        self._loop = loop
        self._thread = threading.get_ident()

    def get(self, what: Readable[W], name: str, namespace: str) -> W | None:
        """See `Lookup.get`."""
        return self._on_loop(lambda: self._lookup.get(what, name, namespace=namespace))

    def list(
        self, what: Readable[W], labels: LabelSelector, namespace: str | None, index: tuple[str, str] | None
    ) -> list[W]:
        """See `Lookup.list`."""
        return self._on_loop(lambda: self._lookup.list(what, labels=labels, namespace=namespace, index=index))

    def _on_loop(self, read: Callable[[], W]) -> W:
        if self._loop is None or threading.get_ident() == self._thread:
            return read()
        answer: Future[W] = Future()

        def run() -> None:
            try:
                answer.set_result(read())
            except BaseException as error:  # noqa: BLE001 - the thread that asked gets it
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return answer.result()
