"""Lists, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar, overload

import msgspec

from navarch.api import ListMeta, decode
from navarch.client.call import Caller
from navarch.client.target import Readable
from navarch.client.transport import Request
from navarch.errors import Gone

__all__ = ["Listing", "ObjectList", "Pages"]

K = TypeVar("K")


class _Identity(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Item(msgspec.Struct):
    metadata: _Identity


class _Page(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


class ObjectList(Sequence[K]):
    """All objects of a list, and the revision from which a watch goes on where the list ends.

    An object is decoded when it is first looked at and kept from then on. So a long list costs little more than its
    bytes, and one object that does not fit its model does not stand in the way of the others.
    """

    def __init__(self, kind: Readable[K]) -> None:
        self.resource_version = ""
        self._kind = kind
        self._items: list[bytes | K] = []

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

    def extend(self, page: list[bytes]) -> None:
        """Takes the objects of one more page."""
        self._items.extend(page)

    def _decoded(self, index: int) -> K:
        item = self._items[index]
        if isinstance(item, bytes):
            item = self._items[index] = self._kind.from_json(item)
        return item


@dataclass(frozen=True, slots=True)
class Listing(Generic[K]):
    """A list that has not been asked for yet: `await` it for all objects, or go through it with `async for`.

    Going through it holds one page at a time. If the server no longer keeps the revision of the first page, the rest
    comes from a newer one: no object that exists throughout is missed, and none comes twice.
    """

    caller: Caller
    kind: Readable[K]
    request: Request
    what: str

    def __aiter__(self) -> AsyncIterator[K]:
        return _Items(self.kind, self.pages())

    def __await__(self) -> Generator[Any, None, ObjectList[K]]:
        return self._all().__await__()

    def pages(self) -> Pages:
        """The same, page by page, as bytes."""
        return Pages(self.caller, self.request, self.what)

    async def _all(self) -> ObjectList[K]:
        pages = self.pages()
        found = ObjectList(self.kind)
        while (page := await pages.next()) is not None:
            found.extend(page)
        found.resource_version = pages.resource_version
        return found


class _Items(Generic[K]):
    def __init__(self, kind: Readable[K], pages: Pages) -> None:
        self._kind = kind
        self._pages = pages
        self._page: list[bytes] = []

    def __aiter__(self) -> _Items[K]:
        return self

    async def __anext__(self) -> K:
        while not self._page:
            page = await self._pages.next()
            if page is None:
                raise StopAsyncIteration
            self._page = page[::-1]
        return self._kind.from_json(self._page.pop())


class Pages:
    """`next` gives one page of objects as bytes after the other, then None.

    `resource_version` is the revision from which a watch goes on where the list ends.
    """

    def __init__(self, caller: Caller, request: Request, what: str) -> None:
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
        page = answer.decoded(partial(decode, _Page))
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
    identity = decode(_Item, item).metadata
    return f"{identity.namespace}/{identity.name}"
