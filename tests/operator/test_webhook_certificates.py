"""An operator publishes the CA of its webhooks, reports where it is, and measures its certificates."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from cryptography import x509

from navarch import Operator, Review
from navarch._base.tasks import cancel_and_wait
from navarch.cache import Cache
from navarch.certificates import parse_certificates
from navarch.client import Client, MergePatch, Request, Response, Transport
from navarch.client.transport import WrappedTransport
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
        if self.reported[-1:] != [ca_bundle]:
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
async def running(
    cluster: Cluster, operator: Operator, metrics: Metrics, client: Client | None = None
) -> AsyncIterator[None]:
    """The operator's webhooks, published and looked after until the block ends."""
    client = client or cluster.client
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


class LateSecrets(WrappedTransport):
    """Lists and watches of Secrets are answered only when the gate opens; a single Secret is read at once."""

    def __init__(self, transport: Transport, gate: asyncio.Event) -> None:
        super().__init__(transport)
        self._gate = gate

    async def send(self, request: Request) -> Response:
        if request.path.endswith("/secrets") and request.method == "GET":
            await self._gate.wait()
        return await self._transport.send(request)


async def recorded_bundles(cluster: Cluster, into: list[set[x509.Certificate]]) -> None:
    """Records the trusted CAs of every version of the webhook configuration that clients can see."""

    def record(found: Mapping[str, Any]) -> None:
        (entry,) = found["webhooks"]
        into.append({*parse_certificates(b64decode(entry["clientConfig"]["caBundle"]))})

    first = await cluster.get(VALIDATING, "guard")
    record(first)
    version = first.metadata["resourceVersion"]
    async with cluster.client.watch(VALIDATING, resource_version=version) as changes:
        async for change in changes:
            record(change.object)


async def test_replica_that_sees_the_secret_late_undoes_no_ca(cluster: Cluster) -> None:
    """A new CA is published once, stays, and signs a minute later, although the other replica's watch shows nothing yet."""

    def replica() -> Operator:
        made = guard()
        made.webhook_server = WebhookServer(url="https://guard.example.com:9443", listen="127.0.0.1:0")
        return made

    gate, seen = asyncio.Event(), list[set[x509.Certificate]]()
    late = cluster.client.through(lambda transport: LateSecrets(transport, gate))
    async with (
        running(cluster, replica(), Metrics()),
        running(cluster, replica(), Metrics(), client=late),
        asyncio.TaskGroup() as group,
    ):
        recording = group.create_task(recorded_bundles(cluster, seen))

        async def trusted() -> int:
            return len(seen[-1]) if seen else 0

        await cluster.eventually(trusted, lambda number: number == 1, what="a configuration with the first CA")
        await cluster.client.patch(Secret, "guard-webhook-tls", MergePatch({"data": {"ca.key": None}}))
        await cluster.eventually(trusted, lambda number: number == 2, what="a configuration with the next CA")
        await cluster.pass_time(50)
        signing = (await cluster.get(Secret, "guard-webhook-tls")).data or {}
        assert "ca.key" not in signing, "expected that the next CA waits for a minute"
        await cluster.pass_time(20)
        signing = (await cluster.get(Secret, "guard-webhook-tls")).data or {}
        assert "ca.key" in signing, "expected that the next CA signs after a minute: nobody took it back"
        gate.set()
        await cluster.pass_time(60)
        recording.cancel()
    assert [len(each) for each in seen] == [1, 2], "expected that every CA is added once, and none is taken back"
