"""The verbs get, list and watch, and lists: in one answer, or page by page."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar, overload

import msgspec

from navarch.api import decode
from navarch.client.call import ApiCaller
from navarch.client.list_body import ListBody, ListPage
from navarch.client.rest_client import FieldSelector, LabelSelector, RestClient, query_of, selectors_of
from navarch.client.target import Readable, accept, kind_of
from navarch.client.transport import Request
from navarch.client.watch import Watch, WatchOptions
from navarch.errors import (
    BadAnswerError,
    ConnectionLostError,
    DeadlineError,
    Gone,
    InvalidValueError,
    NavarchError,
    TooLarge,
)

K = TypeVar("K")

_log = logging.getLogger("navarch.client")
_PAGE_SIZE = 500
_CUT_SHORT = (BadAnswerError, ConnectionLostError, DeadlineError, TooLarge)


def may_come_in_pages(error: NavarchError) -> bool:
    """Whether a list that failed in one answer may succeed page by page: it was too long, for the server or for the way."""
    return isinstance(error, _CUT_SHORT)


class _ItemIdentity(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _ListItem(msgspec.Struct):
    metadata: _ItemIdentity


class ObjectList(Sequence[K]):
    """All objects of a list, and the revision from which a watch goes on where the list ends.

    An object is decoded when it is first looked at and kept from then on. So a long list costs little more than its
    bytes, and one object that does not fit its model does not stand in the way of the others.
    """

    def __init__(self, kind: Readable[K], data: Iterable[bytes], resource_version: str) -> None:
        self.resource_version = resource_version
        self._kind = kind
        self._items: list[bytes | K] = [*data]

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> K: ...
    @overload
    def __getitem__(self, index: slice) -> list[K]: ...
    def __getitem__(self, index: int | slice) -> K | list[K]:
        if isinstance(index, slice):
            return [self._decoded(place) for place in range(*index.indices(len(self)))]
        return self._decoded(index)

    def __iter__(self) -> Iterator[K]:
        return map(self._decoded, range(len(self)))

    def __repr__(self) -> str:
        return f"<ObjectList of {len(self)} at revision {self.resource_version}>"

    def _decoded(self, index: int) -> K:
        item = self._items[index]
        if isinstance(item, bytes):
            item = self._items[index] = self._kind.from_json(item)
        return item


@dataclass(frozen=True, slots=True, eq=False)  # by identity: `asyncio.gather` puts what it awaits into a dict
class Listing(Generic[K]):
    """A list that has not been asked for yet: `await` it for all objects, or go through it with `async for`.

    `await` asks for one answer, which the server has in its cache; if that is cut short, and with a `page_size`, it asks
    for pages. Going through it holds one page at a time. If the server no longer keeps the revision of the first page, the
    rest comes from a newer one: no object that exists throughout is missed, and none comes twice.
    """

    caller: ApiCaller
    kind: Readable[K]
    request: Request
    what: str
    page_size: int | None = None

    def __aiter__(self) -> AsyncIterator[K]:
        return _ItemIterator(self.kind, self.pages())

    def __await__(self) -> Generator[Any, None, ObjectList[K]]:
        return self._all().__await__()

    def pages(self) -> ListPages:
        """The same, page by page, as bytes."""
        size = _PAGE_SIZE if self.page_size is None else self.page_size
        limited = {**self.request.query, "limit": str(size)} if size else self.request.query
        return ListPages(self.caller, replace(self.request, query=limited), self.what)

    @asynccontextmanager
    async def body(self, *, long_lived: bool = False) -> AsyncIterator[ListBody]:
        """The same in one answer, as it arrives; `long_lived` if that may take longer than the client's time limit."""
        request = replace(self.request, long_lived=long_lived, idle_timeout=self.request.timeout)
        body = ListBody(request, await self.caller.open(request, self.what))
        try:
            yield body
        finally:
            await body.close()

    async def data(self) -> tuple[list[bytes], str]:
        """All objects as JSON, and the revision of the list."""
        if self.page_size is None:
            try:
                return await self._in_one_answer()
            except NavarchError as error:
                if not may_come_in_pages(error):
                    raise
                _log.info("%s; the list is read page by page", error)
        found: list[bytes] = []
        pages = self.pages()
        while (page := await pages.next()) is not None:
            found += page
        return found, pages.resource_version

    async def _all(self) -> ObjectList[K]:
        return ObjectList(self.kind, *await self.data())

    async def _in_one_answer(self) -> tuple[list[bytes], str]:
        found: list[bytes] = []
        async with self.body() as body:
            while (listed := await body.next()) is not None:
                found += [each.data for each in listed]
            assert body.metadata is not None
            return found, body.metadata.resource_version


class _ItemIterator(Generic[K]):
    def __init__(self, kind: Readable[K], pages: ListPages) -> None:
        self._kind = kind
        self._pages = pages
        self._page: list[bytes] = []

    def __aiter__(self) -> _ItemIterator[K]:
        return self

    async def __anext__(self) -> K:
        while not self._page:
            page = await self._pages.next()
            if page is None:
                raise StopAsyncIteration
            self._page = page[::-1]
        return self._kind.from_json(self._page.pop())


class ListPages:
    """`next` gives one page of objects as bytes after the other, then None.

    `resource_version` is the revision from which a watch goes on where the list ends.
    """

    def __init__(self, caller: ApiCaller, request: Request, what: str) -> None:
        self.resource_version = ""
        self._caller = caller
        self._request = request
        self._what = what
        self._continue: str | None = ""
        self._last_key = ""
        self._skip_until = ""
        self._expired = False

    async def next(self) -> list[bytes] | None:
        if self._continue is None:
            return None
        request = self._request
        if self._continue:
            request = replace(request, query=_continued(request.query, self._continue))
        try:
            answer = await self._caller.call(request, self._what)
        except Gone as error:
            return await self._go_on_after(error)
        page = answer.decoded(partial(decode, ListPage))
        if page.items is msgspec.UNSET:
            raise answer.bad("it has no items")
        self._continue = page.metadata.continue_ or None
        self._expired = False
        # Where the rest had to come from a newer revision, a watch must still begin where the first page ended.
        self.resource_version = self.resource_version or page.metadata.resource_version
        return self._copied(page.items or [])

    async def _go_on_after(self, error: Gone) -> list[bytes] | None:
        """With the token the server offers, which goes on at the same place; without one, from the start."""
        if not self._continue or self._expired:
            raise error
        self._expired = True
        self._continue = error.continue_token
        if not self._continue:
            self._skip_until = max(self._skip_until, self._last_key)
        return await self.next()

    def _copied(self, items: list[msgspec.Raw]) -> list[bytes]:
        if items and self._continue:
            self._last_key = _key(items[-1])
        if self._skip_until:
            items = [item for item in items if _key(item) > self._skip_until]
        # Raw items are views of the page: a copy each, so that keeping one object does not keep its whole page.
        return [bytes(item) for item in items]


def _continued(query: Any, token: str) -> dict[str, str]:
    """The token stands for the revision, so the parameters that chose it must not come again."""
    dropped = {"resourceVersion", "resourceVersionMatch"}
    return {key: value for key, value in query.items() if key not in dropped} | {"continue": token}


def _key(item: msgspec.Raw) -> str:
    """The order in which the server lists: by namespace and name, as in its store."""
    identity = decode(_ListItem, item).metadata
    return f"{identity.namespace}/{identity.name}"


T = TypeVar("T")


class Reads(RestClient):
    """get, list and watch, typed by their argument."""

    async def get(self, what: Readable[T], name: str, *, namespace: str | None = None) -> T:
        """Returns the object of that name. Raises `NotFound`."""
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
        """Returns the changes since `resource_version`, or from now on; use it as an `async with`, and read it with
        `async for`.
        """
        kind = kind_of(what)
        request = Request(
            method="GET",
            path=self._path(kind, namespace),
            query=selectors_of(labels, fields) | query_of(resourceVersion=resource_version),
            headers=accept(what),
            timeout=self.options.timeout,
        )
        return Watch(self._caller, what, request, self._what("watch", kind, namespace), options)
