"""`Gateway` sends calls to etcd over HTTP: it tries the endpoints in turn, and logs in if there is a user."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import aiohttp
import msgspec

from navarch._base.backoff import Delays
from navarch._base.clock import Clock
from navarch._base.connections import Connector
from navarch.errors import (
    ClosedError,
    EtcdAccessError,
    EtcdError,
    EtcdRefusedError,
    EtcdUnavailableError,
    EtcdUncertainError,
)
from navarch.etcd.faults import (
    UNREADABLE,
    NotThereError,
    error_of_answer,
    error_of_fault,
    is_open_to_all,
    is_stale_token,
)
from navarch.etcd.methods import Method, Prefixes, Streaming, T, lines_of
from navarch.etcd.options import EtcdOptions, EtcdSession

_MAX_CONNECTIONS = 100
_READ_BUFFER = 2**18
_LARGE_BODY = 2**20  # aiohttp wants larger ones as files, which it sends piece by piece
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


class _AuthToken(msgspec.Struct):
    token: str = ""


_AUTHENTICATE = Method("/v3/auth/authenticate", _AuthToken, repeatable=True)


class Gateway:
    """Sends requests to the endpoints of the options. It opens no connection before the first request."""

    def __init__(self, options: EtcdOptions, session: EtcdSession, clock: Clock, rng: random.Random) -> None:
        self.options = options
        self._clock = clock
        self._random = rng
        self._endpoints = [endpoint.rstrip("/") for endpoint in options.endpoints]
        self._prefixes = Prefixes()
        self._preferred = 0
        self._session = session
        self._tls = options.tls.context() if options.tls else None
        self._short: aiohttp.ClientSession | None = None
        self._long: aiohttp.ClientSession | None = None
        self._streams: set[aiohttp.ClientResponse] = set()
        self._closed = False

    async def call(self, method: Method[T], request: object, *, endpoint: str = "") -> T:
        """Returns the response to a request, from that endpoint or from any. Raises `EtcdError`."""
        body = msgspec.json.encode(request)
        return await self._with_token(lambda: self._call(method, body, endpoint))

    @asynccontextmanager
    async def stream(
        self, method: Streaming[T], request: object, *, endpoint: str = ""
    ) -> AsyncIterator[AsyncIterator[T]]:
        """Streams the responses to a request from one endpoint; raises `EtcdError` when the stream breaks."""
        body = msgspec.json.encode(request)
        at, response = await self._with_token(lambda: self._begin(method.path, body, endpoint))
        self._streams.add(response)
        try:
            yield _results(at, method, response, self.options.max_answer_bytes)
        finally:
            self._streams.discard(response)
            response.close()

    async def close(self) -> None:
        """Closes every connection, for good."""
        self._closed = True
        for response in self._streams:
            response.close()  # its reader then fails; closing the session alone does not wake it
        for session in (self._short, self._long):
            if session is not None:
                await session.close()

    def later(self) -> Delays:
        """Returns the delays between attempts."""
        return Delays(self.options.backoff, self._random)

    async def sleep(self, seconds: float) -> None:
        """Sleeps on the client's clock."""
        await self._clock.sleep(seconds)

    async def _call(self, method: Method[T], body: bytes, endpoint: str) -> T:
        async def attempt(at: str) -> T:
            if not method.path.startswith("/v3/"):
                return await self._attempt(at, method, method.path, body)
            return await self._found(at, method.path, lambda path: self._attempt(at, method, path, body))

        return await self._persist(attempt, endpoint, repeatable=method.repeatable)

    async def _begin(self, path: str, body: bytes, endpoint: str) -> tuple[str, aiohttp.ClientResponse]:
        async def attempt(at: str) -> tuple[str, aiohttp.ClientResponse]:
            return await self._found(at, path, lambda there: self._open(at, there, body))

        return await self._persist(attempt, endpoint, repeatable=True)

    async def _found(self, at: str, path: str, ask: Callable[[str], Awaitable[T]]) -> T:
        """Tries the prefixes of the endpoint's gateway; a missing path executed nothing, so the next one is safe."""
        missing: NotThereError | None = None
        for prefix, there in self._prefixes.places(at, path):
            try:
                answer = await ask(there)
            except NotThereError as error:
                missing = missing or error
                continue
            self._prefixes.found(at, prefix)
            return answer
        raise EtcdError(str(missing)) from missing

    async def _persist(self, attempt: Callable[[str], Awaitable[T]], endpoint: str, *, repeatable: bool) -> T:
        """Tries one endpoint after the other until one answers or `patience` has passed."""
        end = self._clock.monotonic() + self.options.patience
        delays = self.later()
        failures: dict[str, EtcdError] = {}
        while True:
            at = endpoint.rstrip("/") or self._endpoints[self._preferred]
            try:
                return await attempt(at)
            except EtcdUnavailableError as error:
                failures[at] = error
            except EtcdUncertainError as error:
                if not repeatable:
                    raise
                failures[at] = error
            if not endpoint:
                self._preferred = (self._preferred + 1) % len(self._endpoints)
            if len(failures) >= (1 if endpoint else len(set(self._endpoints))):
                delay = delays.next_delay()
                if self._clock.monotonic() + delay > end:
                    raise EtcdUnavailableError("; ".join(map(str, failures.values()))) from failures[at]
                await self._clock.sleep(delay)

    async def _attempt(self, at: str, method: Method[T], path: str, body: bytes) -> T:
        session = self._short = self._short or _new_session(_MAX_CONNECTIONS)
        seconds = method.seconds or self.options.timeout
        answer = await self._answer(at, path, self._send(session, method.verb, at + path, body, seconds))
        try:
            return method.decode(answer)
        except UNREADABLE as error:
            raise EtcdError(f"expected an answer of etcd's gateway from {at}{path}: {error}") from error

    async def _answer(self, at: str, path: str, posting: Any) -> bytes:
        try:
            async with posting as response:
                body = await self._body(at, path, response)
                status: int = response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _failure(at, path, error) from error
        if status != 200:
            raise error_of_answer(at, path, status, body)
        return body

    async def _open(self, at: str, path: str, body: bytes) -> tuple[str, aiohttp.ClientResponse]:
        """Opens a stream; its response head has the usual timeout."""
        session = self._long = self._long or _new_session(0)
        try:
            async with asyncio.timeout(self.options.timeout):
                response = await self._send(session, "POST", at + path, body, None)
                if response.status == 200:
                    return at, response
                raise error_of_answer(at, path, response.status, await self._body(at, path, response))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _failure(at, path, error) from error

    async def _body(self, at: str, path: str, response: aiohttp.ClientResponse) -> bytes:
        most = self.options.max_answer_bytes
        if not most:
            return await response.read()
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > most:
                response.close()
                raise EtcdError(f"expected an answer of at most {most} bytes from {at}{path}, got more")
        return bytes(body)

    def _send(self, session: aiohttp.ClientSession, verb: str, url: str, body: bytes, seconds: float | None) -> Any:
        if self._closed:
            raise ClosedError("expected an open client, got one that was closed; use it inside its `async with`")
        return session.request(
            verb,
            url,
            data=body if len(body) <= _LARGE_BODY else BytesIO(body),
            headers={"Authorization": self._session.token} if self._session.token else {},
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=self.options.connect_timeout),
            allow_redirects=False,
            ssl=self._tls or True,
            server_hostname=(self.options.tls.server_name or None) if self.options.tls else None,
        )

    async def _with_token(self, work: Callable[[], Awaitable[T]]) -> T:
        """Logs in if needed, and renews a stale token once: tokens expire, and a restarted member forgets them."""
        if not self.options.user:
            return await work()
        if not self._session.token and not self._session.is_open:
            await self.log_in()
        used = self._session.token
        try:
            return await work()
        except (EtcdAccessError, EtcdRefusedError) as error:
            if not is_stale_token(error):
                raise
            await self.log_in(used)
            return await work()

    async def log_in(self, stale: str = "") -> bool:
        """Gets a token for the options' user, unless another task has already replaced the stale one.

        Returns False if authentication is disabled. Raises `EtcdAccessError`.
        """
        session = self._session
        async with session.changing:
            if session.token in {"", stale}:
                session.token = ""
                session.token = await self._new_token()
                session.is_open = not session.token
        return not session.is_open

    async def _new_token(self) -> str:
        body = msgspec.json.encode({"name": self.options.user, "password": self.options.password})
        try:
            return (await self._call(_AUTHENTICATE, body, "")).token
        except EtcdRefusedError as error:
            if is_open_to_all(error):
                return ""
            raise


async def _results(at: str, method: Streaming[T], response: aiohttp.ClientResponse, max_bytes: int) -> AsyncIterator[T]:
    try:
        async for line in lines_of(response.content.iter_any(), max_bytes):
            answer = method.decode(line)
            if answer.error:
                raise error_of_fault(at, method.path, answer.error)
            if answer.result is not None:
                yield answer.result
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _failure(at, method.path, error) from error
    except UNREADABLE as error:
        raise EtcdError(f"expected an answer of etcd's gateway from {at}{method.path}: {error}") from error


def _failure(at: str, path: str, error: Exception) -> EtcdError:
    """Returns the error for a failed request; one that was never sent is `EtcdUnavailableError`."""
    text = f"{at}{path}: {str(error) or type(error).__name__}"
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return EtcdUnavailableError(text)
    if isinstance(error, TimeoutError):
        return EtcdUncertainError(f"{at}{path}: no answer in time")
    return EtcdUncertainError(text)


def _new_session(limit: int) -> aiohttp.ClientSession:
    connector = Connector(limit=limit, socket_factory=_kept_alive)
    return aiohttp.ClientSession(
        connector=connector,
        read_bufsize=_READ_BUFFER,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        auto_decompress=False,  # etcd's gateway compresses nothing; this refuses decompression bombs
    )


def _kept_alive(address: Any) -> socket.socket:
    """Returns a socket with TCP keep-alive, which detects dead peers on idle connections."""
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened
