"""The webhooks of a running operator: their handlers, their registration, and the CA that is published for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from navarch._base.threads import ThreadPool
from navarch.cache import Cache, as_cached
from navarch.client import Client
from navarch.client.target import Readable
from navarch.errors import DecodeError, NotFound
from navarch.observe.metrics import Metrics, WebhookMetrics
from navarch.operator.conversions import conversions_of
from navarch.operator.webhook_front import CERT_MANAGER, HttpsFront
from navarch.operator.webhook_server import WebhookFront, WebhookServer
from navarch.webhook.admission import AdmissionHandler
from navarch.webhook.configurations import WebhookAddress, WebhookSet
from navarch.webhook.conversion import Version
from navarch.webhook.crd_conversion import CONVERSION_PATH, ConversionRegistration, conversion_section
from navarch.webhook.registration import Registration, remove_webhooks, verify_webhooks
from navarch.webhook.repair_loop import RepairLoop
from navarch.webhook.review import CachedKinds
from navarch.webhook.router import Route, WebhookAnswer, WebhookRouter, failure_answer
from navarch.webhook.verdict import ReviewError

__all__ = ["ServedWebhooks", "configurations_of", "remove_webhooks", "webhook_set"]

if TYPE_CHECKING:
    from navarch.operator.declarations import DeclaredOperator

LARGEST_REVIEW = 8 * 1024 * 1024
"""A request to Kubernetes has at most 3 MiB; a review holds the object twice, and escapes some of it."""
LARGEST_CONVERSION = 512 * 1024 * 1024
"""A conversion review may hold all objects of a kind."""
_SMALL_CONVERSION = 64 * 1024
"""Bytes of a review that is converted at once: a thread would take longer than a few objects do."""
_THREADS = 16


class ServedWebhooks:
    """The webhooks of one running operator."""

    def __init__(self, operator: DeclaredOperator, client: Client, cache: Cache, metrics: Metrics) -> None:
        self._operator = operator
        self._client = client.using(manager=operator.name)
        self._cache = cache
        server = operator.webhook_server
        self._front: WebhookFront = (
            HttpsFront(server, operator.name, client)
            if isinstance(server, WebhookServer)
            else server.front(operator.name, client)
        )
        self._threads = ThreadPool(f"{operator.name}-webhooks", _THREADS)
        self._conversions = conversions_of(operator)
        self._router = WebhookRouter(dict(self._routes(metrics)), client.clock)
        self._registration: Registration | None = None
        self._publication = RepairLoop(self._client, "publish the CA of the webhooks")
        self._front.on_change(self._publication.trigger)
        for source in self._front.metrics():
            metrics.add(source)
        self._conversion: ConversionRegistration | None = None
        self._address: WebhookAddress | None = None

    @property
    def converted(self) -> list[Version]:
        """The classes of all versions of the kinds that the operator converts."""
        return [version for graph in self._conversions.graphs.values() for version in graph.versions]

    def conversion_sections(self) -> dict[str, dict[str, Any]]:
        """Returns the `spec.conversion` of CRDs by their names; none if others write it."""
        if self._operator.webhooks != "install":
            return {}
        assert self._address is not None
        section = conversion_section(self._address, self._front.ca_bundle)
        return {version.__kind__.resource: section for version in self.converted}

    def _routes(self, metrics: Metrics) -> Iterator[tuple[str, Route]]:
        loop = asyncio.get_running_loop()
        for webhook in self._operator.admission_webhooks:
            measured = WebhookMetrics(webhook.path)
            metrics.add(measured)
            reads = {
                each.kind: self._cache.collection(each, self._operator.namespaces)
                for each in map(as_cached, webhook.options.reads)
            }
            handler = AdmissionHandler(
                webhook,
                self._client.clock,
                self._threads,
                lookup=CachedKinds(reads, loop),
                fetch=self._fetch,
                ready=partial(self._cache.wait_synced, *reads.values()),
                metrics=measured,
            )
            yield webhook.path, Route(handler.answer, LARGEST_REVIEW, measured)
        if self._conversions:
            measured = WebhookMetrics(CONVERSION_PATH)
            metrics.add(measured)
            yield CONVERSION_PATH, Route(self._convert, LARGEST_CONVERSION, measured)

    async def _convert(self, body: bytes) -> WebhookAnswer:
        answer = partial(self._conversions.answer, body)
        try:
            if len(body) <= _SMALL_CONVERSION:
                return WebhookAnswer(200, answer())
            return WebhookAnswer(200, await asyncio.wrap_future(self._threads.submit(answer)))
        except DecodeError as error:
            return failure_answer(ReviewError(400, str(error)))

    async def _fetch(self, what: Readable[Any], name: str, namespace: str) -> Any:
        """See `Review.fetch`."""
        try:
            return await self._client.get(what, name, namespace=namespace or None)
        except NotFound as error:
            if error.reason != "NotFound":  # the kind, and not the object, is missing
                raise
            return None

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serves the webhooks inside the block."""
        try:
            async with self._front.serving(self._router) as address:
                self._address = address
                self._registration = Registration(self._client, self._cache, self._set(address), self._lost)
                if self._conversions and self._operator.webhooks != "ignore":
                    crds = list(dict.fromkeys(version.__kind__.resource for version in self.converted))
                    self._conversion = ConversionRegistration(
                        self._client, self._cache, crds, address, self._lost, annotations=self._front.annotations
                    )
                yield
        finally:
            self._threads.close()

    def _set(self, address: WebhookAddress) -> WebhookSet:
        return webhook_set(
            self._operator,
            address,
            own_namespace=self._front.own_namespace,
            annotations=self._front.annotations,
        )

    async def publish(self) -> None:
        """Applies or verifies the configurations, as the operator's policy says."""
        assert self._registration is not None
        if self._operator.webhooks == "install":
            bundle = self._front.ca_bundle
            await self._registration.publish(bundle)
            if self._conversion is not None:
                await self._conversion.publish(bundle)
            self._front.published(bundle)
        elif self._operator.webhooks == "verify":
            await verify_webhooks(self._client, self._registration.wanted)
            if self._conversion is not None:
                await self._conversion.verify()

    def services(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Yields what runs beside the controllers, on every replica."""
        yield from self._front.services()
        if self._operator.webhooks == "install":
            assert self._registration is not None
            yield "webhook configurations", self._registration.run()
            if self._conversion is not None:
                yield "conversion of CRDs", self._conversion.run()
            yield "CA of the webhooks", self._publication.run(self.publish)

    def _lost(self) -> None:
        """Takes back that the CA is published: a configuration, or a CRD, was changed by somebody else."""
        self._front.published(b"")
        self._publication.trigger()


def configurations_of(
    operator: DeclaredOperator,
    *,
    namespace: str = "",
    service: str = "",
    port: int = 443,
    url: str = "",
    ca_bundle: bytes = b"",
    cert_manager: str = "",
) -> list[dict[str, Any]]:
    """Returns the manifests of the operator's webhook configurations.

    `namespace` is the operator's own, with the Service `service` (by default the operator's name and `-webhook`); `url` takes
    the place of the Service. `cert_manager` is the Certificate (`namespace/name`) whose CA cert-manager injects.
    """
    address = WebhookAddress(service=service or f"{operator.name}-webhook", namespace=namespace, port=port, url=url)
    annotations = {CERT_MANAGER: cert_manager} if cert_manager else {}
    wanted = webhook_set(operator, address, own_namespace=namespace, annotations=annotations)
    return wanted.configurations(ca_bundle)


def webhook_set(
    operator: DeclaredOperator,
    address: WebhookAddress,
    *,
    own_namespace: str = "",
    annotations: Mapping[str, str] | None = None,
) -> WebhookSet:
    """Returns the operator's webhooks with the address of their server."""
    return WebhookSet(
        operator=operator.name,
        webhooks=tuple(operator.admission_webhooks),
        namespaces=operator.namespaces,
        address=address,
        own_namespace=own_namespace,
        annotations=annotations or {},
    )
