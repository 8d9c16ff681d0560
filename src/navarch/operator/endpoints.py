"""`Endpoints`: where an operator serves its health and its metrics."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from navarch.errors import ConfigError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

Check = Callable[[], str | None]
"""Called for each probe: returns None while the check passes, else the cause of its failure."""

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:]*):(?P<port>\d{1,5})")


class Address(NamedTuple):
    """A host and a port to listen at; no host means every address of the machine, port 0 any free one."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> Address:
        """Parses "127.0.0.1:8080", "[::1]:8080", "localhost:8080" or ":8080"; raises `ConfigError`."""
        found = _ADDRESS.fullmatch(text)
        if found is None or int(found["port"]) > 65535:
            raise ConfigError(f'expected an address to listen at such as "127.0.0.1:8080" or ":8080", got {text!r}')
        return Address(found["host"].strip("[]"), int(found["port"]))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The addresses of health and metrics; None leaves an endpoint out.

    By default both listen on loopback. A kubelet probes the pod's own address: use `health=":8081"` in a pod. Metrics may leave
    the machine only with `token_review`: each scrape then needs a token whose owner may `get` the non-resource URL `/metrics`.
    `certificate` and `key`, PEM files, make the metrics HTTPS; they are read again when they change. `self_signed` makes them
    HTTPS with a certificate that the operator issues for itself and that nobody can check. `registry` adds your own
    metrics to the runtime's: prometheus_client's `REGISTRY`, or another one. Raises `ConfigError` for an invalid address, and
    for options that contradict each other.
    """

    health: str | None = "127.0.0.1:8081"
    metrics: str | None = "127.0.0.1:8080"
    certificate: Path | None = None
    key: Path | None = None
    self_signed: bool = False
    token_review: bool = False
    registry: CollectorRegistry | None = None

    def __post_init__(self) -> None:
        health, metrics = self.health_address, self.metrics_address
        if metrics and not metrics.is_loopback and not self.token_review:
            raise ConfigError(
                f"expected a loopback address for metrics that anybody may read, got {self.metrics!r}; set "
                f'token_review=True, or metrics="127.0.0.1:{metrics.port}"'
            )
        if health and health == metrics and health.port:
            raise ConfigError(f"expected two addresses for health and metrics, got {self.health!r} for both")
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("expected a certificate and its key, got only one of them; give both or neither")
        if self.self_signed and self.certificate is not None:
            raise ConfigError("expected a certificate in files or a self-signed one, got both; give one of them")

    @property
    def health_address(self) -> Address | None:
        """The address of `/healthz` and `/readyz`."""
        return None if self.health is None else Address.parse(self.health)

    @property
    def metrics_address(self) -> Address | None:
        """The address of `/metrics`."""
        return None if self.metrics is None else Address.parse(self.metrics)
