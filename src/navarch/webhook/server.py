"""`WebhookListener`: serves an operator's webhooks over HTTPS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from navarch._base.clock import Clock
from navarch._base.tasks import TaskSet, within
from navarch.errors import ConfigError
from navarch.observe.logs import logger
from navarch.webhook.http_connection import ReviewConnection
from navarch.webhook.router import WebhookAnswer, WebhookRouter

_HANDSHAKE_SECONDS = 10.0
_SHUTDOWN_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_MOST_CONNECTIONS = 1024
_MOST_CONNECTIONS_WAITING = 128

_log = logger("navarch.webhook")


class WebhookListener:
    """Serves the webhooks of a router at one address while its `async with` block lasts.

    New connections get the certificate that `context` has then. At the end answers under way are completed.
    """

    def __init__(self, router: WebhookRouter, clock: Clock, context: ssl.SSLContext, host: str, port: int) -> None:
        self._router = router
        self._clock = clock.liveness
        self._context = context
        self._host = host
        self._port = port
        self._listening: asyncio.Server | None = None
        self._connections: dict[ReviewConnection, None] = {}
        self._answers = TaskSet()
        self._watch = TaskSet()
        self.is_closing = False

    @property
    def port(self) -> int:
        """Returns the port that it listens at."""
        assert self._listening is not None
        return int(self._listening.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        try:
            self._listening = await loop.create_server(
                lambda: ReviewConnection(self, self._clock.monotonic),
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
        self._watch.start(self._expire_late(), "time limits of webhook connections")
        _log.info("listening", purpose="webhooks", address=f"{self._host}:{self.port}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._listening is not None
        self._listening.close()
        self.is_closing = True
        for connection in list(self._connections):
            connection.finish()
        with suppress(TimeoutError):
            await within(self._clock, _SHUTDOWN_SECONDS, self._answers.wait())
        await self._answers.stop()
        await self._watch.stop()
        for connection in list(self._connections):
            connection.abort()

    def drain(self) -> None:
        """Ends each connection after its next answer, so that the client connects anew, to another replica."""
        self.is_closing = True

    async def _expire_late(self) -> None:
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            now = self._clock.monotonic()
            for connection in [each for each in self._connections if each.due <= now]:
                connection.expire()

    def opened(self, connection: ReviewConnection) -> None:
        """See `ReviewSource`. If there are too many, the connection that has been idle for longest is closed."""
        self._connections[connection] = None
        if len(self._connections) > _MOST_CONNECTIONS:
            idle = (each for each in self._connections if each.is_idle)
            min(idle, key=lambda each: each.due, default=connection).abort()

    def lost(self, connection: ReviewConnection) -> None:
        """See `ReviewSource`."""
        self._connections.pop(connection, None)

    def largest_body(self, path: str) -> int:
        """See `ReviewSource`."""
        return self._router.largest_body(path)

    def answer(self, path: str, body: bytes) -> Awaitable[WebhookAnswer]:
        """See `ReviewSource`."""
        return self._router.answer(path, body)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """See `ReviewSource`."""
        self._answers.start(work, "webhook request")
