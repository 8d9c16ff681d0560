"""`WebhookServer`: where the webhooks of an operator listen, and how the API server reaches them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from navarch.client import Client
from navarch.errors import ConfigError
from navarch.observe.metrics import MetricSource
from navarch.operator.endpoints import Address
from navarch.webhook.certificate_options import Certificates

if TYPE_CHECKING:
    from navarch.webhook.configurations import WebhookAddress
    from navarch.webhook.router import WebhookRouter


class WebhookFront(Protocol):
    """How the webhooks of one running operator are served."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """Returns the annotations of the webhook configurations."""
        ...

    @property
    def own_namespace(self) -> str:
        """Returns the namespace of the operator's pods; empty outside of a cluster."""
        ...

    def serving(self, router: WebhookRouter) -> AbstractAsyncContextManager[WebhookAddress]:
        """Serves the router inside the block; yields the address that the API server calls."""
        ...

    @property
    def ca_bundle(self) -> bytes:
        """Returns the certificates that the API server has to trust; empty for those of its machine."""
        ...

    def on_change(self, callback: Callable[[bytes], None]) -> None:
        """Calls `callback` with each new `ca_bundle`."""
        ...

    def published(self, ca_bundle: bytes) -> None:
        """Reports that all configurations and CRDs have this bundle; `b""` if one of them lost it."""
        ...

    async def refresh(self) -> None:
        """Reads the bundle that all replicas share; `ca_bundle` is then not older than it. Raises `NavarchError`."""
        ...

    def metrics(self) -> Iterator[MetricSource]:
        """Yields what it measures."""
        ...

    def services(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Yields what has to run beside it."""
        ...


class WebhookServing(Protocol):
    """Another way to serve webhooks than over HTTPS: a cluster in the test's own process."""

    def front(self, operator: str, client: Client) -> WebhookFront:
        """Returns how the webhooks of that operator are served. Raises `ConfigError`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookServer:
    """Where the webhooks of an operator listen, and how the API server reaches them.

    In a pod they listen at `:9443`, behind the Service `service` (by default the operator's name and `-webhook`) in the
    pod's namespace, at its port `port` (0 for the port that they listen at). Elsewhere, such as on a laptop, `url` is their address as the API server sees it; an API server on this
    machine needs none. The operator issues and renews its certificate itself, as `certificates` say. Instead, `certificate` and `key` are PEM files,
    which are read again when they change; `authority` is the file with the CA that signed them. `cert_manager` is the
    Certificate (`namespace/name`) from which cert-manager injects the CA.
    """

    listen: str = ""
    service: str = ""
    namespace: str = ""
    port: int = 443
    url: str = ""
    certificates: Certificates = field(default_factory=Certificates)
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None
    cert_manager: str = ""

    def __post_init__(self) -> None:
        if self.listen:
            Address.parse(self.listen)
        if self.url and self.service:
            raise ConfigError("expected a Service or a url for the webhooks, got both; give one")
        if self.url and urlsplit(self.url).scheme != "https":
            raise ConfigError(f"expected an https URL for the webhooks, got {self.url!r}; Kubernetes calls no other")
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("expected a certificate and its key, got only one of them; give both or neither")
        if self.cert_manager and self.certificate is None:
            raise ConfigError(
                "expected the files of cert-manager's certificate beside cert_manager, got none; mount its Secret, and "
                "give certificate= and key="
            )
        if self.cert_manager.count("/") != (1 if self.cert_manager else 0):
            raise ConfigError(f"expected cert_manager as namespace/name, got {self.cert_manager!r}")
