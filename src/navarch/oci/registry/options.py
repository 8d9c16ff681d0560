"""The options of the registry client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from navarch._base.backoff import Backoff
from navarch._base.clock import Clock, SystemClock
from navarch.oci.registry.credentials import CredentialSource, DockerCredentials


class RegistryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a client talks to registries."""

    plain_http: bool = False
    """HTTP without TLS, for every registry of the client."""
    ca_file: Path | None = None
    """The authorities to trust, as PEM; by default those of this machine."""
    credentials: CredentialSource = msgspec.field(default_factory=DockerCredentials.of_user)
    proxy: Callable[[str], str] = lambda _url: ""
    """Returns the proxy for an address, empty for none."""
    idle_seconds: float = 60.0
    """The longest time without a byte in either direction."""
    attempts: int = 5
    """How often a request is sent that was interrupted or met an overloaded registry."""
    backoff: Backoff = Backoff(initial=0.25, maximum=10.0)
    clock: Clock = msgspec.field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        if self.idle_seconds <= 0 or self.attempts < 1:
            raise ValueError(
                f"expected idle_seconds > 0 and attempts >= 1, got {self.idle_seconds} and {self.attempts}"
            )
