"""Calls webhooks over HTTPS: admission webhooks and conversion webhooks."""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch._base.tls import client_ssl_context
from navarch.api.strconv import go_quoted
from navarch.cluster.server.wire.budget import LIMITS
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.transport_errors import connection_fault

if TYPE_CHECKING:
    import aiohttp

_HEADERS: Final = {
    "User-Agent": "kube-apiserver-admission",
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
}
_MOST_PER_BYTE: Final = 2
"""An answer may have so many bytes for each that it was asked with, beside those that any request may have."""


class WebhookCallError(Exception):
    """The webhook could not be asked, or gave no answer that can be understood; its text says so as Kubernetes does."""


class ServiceEndpoint(NamedTuple):
    """Where to connect to."""

    host: str
    port: int


ResolveService = Callable[[str, str, int], Awaitable[ServiceEndpoint]]
"""Returns the address of a service's port (namespace, name, port). Raises `WebhookCallError` with the reason if there is none."""


class WebhookTarget(NamedTuple):
    """A webhook's place: `url` is what is said of it; `service` is who answers there, if it is a service."""

    url: str
    service: tuple[str, str, int] | None

    @property
    def host(self) -> str:
        """The name that its certificate must have."""
        return f"{self.service[1]}.{self.service[0]}.svc" if self.service else ""


def target_of(configuration: Json) -> WebhookTarget:
    """The place that a `clientConfig` names."""
    service = configuration.get("service")
    if not service:
        return WebhookTarget(str(configuration.get("url") or ""), None)
    namespace, name, port = service["namespace"], service["name"], service.get("port") or 443
    path = str(service.get("path") or "").lstrip("/")
    return WebhookTarget(f"https://{name}.{namespace}.svc:{port}/{path}", (namespace, name, port))


class WebhookResponse(NamedTuple):
    """What came back."""

    status: int
    content_type: str
    body: bytes


LocalWebhook = Callable[[str, bytes], Coroutine[Any, Any, WebhookResponse]]
"""Answers a body that is posted to a path, in this process and without a connection."""


class WebhookClient:
    """Posts to webhooks. Connections are kept; redirects are not followed. `close` it in the end.

    `local` has, by host and port, the webhooks that are called in this process.
    """

    def __init__(self, clock: Clock, resolve: ResolveService, local: Mapping[str, LocalWebhook] | None = None) -> None:
        self._clock = clock
        self._resolve = resolve
        self._local = {} if local is None else local
        self._session: aiohttp.ClientSession | None = None

    async def post(self, place: WebhookTarget, authority: str, body: bytes, seconds: int) -> WebhookResponse:
        """The answer to a body. `authority` is the CA bundle in base64, that of the machine if it is empty.

        Raises `WebhookCallError`.
        """
        url = f"{place.url}?timeout={seconds}s"
        if not url.startswith("https://"):
            raise WebhookCallError(f"could not get REST client: {go_quoted(place.url)} is no https URL")
        _, _, host, *path = place.url.split("/")
        local = self._local.get(host)
        answer = (
            self._posted(place, url, _trust(authority), body) if local is None else local(f"/{'/'.join(path)}", body)
        )
        try:
            return await within(self._clock, seconds, answer)
        except TimeoutError:
            raise WebhookCallError(_said(url, "context deadline exceeded")) from None

    async def close(self) -> None:
        """Closes the connections; may be called twice."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _posted(self, place: WebhookTarget, url: str, context: ssl.SSLContext, body: bytes) -> WebhookResponse:
        import aiohttp  # noqa: PLC0415 - only those who have webhooks pay for it

        try:
            target = url if place.service is None else _at(url, place, await self._resolve(*place.service))
            headers = {**_HEADERS, "Host": place.url.split("/")[2]}
            try:
                return await self._exchanged(target, place, context, headers, body)
            except (
                aiohttp.ServerDisconnectedError
            ):  # a kept connection that the webhook closed meanwhile; Go sends again, too
                return await self._exchanged(target, place, context, headers, body)
        except WebhookCallError as error:
            raise WebhookCallError(_said(url, str(error))) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise WebhookCallError(_said(url, connection_fault(error, place.host))) from error

    async def _exchanged(
        self, target: str, place: WebhookTarget, context: ssl.SSLContext, headers: dict[str, str], body: bytes
    ) -> WebhookResponse:
        response = await self._open().post(
            target,
            data=body,
            headers=headers,
            ssl=context,
            server_hostname=place.host or None,
            allow_redirects=False,
        )
        async with response:
            found = await _body(response, LIMITS.body_bytes + _MOST_PER_BYTE * len(body))
            return WebhookResponse(response.status, response.headers.get("Content-Type", ""), found)

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp  # noqa: PLC0415 - only those who have webhooks pay for it

        from navarch._base.connections import Connector  # noqa: PLC0415 - as above

        if self._session is None:
            unlimited = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(
                connector=Connector(), timeout=unlimited, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


async def _body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body as it is unpacked; raises WebhookCallError for one that is longer than the limit, without holding more of it."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise WebhookCallError(f"expected an answer of at most {limit} bytes, got more")
    return b"".join(pieces)


def _said(url: str, why: str) -> str:
    return f"failed to call webhook: Post {go_quoted(url)}: {why}"


def _at(url: str, place: WebhookTarget, address: ServiceEndpoint) -> str:
    """The URL with the address in the place of the service's name."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    said = place.url.split("/")[2]
    return url.replace(f"https://{said}", f"https://{host}:{address.port}", 1)


@lru_cache(maxsize=64)
def _trust(authority: str) -> ssl.SSLContext:
    if not authority:
        return client_ssl_context()
    try:
        return client_ssl_context(b64decode(authority).decode())
    except (ValueError, ssl.SSLError):
        problem = "unable to load root certificates: unable to parse bytes as PEM block"
        raise WebhookCallError(f"could not get REST client: {problem}") from None
