"""`HttpsFront`: serves an operator's webhooks over HTTPS, with certificates of its own or from files."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from navarch.client import Client
from navarch.errors import ConfigError
from navarch.observe.metrics import MetricSource
from navarch.operator.certificate import ServingCertificate
from navarch.operator.endpoints import Address
from navarch.operator.webhook_server import WebhookServer
from navarch.webhook.configurations import WebhookAddress
from navarch.webhook.router import WebhookRouter

CERT_MANAGER = "cert-manager.io/inject-ca-from"
"""The annotation by which cert-manager injects the CA of a Certificate."""
_IN_POD = ":9443"
_ON_LOOPBACK = "127.0.0.1:0"
_LINGER_SECONDS = 3.0


class CertificateSource(Protocol):
    """The certificate of a server, and who signed it: `SecretCertificates`, or `CertificateFiles`."""

    ssl_context: ssl.SSLContext

    @property
    def metrics(self) -> MetricSource | None:
        """Returns what is measured."""

    @property
    def ca_bundle(self) -> bytes:
        """Returns the CAs that clients have to trust."""

    def on_change(self, callback: Callable[[bytes], None]) -> None:
        """Calls `callback` with each new `ca_bundle`."""

    def published(self, bundle: bytes) -> None:
        """Reports that all clients have this bundle."""

    async def refresh(self) -> None:
        """See `TrustSource`."""

    async def start(self) -> None:
        """Returns once there is a certificate to serve."""

    async def run(self) -> None:
        """Keeps the certificate up to date until cancelled."""


class CertificateFiles:
    """A certificate in files that others renew; the CA does not change while the operator runs."""

    def __init__(self, certificate: Path, key: Path, authority: Path | None, client: Client) -> None:
        self._serving = ServingCertificate(certificate, key, client.clock)
        self._authority = authority
        self.metrics: MetricSource | None = None
        self.ssl_context = self._serving.context()

    @property
    def ca_bundle(self) -> bytes:
        """See `CertificateSource`."""
        return b"" if self._authority is None else self._authority.read_bytes()

    def on_change(self, callback: Callable[[bytes], None]) -> None:
        """See `CertificateSource`."""

    def published(self, bundle: bytes) -> None:
        """See `CertificateSource`."""

    async def refresh(self) -> None:
        """See `CertificateSource`. The file is read whenever it is asked for."""

    async def start(self) -> None:
        """See `CertificateSource`."""

    async def run(self) -> None:
        """See `CertificateSource`."""
        await self._serving.run()


class HttpsFront:
    """Serves webhooks over HTTPS, with a certificate from files."""

    def __init__(self, options: WebhookServer, operator: str, client: Client) -> None:
        self._options = options
        self._client = client
        self._operator = operator
        in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
        self._behind_service = bool(options.service) or (in_pod and not options.url)
        self.own_namespace = (options.namespace or client.options.namespace) if self._behind_service else ""
        self.annotations = {CERT_MANAGER: options.cert_manager} if options.cert_manager else {}
        self._address = Address.parse(options.listen or (_IN_POD if self._behind_service else _ON_LOOPBACK))
        if not self._behind_service and not options.url and not _is_loopback(client.host):
            raise ConfigError(
                f"expected to know how the API server at {client.host} reaches the webhooks of this process, which is in no "
                'pod; name their address: WebhookServer(listen=":9443", url="https://my-laptop.example.com:9443")'
            )
        self._certificate = self._source()

    def _source(self) -> CertificateSource:
        options = self._options
        if options.certificate is not None and options.key is not None:
            return CertificateFiles(options.certificate, options.key, options.authority, self._client)
        try:
            from navarch.webhook.certificates import SecretCertificates  # noqa: PLC0415 - an extra
        except ImportError:
            raise ConfigError(
                "expected the package cryptography, with which an operator issues the certificates of its webhooks; "
                "pip install 'navarch[webhook]', or give WebhookServer a certificate and its key"
            ) from None
        namespace = self.own_namespace or options.namespace or self._client.options.namespace
        client = self._client.using(manager=self._operator)
        return SecretCertificates(
            client, options.certificates, namespace=namespace, names=self._hosts(), clock=client.clock
        )

    def _hosts(self) -> list[str]:
        """Returns the names by which the API server knows the server."""
        if self._behind_service:
            service = f"{self._service}.{self.own_namespace}.svc"
            return [service, f"{service}.cluster.local"]
        return [urlsplit(self._options.url).hostname or ""] if self._options.url else ["127.0.0.1", "localhost"]

    @property
    def _service(self) -> str:
        return self._options.service or f"{self._operator}-webhook"

    @property
    def ca_bundle(self) -> bytes:
        """See `WebhookFront`."""
        return self._certificate.ca_bundle

    def on_change(self, callback: Callable[[bytes], None]) -> None:
        """See `WebhookFront`."""
        self._certificate.on_change(callback)

    def published(self, ca_bundle: bytes) -> None:
        """See `WebhookFront`."""
        self._certificate.published(ca_bundle)

    async def refresh(self) -> None:
        """See `WebhookFront`."""
        await self._certificate.refresh()

    def metrics(self) -> Iterator[MetricSource]:
        """See `WebhookFront`."""
        if self._certificate.metrics is not None:
            yield self._certificate.metrics

    @asynccontextmanager
    async def serving(self, router: WebhookRouter) -> AsyncIterator[WebhookAddress]:
        """See `WebhookFront`."""
        from navarch.webhook.server import WebhookListener  # noqa: PLC0415 - aiohttp's server takes memory

        await self._certificate.start()
        host, port = self._address
        async with WebhookListener(router, self._client.clock, self._certificate.ssl_context, host, port) as listener:
            try:
                yield self._reached_at(listener.port)
            finally:
                if self._behind_service:  # it may still lead here, until every proxy has heard that this pod ends
                    listener.drain()
                    await self._client.clock.liveness.sleep(_LINGER_SECONDS)

    def _reached_at(self, port: int) -> WebhookAddress:
        options = self._options
        if self._behind_service:
            return WebhookAddress(service=self._service, namespace=self.own_namespace, port=options.port or port)
        return WebhookAddress(url=options.url or f"https://127.0.0.1:{port}")

    def services(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """See `WebhookFront`."""
        yield "webhook certificates", self._certificate.run()


def _is_loopback(host: str) -> bool:
    return Address(host.rpartition(":")[0].strip("[]") or host, 0).is_loopback
