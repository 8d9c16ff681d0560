"""`WebhookListener`: serves an operator's webhooks over HTTPS.

Only an operator with webhooks imports this module: aiohttp's server takes memory.
"""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from typing import Self

from aiohttp import web
from aiohttp.web_request import BaseRequest

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.errors import ConfigError
from navarch.observe.logs import logger
from navarch.webhook.router import WebhookAnswer, WebhookRouter, failure_answer, too_large
from navarch.webhook.verdict import ReviewError

_BODY_SECONDS = 10.0
_HANDSHAKE_SECONDS = 10.0
_IDLE_SECONDS = 120.0
_SHUTDOWN_SECONDS = 10.0
_MOST_CONNECTIONS_WAITING = 128

_log = logger("navarch.webhook")


class WebhookListener:
    """Serves the webhooks of a router at one address while its `async with` block lasts.

    New connections get the certificate that `context` has then. At the end answers under way are completed.
    """

    def __init__(self, router: WebhookRouter, clock: Clock, context: ssl.SSLContext, host: str, port: int) -> None:
        self._router = router
        self._clock = clock
        self._context = context
        self._host = host
        self._port = port
        self._server = web.Server(self._respond, keepalive_timeout=_IDLE_SECONDS, access_log=None, max_line_size=8190)
        self._listening: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Returns the port that it listens at."""
        assert self._listening is not None
        return int(self._listening.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        try:
            self._listening = await loop.create_server(
                self._server,
                self._host or None,
                self._port,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
                backlog=_MOST_CONNECTIONS_WAITING,
            )
        except OSError as error:
            raise ConfigError(
                f"expected to listen at {self._host}:{self._port} for webhooks, got: {error.strerror or error}; stop "
                "whoever has that address, or choose another with WebhookServer(listen=...)"
            ) from error
        _log.info("listening", purpose="webhooks", address=f"{self._host}:{self.port}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._listening is not None
        self._listening.close()
        await self._server.shutdown(_SHUTDOWN_SECONDS)

    async def _respond(self, request: BaseRequest) -> web.Response:
        answer = await self._answered(request)
        response = web.Response(status=answer.status, body=answer.body, content_type="application/json")
        if answer.status == 413:
            response.force_close()
        return response

    async def _answered(self, request: BaseRequest) -> WebhookAnswer:
        if request.method != "POST":
            return failure_answer(ReviewError(405, f"expected POST, got {request.method}"))
        largest = self._router.largest_body(request.path)
        if not largest:
            return await self._router.answer(request.path, b"")
        try:
            body = await within(self._clock.liveness, _BODY_SECONDS, _body(request, largest))
        except TimeoutError:
            return failure_answer(ReviewError(408, f"expected the whole review within {_BODY_SECONDS:g} s, got a part"))
        if body is None:
            return failure_answer(too_large(request.path, largest))
        return await self._router.answer(request.path, body)


async def _body(request: BaseRequest, largest: int) -> bytes | None:
    """Returns the body; None for one that is too large, without holding more of it."""
    if (request.content_length or 0) > largest:
        return None
    pieces, size = [], 0
    async for piece in request.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > largest:
            return None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
