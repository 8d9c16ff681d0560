"""Asking the place behind the server, over a connection of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, NoReturn

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from navarch._base.connections import Connector
from navarch.cluster.server.pipeline.proxying.places import Place
from navarch.cluster.server.wire.request import ApiRequest
from navarch.cluster.server.wire.transport_errors import connection_fault

__all__ = ["Answer", "Resumed", "UnansweredError", "ask"]

_CONNECT_SECONDS: Final = 30.0
_LONGEST_FIELD: Final = 64 * 1024
"""Of an answer's head; it may have 128 of them."""
_OF_AIOHTTP: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""What aiohttp would say of itself."""


class UnansweredError(Exception):
    """There is no answer; says why, in Go's words."""


class Answer(AsyncGenerator[bytes, None]):
    """An answer whose body has yet to come; a generator of it, which has an end even if it was never begun.

    Whoever got it calls `aclose`.
    """

    def __init__(self, session: aiohttp.ClientSession, response: aiohttp.ClientResponse) -> None:
        self._session = session
        self.response = response

    async def asend(self, value: None) -> bytes:  # noqa: ARG002 - nothing can be sent
        """The next piece; raises ConnectionResetError if the place behind breaks off."""
        try:
            piece = await self.response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionResetError(f"the answer broke off: {error}") from error
        if not piece:
            raise StopAsyncIteration
        return piece

    async def athrow(self, *_: object) -> NoReturn:
        """Ends it."""
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the connection; may be called twice."""
        self.response.close()
        await self._session.close()


class Resumed(AsyncGenerator[bytes, None]):
    """An answer whose beginning was read already: that, and then what is left of it."""

    def __init__(self, beginning: bytes, answer: Answer) -> None:
        self._beginning = beginning
        self._answer = answer

    async def asend(self, value: None) -> bytes:
        """The next piece; see `Answer`."""
        beginning, self._beginning = self._beginning, b""
        return beginning or await self._answer.asend(value)

    async def athrow(self, *_: object) -> NoReturn:
        """Ends it."""
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the connection; may be called twice."""
        await self._answer.aclose()


async def ask(place: Place, request: ApiRequest, target: str, headers: list[tuple[str, str]]) -> Answer:
    """The answer, as soon as it begins. Raises `UnansweredError`."""
    session = aiohttp.ClientSession(
        connector=Connector(ssl=False),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=_OF_AIOHTTP,
        max_line_size=_LONGEST_FIELD,
        max_field_size=_LONGEST_FIELD,
    )
    url = URL(f"{place.scheme}://{place.authority}{target}", encoded=True)
    body: AsyncIterator[bytes] | bytes | None = request.incoming or request.body or None
    try:
        response = await session.request(
            request.method, url, headers=CIMultiDict(headers), data=body, allow_redirects=False
        )
    except (aiohttp.ClientError, OSError, ValueError) as error:
        await session.close()
        raise UnansweredError(_why(error, place)) from error
    except BaseException:
        await session.close()
        raise
    return Answer(session, response)


def _why(error: Exception, place: Place) -> str:
    if isinstance(error, TimeoutError):
        return f"dial tcp {place.authority}: i/o timeout"
    return connection_fault(error, "")
