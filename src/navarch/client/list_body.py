"""The body of a list, split into its objects as it arrives."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from navarch.api import ListMeta, decode
from navarch.client.response_errors import bad_answer
from navarch.client.transport import Request, Response
from navarch.errors import BadAnswerError, DecodeError


class ObjectHead(msgspec.Struct, rename="camel", gc=False):
    """As much of an object's metadata as is needed to know which object it is, and which version of it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    deletion_timestamp: str | None = None
    managed_fields: msgspec.Raw = msgspec.Raw()


class HeadOnly(msgspec.Struct, gc=False):
    """An object of which only the head is looked at."""

    metadata: ObjectHead = msgspec.field(default_factory=ObjectHead)


_decoder = msgspec.json.Decoder(HeadOnly)


def head_of(data: bytes) -> ObjectHead:
    """The head of an object's JSON; raises `msgspec.DecodeError`."""
    return _decoder.decode(data).metadata


_ITEMS = b'"items":['
# How every object of a list begins: built-in kinds without their type, custom resources with it.
_BEGINNING = re.compile(rb'\{(?:"(?:apiVersion|kind)":"[^"]*",)*"metadata":\{')
_LONGEST_BEGINNING = 2**16
_AT_ONCE = 500


class ListPage(msgspec.Struct):
    """A whole list, or a page of one."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


class ListedObject(NamedTuple):
    """One object of a list: its JSON and its head."""

    data: bytes
    head: ObjectHead


class ListBody:
    """Splits a list into its objects while it arrives, so that no second copy of all of them is held.

    The bytes with which the first object begins, after a comma, are where the next one begins. Each part is decoded: only
    a complete object is valid JSON, so a part that was cut in the wrong place is noticed. The rest of such a list, and a
    list in any other layout, is split when all of it is there.
    """

    def __init__(self, request: Request, response: Response) -> None:
        self._request = request
        self._response = response
        self._chunks = response.chunks()
        self._before = b""  # the list up to the first object
        self._rest = b""  # what has arrived of the objects
        self._start = 0  # where in `_rest` the next object begins
        self._beginning = b""
        self._can_split = True
        self._unsplit: list[bytes] = []  # what follows `_rest` once the list cannot be split
        self.metadata: ListMeta | None = None
        """The list's own metadata; None until its end."""

    async def next(self) -> list[ListedObject] | None:
        """The next objects that have arrived, at most 500; None after the last.

        Raises `BadAnswerError` for a body that is no list, or only a part of one, and what the transport raises.
        """
        if self.metadata is not None:
            return None
        while not (found := self._split()):
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return self._last()
            self._take(chunk)
        return found

    def _take(self, chunk: bytes) -> None:
        if self._can_split:
            self._rest = self._rest[self._start :] + chunk
            self._start = 0
        else:
            self._unsplit.append(chunk)

    def _split(self) -> list[ListedObject]:
        """The objects in `_rest` behind which another one has begun."""
        found: list[ListedObject] = []
        if not self._can_split or not (self._beginning or self._find_beginning()):
            return found
        following = b"," + self._beginning
        while len(found) < _AT_ONCE and (end := self._rest.find(following, self._start)) >= 0:
            data = self._rest[self._start : end]
            try:
                found.append(ListedObject(data, head_of(data)))
            except (msgspec.DecodeError, UnicodeDecodeError):
                self._can_split = False
                break
            self._start = end + 1
        return found

    def _find_beginning(self) -> bool:
        """Whether it is known where the first object begins, and how."""
        start = self._rest.find(_ITEMS)
        if start < 0:
            self._can_split = len(self._rest) < _LONGEST_BEGINNING
            return False
        first = start + len(_ITEMS)
        beginning = _BEGINNING.match(self._rest, first)
        if beginning is None:
            self._can_split = len(self._rest) - first < _LONGEST_BEGINNING
            return False
        self._before, self._rest, self._beginning = self._rest[:first], self._rest[first:], beginning[0]
        return True

    def _last(self) -> list[ListedObject]:
        """Decodes what is left, between the list's own fields, as a list."""
        body = b"".join([self._before, self._rest[self._start :], *self._unsplit])
        try:
            page = decode(ListPage, body)
            items = None if page.items is msgspec.UNSET else page.items or ()
            found = [ListedObject(bytes(item), head_of(item)) for item in items or ()]
        except (DecodeError, msgspec.DecodeError) as error:
            raise self._bad(body, error) from error
        if items is None or page.metadata.continue_:
            raise self._bad(body, "it has no items" if items is None else "it is a page of a longer list")
        self.metadata, self._rest, self._start, self._unsplit = page.metadata, b"", 0, []
        return found

    def _bad(self, body: bytes, fault: object) -> BadAnswerError:
        return bad_answer(self._request, self._response.status, self._response.headers, body, fault)

    async def close(self) -> None:
        """Lets go of the connection."""
        await self._response.close()
