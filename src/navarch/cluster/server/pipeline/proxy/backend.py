"""Sends a request to the target of a proxy, with the headers that may pass, and carries upgraded connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NoReturn

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import StreamReader
from multidict import CIMultiDict
from yarl import URL

from navarch._base.connections import Connector
from navarch.cluster.server.pipeline.proxy.targets import ProxyTarget
from navarch.cluster.server.wire.request import ApiRequest, Socket, Upgrade
from navarch.cluster.server.wire.transport_errors import connection_fault

_HELD_BYTES = 64 * 1024
_ONE_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""What holds between two neighbours only."""
_CREDENTIALS: Final = (
    "authorization",
    "impersonate-",
    *(f"x-remote-{what}" for what in ("user", "uid", "group", "extra-")),
)
_WEBSOCKET_TOKEN: Final = "base64url.bearer.authorization.k8s.io."  # noqa: S105 - a prefix
_SHARING: Final = frozenset(f"access-control-allow-{what}" for what in ("credentials", "headers", "methods", "origin"))
_FORWARDED_FOR: Final = "x-forwarded-for"
_CONNECT_SECONDS: Final = 30.0
_LONGEST_FIELD: Final = 64 * 1024
"""Of an answer's head; it may have 128 of them."""
_OF_AIOHTTP: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""What aiohttp would say of itself."""


def switched(answer: BackendResponse) -> Upgrade:
    """What the client's connection becomes, after an answer with 101."""
    return Upgrade("bytes", "", partial(_serve, answer))


async def _serve(answer: BackendResponse, socket: Socket) -> None:
    """Carries everything until either side has ended."""
    connection = answer.response.connection
    assert connection is not None
    assert connection.protocol is not None
    try:
        await socket.send(_head(answer))
        await _both_ways(connection.protocol, socket)
    finally:
        await answer.aclose()


async def _both_ways(protocol: ResponseHandler, socket: Socket) -> None:
    loop = asyncio.get_running_loop()
    reader, writer = StreamReader(protocol, _HELD_BYTES, loop=loop), StreamWriter(protocol, loop)
    protocol.set_parser(_Passing(reader), reader)
    async with asyncio.TaskGroup() as group:
        ways = [group.create_task(_downward(reader, socket)), group.create_task(_upward(socket, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()


async def _downward(reader: StreamReader, socket: Socket) -> None:
    while piece := await reader.readany():
        await socket.send(piece)


async def _upward(socket: Socket, writer: StreamWriter) -> None:
    while (piece := await socket.receive()) is not None:
        await writer.write(piece)
        await writer.drain()


class _Passing:
    """Stands where aiohttp has the parser of a WebSocket: everything is taken as it comes."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._reader.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        self._reader.feed_eof()


def _head(answer: BackendResponse) -> bytes:
    """As it came."""
    response = answer.response
    lines = [f"HTTP/1.1 {response.status} {response.reason}".encode()]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*lines, b"", b""])


Headers = list[tuple[str, str]]


def going(request: ApiRequest, uri: str) -> Headers:
    """What the place behind is told: all that the client said, but for its credentials, and where it comes from."""
    dropped = _ONE_HOP | _named(request.headers.get("connection", "")) | {"x-forwarded-uri", "expect"}
    trailers = [("te", "trailers")] if "trailers" in request.headers.get("te", "") else []
    return [*_kept(request, dropped), *trailers, *_forwarded_for(request), ("x-forwarded-uri", uri)]


def switching(request: ApiRequest) -> Headers:
    """The same for a connection that is to become something else than HTTP."""
    return [*_kept(request, frozenset()), *_forwarded_for(request)]


def coming(answered: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What the client is told; the values of a repeated header are joined by line breaks."""
    answered = list(answered)
    connection = ",".join(value for name, value in answered if name.lower() == "connection")
    dropped = _ONE_HOP | _SHARING | _named(connection)
    found: dict[str, str] = {}
    for name, value in answered:
        if name.lower() not in dropped:
            found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


def _named(connection: str) -> frozenset[str]:
    """The headers that a `Connection` says are for the neighbour."""
    return frozenset(part.strip().lower() for part in connection.replace("\n", ",").split(","))


def _kept(request: ApiRequest, dropped: frozenset[str]) -> Iterator[tuple[str, str]]:
    for name, joined in request.headers.items():
        if name in dropped or name == _FORWARDED_FOR or name.startswith(_CREDENTIALS):
            continue
        if name == "sec-websocket-protocol":
            joined = _without_token(joined)  # noqa: PLW2901 - the same without a secret
        yield from ((name, value) for value in joined.split("\n"))


def _without_token(protocols: str) -> str:
    offered = [each.strip() for each in protocols.replace("\n", ",").split(",")]
    if not any(each.startswith(_WEBSOCKET_TOKEN) for each in offered):
        return protocols
    return ",".join(each for each in offered if not each.startswith(_WEBSOCKET_TOKEN))


def _forwarded_for(request: ApiRequest) -> Headers:
    """Who asked, behind whoever the client says has asked it."""
    before = _values(request.headers, _FORWARDED_FOR)
    chain = ", ".join([*before, request.source] if request.source else before)
    return [(_FORWARDED_FOR, chain)] if chain else []


def _values(headers: Mapping[str, str], name: str) -> list[str]:
    return headers[name].split("\n") if name in headers else []


class BackendError(Exception):
    """There is no answer; says why, in Go's words."""


class BackendResponse(AsyncGenerator[bytes, None]):
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


class ResumedResponse(AsyncGenerator[bytes, None]):
    """An answer whose beginning was read already: that, and then what is left of it."""

    def __init__(self, beginning: bytes, answer: BackendResponse) -> None:
        self._beginning = beginning
        self._answer = answer

    async def asend(self, value: None) -> bytes:
        """The next piece; see `BackendResponse`."""
        beginning, self._beginning = self._beginning, b""
        return beginning or await self._answer.asend(value)

    async def athrow(self, *_: object) -> NoReturn:
        """Ends it."""
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the connection; may be called twice."""
        await self._answer.aclose()


async def ask(place: ProxyTarget, request: ApiRequest, target: str, headers: list[tuple[str, str]]) -> BackendResponse:
    """The answer, as soon as it begins. Raises `BackendError`."""
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
        raise BackendError(_why(error, place)) from error
    except BaseException:
        await session.close()
        raise
    return BackendResponse(session, response)


def _why(error: Exception, place: ProxyTarget) -> str:
    if isinstance(error, TimeoutError):
        return f"dial tcp {place.authority}: i/o timeout"
    return connection_fault(error, "")
