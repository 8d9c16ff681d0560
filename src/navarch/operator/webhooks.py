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
from navarch.controller.election import Election
from navarch.errors import DecodeError, NotFound
from navarch.observe.metrics import Metrics, WebhookMetrics
from navarch.operator.conversions import conversions_of
from navarch.operator.webhook_front import CERT_MANAGER, HttpsFront
from navarch.operator.webhook_server import WebhookFront, WebhookServer
from navarch.webhook.admission import AdmissionHandler
from navarch.webhook.configurations import WebhookAddress, WebhookSet
from navarch.webhook.conversion import Version
from navarch.webhook.crd_conversion import (
    CONVERSION_PATH,
    ConversionPublication,
    conversion_section,
    verify_conversions,
)
from navarch.webhook.publication import Changes, Publication, bring_up_to_date
from navarch.webhook.registration import (
    ConfigurationPublication,
    publications_of,
    remove_webhooks,
    verify_webhooks,
)
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

    def __init__(
        self,
        operator: DeclaredOperator,
        client: Client,
        cache: Cache,
        metrics: Metrics,
        election: Election | None = None,
    ) -> None:
        self._operator = operator
        self._election = election
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
        self._publications: list[ConfigurationPublication | ConversionPublication] = []
        self._loop = RepairLoop(self._client, "keep the webhooks registered")
        self._front.on_change(self._loop.trigger)
        for source in self._front.metrics():
            metrics.add(source)
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
                self._publications = self._published_objects(address)
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

    def _published_objects(self, address: WebhookAddress) -> list[ConfigurationPublication | ConversionPublication]:
        if self._operator.webhooks != "install":
            return []
        return [
            *publications_of(self._client, self._cache, self._set(address)),
            *(
                ConversionPublication(self._client, self._cache, name, address, annotations=self._front.annotations)
                for name in self._converted_crds()
            ),
        ]

    def _converted_crds(self) -> list[str]:
        return list(dict.fromkeys(version.__kind__.resource for version in self.converted))

    async def prepare(self) -> None:
        """Applies or verifies the configurations, as the operator's policy says; they are in place when it returns.

        While another process leads, which may be another release, what that one has declared stays until this one leads.
        """
        if self._operator.webhooks == "install":
            leading = self._election is None or not await self._election.is_led()
            await self._publish(lambda *_: None, leading=leading)
        elif self._operator.webhooks == "verify":
            assert self._address is not None
            await verify_webhooks(self._client, self._set(self._address))
            await verify_conversions(self._client, self._converted_crds(), self._address)

    async def _publish(self, changes: Changes, *, leading: bool) -> None:
        bundle = self._front.ca_bundle
        publish = partial(bring_up_to_date, trust=self._front, leading=leading, changes=changes)
        in_place = [await publish(each) for each in self._publications]
        if all(in_place) and self._front.ca_bundle == bundle:  # if it has changed, it is published next
            self._front.published(bundle)

    def services(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Yields what runs beside the controllers, on every replica."""
        yield from self._front.services()
        if self._operator.webhooks == "install":
            yield "registration of the webhooks", self._keep_registered()
            if self._election is not None:
                yield "declaration of the webhooks", self._election.lead(self._lead)

    async def _keep_registered(self) -> None:
        """Repairs the configurations and CRDs until cancelled."""
        for each in self._publications:
            each.collection.subscribe(self._loop.trigger)
        try:
            await self._loop.run(self._repair)
        finally:
            for each in self._publications:
                each.collection.unsubscribe(self._loop.trigger)

    async def _repair(self) -> None:
        await self._publish(self._changes, leading=self._election is None or self._election.leading)

    async def _lead(self) -> None:
        """Declares the webhooks of this release, once it leads."""
        self._loop.trigger()

    def _changes(self, target: Publication, more_than_its_bundle: bool) -> None:
        """Takes back that the CA is published: an object is not as it was declared."""
        self._front.published(b"")
        if more_than_its_bundle:
            self._loop.repaired(target.name)


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
