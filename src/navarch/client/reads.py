"""Verbs that read: get, list, watch."""

from __future__ import annotations

from typing import TypeVar

from navarch.client.core import Core, FieldSelector, LabelSelector, query_of, selectors_of
from navarch.client.listing import Listing
from navarch.client.target import Readable, accept, kind_of
from navarch.client.transport import Request
from navarch.client.watch import Watch, WatchOptions
from navarch.errors import InvalidValueError

__all__ = ["Reads"]

T = TypeVar("T")


class Reads(Core):
    """get, list and watch, typed by what they are given."""

    async def get(self, what: Readable[T], name: str, *, namespace: str | None = None) -> T:
        """The object of that name; raises `NotFound`."""
        kind = kind_of(what)
        request = Request(
            method="GET",
            path=self._object_path(kind, namespace, name),
            headers=accept(what),
            timeout=self.options.timeout,
        )
        return await self._object(what, request, self._what("get", kind, namespace, name))

    def list(
        self,
        what: Readable[T],
        *,
        namespace: str | None = None,
        labels: LabelSelector = None,
        fields: FieldSelector = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        page_size: int | None = None,
    ) -> Listing[T]:
        """The objects of a namespace, or of all with `namespace=ALL`: `await` all, or `async for` page by page.

        `await` asks for one answer unless a `page_size` is given; `async for` asks for pages of 500 unless it is 0, which
        asks for one. The client's time limit holds for each answer.
        """
        kind = kind_of(what)
        page_size = self.options.page_size if page_size is None else page_size
        if page_size is not None and page_size < 0:
            raise InvalidValueError(f"expected a page size of 0 (everything at once) or more, got {page_size}")
        request = Request(
            method="GET",
            path=self._path(kind, namespace),
            query=selectors_of(labels, fields)
            | query_of(resourceVersion=resource_version, resourceVersionMatch=resource_version_match),
            headers=accept(what, many=True),
            timeout=self.options.timeout,
        )
        return Listing(self._caller, what, request, self._what("list", kind, namespace), page_size)

    def watch(
        self,
        what: Readable[T],
        *,
        namespace: str | None = None,
        labels: LabelSelector = None,
        fields: FieldSelector = None,
        resource_version: str | None = None,
        options: WatchOptions = WatchOptions(),
    ) -> Watch[T]:
        """The changes from `resource_version` on, or from now; use it as an `async with`, and read it with `async for`."""
        kind = kind_of(what)
        request = Request(
            method="GET",
            path=self._path(kind, namespace),
            query=selectors_of(labels, fields) | query_of(resourceVersion=resource_version),
            headers=accept(what),
            timeout=self.options.timeout,
        )
        return Watch(self._caller, what, request, self._what("watch", kind, namespace), options)
