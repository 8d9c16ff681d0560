"""An operator publishes the CA of its webhooks, reports where it is, and measures its certificates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from navarch import Operator, Review
from navarch._base.tasks import cancel_and_wait
from navarch.cache import Cache
from navarch.client import Client
from navarch.k8s.core.v1 import ConfigMap, Secret
from navarch.observe.metrics import Metrics, MetricSource
from navarch.operator.webhook_server import WebhookServer
from navarch.operator.webhooks import ServedWebhooks
from navarch.testing import Cluster
from navarch.webhook.configurations import VALIDATING, WebhookAddress
from navarch.webhook.router import WebhookRouter

BUNDLE = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


class RecordedFront:
    """Serves nothing, and records what is reported."""

    annotations: Mapping[str, str] = {}
    own_namespace = ""
    ca_bundle = BUNDLE

    def __init__(self) -> None:
        self.reported: list[bytes] = []

    def front(self, operator: str, client: Client) -> RecordedFront:
        return self

    @asynccontextmanager
    async def serving(self, router: WebhookRouter) -> AsyncIterator[WebhookAddress]:
        yield WebhookAddress(url="https://127.0.0.1:1")

    def on_change(self, callback: Callable[[bytes], None]) -> None: ...

    def published(self, ca_bundle: bytes) -> None:
        self.reported.append(ca_bundle)

    async def refresh(self) -> None: ...

    def metrics(self) -> Iterator[MetricSource]:
        yield from ()

    def services(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        yield from ()


def guard() -> Operator:
    made = Operator("guard")

    @made.validate(ConfigMap, labels="guarded")
    async def check(config: ConfigMap, review: Review[ConfigMap]) -> None: ...

    return made


@asynccontextmanager
async def running(cluster: Cluster, operator: Operator, metrics: Metrics) -> AsyncIterator[None]:
    """The operator's webhooks, published and looked after until the block ends."""
    client = cluster.client
    cache = Cache(client, client.clock, client.rng)
    served = ServedWebhooks(operator, client, cache, metrics)
    async with served.serving(), asyncio.TaskGroup() as group:
        await served.prepare()
        tasks = [group.create_task(cache.run()), *(group.create_task(each) for _, each in served.services())]
        try:
            yield
        finally:
            await cancel_and_wait(*tasks)


async def test_lost_bundle_is_reported_until_it_is_published_again(cluster: Cluster) -> None:
    """A CA that waits to sign waits anew: until then some API server may not trust it."""
    operator, front = guard(), RecordedFront()
    operator.webhook_server = front
    async with running(cluster, operator, Metrics()):
        assert front.reported == [BUNDLE]
        await cluster.until(VALIDATING, "guard", bool)
        await cluster.delete(VALIDATING, "guard")

        async def reported() -> list[bytes]:
            return list(front.reported)

        await cluster.eventually(reported, lambda found: found == [BUNDLE, b"", BUNDLE])
        await cluster.get(VALIDATING, "guard")


async def test_expiry_of_the_certificates_is_a_metric_of_the_operator(cluster: Cluster) -> None:
    """The operator issues its certificate itself, and its endpoint says when that and its CA expire."""
    operator, metrics = guard(), Metrics()
    operator.webhook_server = WebhookServer(url="https://guard.example.com:9443", listen="127.0.0.1:0")
    async with running(cluster, operator, metrics):
        await cluster.get(Secret, "guard-webhook-tls")
        text, _ = metrics.exposition()
        for certificate in ("ca", "serving"):
            name = "navarch_webhook_certificate_expiry_timestamp_seconds"
            assert f'{name}{{certificate="{certificate}",secret="guard-webhook-tls"}}' in text.decode()
