"""`LocalWebhookServer`: an operator's webhooks, called by a cluster in the same process, without sockets and certificates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from navarch.client import Client
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.server.wire.webhook_client import LocalWebhook, WebhookResponse
from navarch.observe.metrics import MetricSource
from navarch.operator.webhook_server import WebhookFront
from navarch.webhook.configurations import WebhookAddress
from navarch.webhook.router import WebhookRouter


class LocalWebhookServer:
    """Serves the webhooks of operators to the server of an embedded cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def front(self, operator: str, client: Client) -> WebhookFront:
        """See `WebhookServing`."""
        return _LocalFront(
            self._cluster.local_webhooks,
            WebhookAddress(service=f"{operator}-webhook", namespace=client.options.namespace),
        )


class _Replicas:
    """Answers for a Service that does not exist: of several replicas the one that began last."""

    def __init__(self) -> None:
        self.routers: list[WebhookRouter] = []

    async def __call__(self, path: str, body: bytes) -> WebhookResponse:
        status, answer = await self.routers[-1].answer(path, body)
        return WebhookResponse(status, "application/json", answer)


class _LocalFront:
    """The front of one replica."""

    annotations: Mapping[str, str] = {}
    own_namespace = ""
    ca_bundle = b""

    def __init__(self, webhooks: dict[str, LocalWebhook], address: WebhookAddress) -> None:
        self._webhooks = webhooks
        self._address = address

    @asynccontextmanager
    async def serving(self, router: WebhookRouter) -> AsyncIterator[WebhookAddress]:
        """See `WebhookFront`."""
        host = f"{self._address.service}.{self._address.namespace}.svc:{self._address.port}"
        replicas = self._webhooks.setdefault(host, _Replicas())
        assert isinstance(replicas, _Replicas)
        replicas.routers.append(router)
        try:
            yield self._address
        finally:
            replicas.routers.remove(router)
            if not replicas.routers:
                del self._webhooks[host]

    def on_change(self, callback: Callable[[bytes], None]) -> None:
        """See `WebhookFront`."""

    def published(self, ca_bundle: bytes) -> None:
        """See `WebhookFront`."""

    async def refresh(self) -> None:
        """See `WebhookFront`."""

    def metrics(self) -> Iterator[MetricSource]:
        """See `WebhookFront`."""
        yield from ()

    def services(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """See `WebhookFront`."""
        yield from ()
