"""`Certificates`: how an operator issues the certificates of its webhooks."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from navarch.errors import ConfigError

__all__ = ["Certificates"]


class Certificates(msgspec.Struct, frozen=True, kw_only=True):
    """The certificates that an operator issues for its webhooks, and the Secret that holds them for all replicas.

    Both are renewed after two thirds of their lifetime.
    """

    secret: str = ""
    """The name of the Secret; by default the operator's name and `-webhook-tls`."""
    names: tuple[str, ...] = ()
    """DNS names and IP addresses of the webhook server, besides those of its Service or URL."""
    lifetime: timedelta = timedelta(days=90)
    ca_lifetime: timedelta = timedelta(days=365)
    propagation: timedelta = timedelta(minutes=1)
    """How long the API servers may take to use a new CA bundle, after it was written."""

    def __post_init__(self) -> None:
        if not timedelta() < self.lifetime <= self.ca_lifetime:
            raise ConfigError(
                f"expected 0 < lifetime <= ca_lifetime of the webhook certificates, got {self.lifetime} and {self.ca_lifetime}"
            )
        if not timedelta() <= self.propagation <= self.ca_lifetime / 6:
            raise ConfigError(
                f"expected propagation of at most a sixth of ca_lifetime, got {self.propagation} and {self.ca_lifetime}"
            )
