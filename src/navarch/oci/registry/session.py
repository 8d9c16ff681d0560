"""Sends requests to registries: authorized, redirected, bounded in time, repeated if they were interrupted."""

from __future__ import annotations

import io
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from navarch._base.backoff import BackoffDelays
from navarch._base.clock import Clock
from navarch._base.connections import Connector
from navarch._base.tasks import AsyncCloseable, unless
from navarch._base.tls import client_ssl_context
from navarch.errors import ClosedError, RegistryError
from navarch.oci.reference import DOCKER_HUB
from navarch.oci.registry.authorization import RegistryAuthorization, Scopes, TokenQuery, parse_challenges
from navarch.oci.registry.failures import Interruption, connection_failure, place, refusal
from navarch.oci.registry.options import RegistryOptions

_MOST_REDIRECTS: Final = 5
_MOST_CHALLENGES: Final = 2  # one for a token, one for the scope that the registry really wants
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REDIRECTS_OF_WRITES: Final = frozenset({307, 308})
_LARGEST_TOKEN: Final = 2**20
_LARGEST_REST: Final = 64 * 2**10
_LONGEST_PAUSE: Final = 60.0
_DOCKER_HUB_API: Final = "registry-1.docker.io"
_USER_AGENT: Final = "navarch"

T = TypeVar("T")


class IdleTimer:
    """Measures the time since the last byte."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._last = clock.monotonic()

    def touch(self) -> None:
        """Begins to measure anew."""
        self._last = self._clock.monotonic()

    async def expire(self) -> None:
        """Returns once no byte has come or gone for too long."""
        while (left := self._last + self._seconds - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)


Chunks = Callable[[IdleTimer], AsyncIterator[bytes]]
"""Begins a request's body anew, since it is sent again after a redirect or a challenge; each chunk touches the timer."""


class RegistryCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a registry."""

    registry: str
    method: str
    url: URL
    scopes: Scopes = frozenset()
    headers: Mapping[str, str] = {}
    body: bytes | Chunks | None = None
    statuses: frozenset[int] = frozenset({200})
    """The answers that the caller reads; all others are errors."""

    @property
    def where(self) -> str:
        """Returns how errors name the request; without the query, which may have signatures."""
        return f"{self.method} {place(self.url)}"


Read = Callable[[aiohttp.ClientResponse, IdleTimer], Awaitable[T]]


class RegistrySession(AsyncCloseable):
    """The connections of a client, and its authorization at each registry."""

    def __init__(self, options: RegistryOptions) -> None:
        self.options = options
        self._http: aiohttp.ClientSession | None = None
        self._is_closed = False
        self._authorizations: dict[str, RegistryAuthorization] = {}
        self._answered: set[URL] = set()
        self._random = random.Random()  # noqa: S311 - spreads retries

    async def close(self) -> None:
        self._is_closed = True
        if self._http is not None:
            await self._http.close()

    def base(self, registry: str) -> URL:
        """Returns the address of the registry's API."""
        host = _DOCKER_HUB_API if registry == DOCKER_HUB else registry
        return URL(f"{'http' if self.options.plain_http else 'https'}://{host}/v2/")

    async def call(self, call: RegistryCall, read: Read[T]) -> T:
        """Sends the request until it is answered, at most `attempts` times, and returns what `read` makes of the answer.

        Raises `RegistryError` for an answer that `statuses` does not have, and if there is none.
        """
        return await self.repeat(lambda: self.send(call, read))

    async def repeat(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeats the attempt while it is interrupted; raises the last interruption's `RegistryError`."""
        delays = BackoffDelays(self.options.backoff, self._random)
        for left in reversed(range(self.options.attempts)):
            try:
                return await attempt()
            except Interruption as interruption:
                delay = max(delays.next_delay(), interruption.after)
                if not left or delay > _LONGEST_PAUSE:
                    raise interruption.error from None
                await self.options.clock.sleep(delay)
        raise AssertionError("the last attempt returns or raises")

    async def send(self, call: RegistryCall, read: Read[T]) -> T:
        """Sends the request once. Raises `Interruption` if it may be sent again, else `RegistryError`."""
        timer = IdleTimer(self.options.clock, self.options.idle_seconds)
        found: list[T] = []

        async def exchange() -> None:
            found.append(await self._exchange(call, read, timer))

        try:
            await unless(timer.expire(), exchange())
        except (aiohttp.ClientError, OSError) as error:
            raise connection_failure(
                error, call.where, call.url, answered=call.url.origin() in self._answered
            ) from None
        if not found:
            raise Interruption(
                RegistryError(f"{call.where}: expected an answer within {self.options.idle_seconds:g} s, got none")
            )
        return found[0]

    async def _exchange(self, call: RegistryCall, read: Read[T], timer: IdleTimer) -> T:
        url, authorization = call.url, self._authorization(call.registry)
        is_trusted = url.origin() == self.base(call.registry).origin()
        header = await authorization.header(call.scopes) if is_trusted else ""
        challenges = redirects = 0
        while True:
            async with self._answer(call, url, header, timer) as response:
                self._answered.add(url.origin())
                if response.status == 401 and is_trusted:
                    challenges += 1
                    if challenges > _MOST_CHALLENGES:
                        raise authorization.refusal()
                    header = await authorization.answer(
                        parse_challenges(response.headers.getall("WWW-Authenticate", [])), call.scopes, header
                    )
                elif response.status in _REDIRECTS and response.status not in call.statuses:
                    redirects += 1
                    url = _redirected(call, url, response, redirects)
                    is_trusted = is_trusted and url.origin() == self.base(call.registry).origin()
                    header = header if is_trusted else ""  # nobody else gets to see it
                elif response.status in call.statuses:
                    return await read(response, timer)
                else:
                    raise await refusal(response, call.where, self.options)
                await response.content.read(_LARGEST_REST)  # so that the connection can be used again
                timer.touch()

    @asynccontextmanager
    async def _answer(
        self, call: RegistryCall, url: URL, header: str, timer: IdleTimer
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Accept-Encoding": "identity", "User-Agent": _USER_AGENT, **call.headers}
        if header:
            headers["Authorization"] = header
        body = call.body(timer) if callable(call.body) else io.BytesIO(call.body) if call.body else None
        async with self._connections().request(
            call.method,
            url,
            headers=headers,
            data=body,
            allow_redirects=False,
            proxy=self.options.proxy(str(url.origin())) or None,
        ) as response:
            timer.touch()
            yield response

    def _connections(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise ClosedError("expected an open registry client, got a closed one; use it inside its `async with`")
        if self._http is None:
            context = None if self.options.plain_http else client_ssl_context(file=self.options.ca_file)
            self._http = aiohttp.ClientSession(
                connector=Connector(limit=0, ssl=context if context is not None else True),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the injected clock measures instead
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._http

    def _authorization(self, registry: str) -> RegistryAuthorization:
        if registry not in self._authorizations:
            options = self.options
            self._authorizations[registry] = RegistryAuthorization(
                registry, options.credentials, self._fetch_token, options.clock, plain_http=options.plain_http
            )
        return self._authorizations[registry]

    async def _fetch_token(self, query: TokenQuery) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": _USER_AGENT}
        if query.authorization:
            headers["Authorization"] = query.authorization
        async with self._connections().request(
            "GET" if query.form is None else "POST",
            query.url,
            headers=headers,
            data=query.form,
            allow_redirects=False,
            proxy=self.options.proxy(str(query.url.origin())) or None,
        ) as response:
            return response.status, await response.content.read(_LARGEST_TOKEN)


async def read_bounded(response: aiohttp.ClientResponse, timer: IdleTimer, most: int, where: str) -> bytes:
    """Returns the body; raises `RegistryError` if it is larger."""
    content = bytearray()
    while chunk := await response.content.readany():
        timer.touch()
        content += chunk
        if len(content) > most:
            raise RegistryError(f"{where}: expected at most {most} bytes, got more", status=response.status)
    return bytes(content)


def _redirected(call: RegistryCall, url: URL, response: aiohttp.ClientResponse, count: int) -> URL:
    if count > _MOST_REDIRECTS:
        raise RegistryError(
            f"{call.where}: expected at most {_MOST_REDIRECTS} redirects, got more", status=response.status
        )
    try:
        target = url.join(URL(response.headers.get("Location", "")))
    except ValueError:
        target = url
    if target in {url, URL()} or target.scheme not in {"http", "https"} or not target.host:
        raise RegistryError(f"{call.where}: expected a redirect to another address, got none", status=response.status)
    if url.scheme == "https" and target.scheme == "http":
        raise RegistryError(
            f"{call.where}: expected a redirect to an address with TLS, got {place(target)}", status=response.status
        )
    if call.method not in {"GET", "HEAD"} and response.status not in _REDIRECTS_OF_WRITES:
        raise RegistryError(
            f"{call.where}: expected an answer, got a redirect to {place(target)}", status=response.status
        )
    return target
