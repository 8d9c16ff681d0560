"""The transport for real clusters: HTTP/1.1 over aiohttp."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import unquote, urlencode, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from navarch._base.clock import Clock
from navarch._base.connections import Connector
from navarch.client.config import Authenticator, Config, default_user_agent
from navarch.client.config.credentials import basic
from navarch.client.config.environment import environment_proxy
from navarch.client.config.masking import without_password
from navarch.client.transport import Request, Response, WebSocket
from navarch.client.websocket import HttpWebSocket, Upgraded, hand_over_refusal, upgrade
from navarch.errors import (
    BadAnswerError,
    ClosedError,
    ConnectError,
    ConnectionLostError,
    CredentialError,
    DeadlineError,
    NavarchError,
    TlsError,
)

_CONNECT_SECONDS = 10.0
_MAX_CONNECTIONS = 100
_READ_BUFFER = 2**20
_TLS_REMEDY = "check the CA (certificate-authority), the address, or set tls-server-name"
_NOT_NOW = "renew the server's certificate, or put this machine's clock right"
_NOT_THIS_NAME = "use an address that the certificate names, or set tls-server-name to one"
# By the codes of OpenSSL: not yet valid, expired, another name, another address.
_TLS_REMEDIES = {9: _NOT_NOW, 10: _NOT_NOW, 62: _NOT_THIS_NAME, 64: _NOT_THIS_NAME}
_KEEPALIVE = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}

A = TypeVar("A", bound=Upgraded)


class HttpTransport:
    """Sends requests to the API server of one `Config`. Opens no connection before the first request."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._server = _without_user(config.server)
        self._shown = without_password(config.server)
        self._authenticator = Authenticator(config, clock)
        self._proxy = config.proxy_url or environment_proxy(config.server)
        self._fixed_headers = _fixed_headers(config)
        self._short: aiohttp.ClientSession | None = None
        self._long: aiohttp.ClientSession | None = None
        self._tls: tuple[int, ssl.SSLContext | None] | None = None
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def origin(self) -> str:
        """See `Transport.origin`."""
        return self._config.origin

    @property
    def host(self) -> str:
        """See `Transport.host`."""
        return self._config.host

    async def send(self, request: Request) -> Response:
        """See `Transport.send`. Renews a refused credential and tries once more."""
        return _HttpResponse(request, await self._with_renewal(lambda: self._attempt(request)))

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """See `Transport.connect`. Renews a refused credential and tries once more."""
        answer = await self._with_renewal(lambda: self._upgrade(request, protocols))
        if isinstance(answer, aiohttp.ClientResponse):
            return _HttpResponse(request, answer)
        return HttpWebSocket(answer, request, self._clock)

    async def close(self) -> None:
        """Closes every connection for good."""
        self._closed = True
        sessions, self._short, self._long = (self._short, self._long), None, None
        for session in sessions:
            if session is not None:
                await session.close()

    async def _with_renewal(self, attempt: Callable[[], Awaitable[tuple[A, int]]]) -> A:
        """Returns the result of `attempt`, which also returns the version of the credential that it used."""
        answer, version = await attempt()
        if (refused := _unauthorized(answer)) and await self._authenticator.refresh(version):
            refused.release()
            answer, _ = await attempt()
        if (refused := _unauthorized(answer)) and (fault := self._authenticator.diagnose()):
            refused.release()
            raise CredentialError(fault)
        return answer

    async def _attempt(self, request: Request) -> tuple[aiohttp.ClientResponse, int]:
        headers = await self._authenticator.headers()
        version = self._authenticator.version
        with _our_errors(request, self._shown, self._authenticator):
            async with asyncio.timeout(request.timeout if request.long_lived else None):
                response = await self._session(long_lived=request.long_lived).request(
                    request.method,
                    self._url(request),
                    data=request.body,
                    headers=self._headers(request, headers),
                    timeout=_timeout(request),
                    allow_redirects=False,
                    ssl=self._ssl() or True,
                    server_hostname=self._config.tls_server_name or None,
                    proxy=self._proxy or None,
                )
        return response, version

    async def _upgrade(self, request: Request, protocols: Sequence[str]) -> tuple[Upgraded, int]:
        headers = await self._authenticator.headers()
        version = self._authenticator.version
        with _our_errors(request, self._shown, self._authenticator):
            async with asyncio.timeout(request.timeout):
                upgraded = await upgrade(
                    self._session(long_lived=True),
                    request,
                    self._url(request),
                    protocols,
                    headers=self._headers(request, headers),
                    tls=self._ssl() or True,
                    server_hostname=self._config.tls_server_name or None,
                    proxy=self._proxy or None,
                )
        return upgraded, version

    def _session(self, *, long_lived: bool) -> aiohttp.ClientSession:
        """Returns the session. Watches have their own, without a limit: they must not keep a write waiting for a
        connection.
        """
        if self._closed:
            raise ClosedError("expected an open client, got one that was closed; use it inside its `async with`")
        self._loop = self._loop or asyncio.get_running_loop()
        if self._loop is not asyncio.get_running_loop():
            raise ClosedError(
                "expected the event loop in which the client was first used, got another; make a client in each"
            )
        if long_lived:
            self._long = self._long or _new_session(0, hand_over_refusal)
            return self._long
        self._short = self._short or _new_session(_MAX_CONNECTIONS, _send_once)
        return self._short

    def _ssl(self) -> ssl.SSLContext | None:
        """Returns the TLS context. aiohttp pools connections by context, so a new certificate opens new connections."""
        version = self._authenticator.tls_version
        if self._tls is None or self._tls[0] != version:
            self._tls = version, self._authenticator.ssl_context()
        return self._tls[1]

    def _url(self, request: Request) -> URL:
        query = "?" + urlencode(request.query, doseq=True) if request.query else ""
        return URL(self._server + request.path + query, encoded=True)

    def _headers(self, request: Request, credential: Mapping[str, str]) -> CIMultiDict[str]:
        headers = CIMultiDict(self._fixed_headers)
        headers.update(request.headers)
        headers.update(credential)
        return headers


def _fixed_headers(config: Config) -> CIMultiDict[str]:
    headers = CIMultiDict(
        {
            "User-Agent": config.user_agent or default_user_agent(),
            "Accept": "application/json",
            "Accept-Encoding": "gzip" if config.compression else "identity",
        }
    )
    headers.update(_user_in(config.server))
    if config.impersonate is not None:
        for name, value in config.impersonate.headers():
            headers.add(name, value)
    return headers


def _without_user(server: str) -> str:
    """Returns the address without its user: aiohttp refuses one beside any other credential."""
    parts = urlsplit(server)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _user_in(server: str) -> Mapping[str, str]:
    """Returns the header for the user in the address, which applies without another credential, as in Go."""
    parts = urlsplit(server)
    return basic(unquote(parts.username), unquote(parts.password or "")) if parts.username else {}


class _BrokenOffError(aiohttp.ClientConnectionError):
    """The connection broke during a write, which the server may have executed."""


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """A client middleware that sends once: aiohttp itself repeats a PUT or DELETE when a reused connection breaks."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if request.method == "GET":
            raise
        raise _BrokenOffError from error


def _new_session(limit: int, *middlewares: aiohttp.ClientMiddlewareType) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=Connector(limit=limit, ttl_dns_cache=60, socket_factory=_kept_alive),
        middlewares=middlewares,
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=_READ_BUFFER,
        skip_auto_headers=("Content-Type",),
    )


def _kept_alive(address: aiohttp.AddrInfoType) -> socket.socket:
    """Enables TCP keep-alive: a dead peer is noticed within a minute, even on an idle connection."""
    family, kind, protocol, *_ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):  # not every system has them all
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return opened


def _unauthorized(answer: Upgraded) -> aiohttp.ClientResponse | None:
    return answer if isinstance(answer, aiohttp.ClientResponse) and answer.status == 401 else None


def _timeout(request: Request) -> aiohttp.ClientTimeout:
    total = None if request.long_lived else request.timeout
    return aiohttp.ClientTimeout(
        total=total, sock_connect=_CONNECT_SECONDS, sock_read=request.idle_timeout, ceil_threshold=3600
    )


class _HttpResponse:
    def __init__(self, request: Request, response: aiohttp.ClientResponse) -> None:
        self._request = request
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    def warnings(self) -> Sequence[str]:
        return self._response.headers.getall("Warning", ())

    async def read(self) -> bytes:
        with _our_errors(self._request, str(self._response.url.origin())):
            return await self._response.read()

    def chunks(self) -> AsyncIterator[bytes]:
        return _Chunks(self._request, self._response)

    async def close(self) -> None:
        self._response.close() if not self._response.content.at_eof() else self._response.release()


class _Chunks:
    """The chunks of a body. It is no generator: one that is abandoned would need a task of its own to close it."""

    def __init__(self, request: Request, response: aiohttp.ClientResponse) -> None:
        self._request = request
        self._response = response
        self._server = str(response.url.origin())

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with _our_errors(self._request, self._server):
            chunk = await self._response.content.readany()
        if not chunk:
            raise StopAsyncIteration
        return chunk


@contextmanager
def _our_errors(request: Request, server: str, authenticator: Authenticator | None = None) -> Iterator[None]:
    """Translates aiohttp's errors; they differ by whether the server may have executed the request."""
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        blamed = authenticator is not None and isinstance(error, aiohttp.ClientConnectionError)
        if authenticator and blamed and (fault := authenticator.diagnose()):
            raise CredentialError(fault) from _inner(error)
        raise _our_error(request, server, error) from _inner(error)


def _our_error(request: Request, server: str, error: aiohttp.ClientError | OSError) -> NavarchError:
    call = f"{request.method} {request.path}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return TlsError(_untrusted(server, error))
    if isinstance(error, aiohttp.ClientSSLError):
        return TlsError(
            f"{call}: expected TLS from {server}, got a handshake that failed ({_reason(error)}); check the address"
        )
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return ConnectError(f"{call}: nobody answered at the proxy ({_reason(error)}); check proxy-url, or HTTPS_PROXY")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return ConnectError(
            f"{call}: nobody knows the host of {server} ({_reason(error)}); check the address and the DNS"
        )
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return ConnectError(f"{call}: nobody answered at {server} ({_reason(error)}); is the API server up?")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return ConnectError(f"{call}: the proxy refused to connect to {server} (status {error.status})")
    if isinstance(error, TimeoutError):
        limit = request.idle_timeout if isinstance(error, aiohttp.ServerTimeoutError) else request.timeout
        return DeadlineError(f"{call}: expected an answer from {server} within {limit or 0:g} s, got none")
    if isinstance(error, aiohttp.ClientResponseError):
        return BadAnswerError(f"{call}: expected HTTP from {server}, got something else; check the address")
    return ConnectionLostError(f"{call}: the connection to {server} broke off ({_reason(error)})")


def _inner(error: aiohttp.ClientError | OSError) -> BaseException | None:
    """Returns the error to chain: aiohttp's own errors contain the proxy's password, or quote the server's bytes."""
    if isinstance(error, aiohttp.ClientResponseError):
        return None
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    return inner if isinstance(inner, BaseException) else None


def _untrusted(server: str, error: aiohttp.ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    detail = getattr(cause, "verify_message", "") or str(cause)
    remedy = _TLS_REMEDIES.get(getattr(cause, "verify_code", 0), _TLS_REMEDY)
    return (
        f"expected {server} to show a certificate that the configured CA has signed for this address, got one that does "
        f"not verify: {detail.rstrip('.')}; {remedy}"
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer was cut short"
    inner = getattr(error, "os_error", None) or error.__cause__ or error
    if isinstance(inner, ConnectionError) and inner.errno:
        return os.strerror(inner.errno)  # asyncio's own text repeats the address instead
    return getattr(inner, "strerror", None) or str(inner) or type(error).__name__
