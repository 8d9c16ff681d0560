"""Options of the client: endpoints, TLS, timeouts, and the login that clients share."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from navarch._base.backoff import Backoff
from navarch._base.trust import trusting
from navarch.errors import ConfigError


class EtcdSession:
    """The login of a user. Clients of one cluster and user that share it log in once.

    For one event loop. `is_open` is true if authentication is disabled, as far as known.
    """

    def __init__(self) -> None:
        self.token = ""
        self.is_open = False
        self.changing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<EtcdSession: {'known' if self.token else 'not known'}>"


class EtcdTls(msgspec.Struct, frozen=True, kw_only=True):
    """Files for TLS. `server_name` is the name in etcd's certificate, if it differs from the address.

    Over HTTP, etcd takes no user name from a certificate: users have passwords.
    """

    ca_file: Path
    certificate_file: Path | None = None
    key_file: Path | None = None
    server_name: str = ""

    def context(self) -> ssl.SSLContext:
        """Reads the files. Raises ConfigError."""
        try:
            context = trusting(file=self.ca_file)
            if self.certificate_file:
                context.load_cert_chain(self.certificate_file, self.key_file)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(str(file) for file in (self.ca_file, self.certificate_file, self.key_file) if file)
            raise ConfigError(f"expected certificates and a key in PEM form in {files}: {error}") from error
        return context


class EtcdOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The client URLs of the members, and the timeouts.

    Each attempt has `timeout` seconds. A request that was not sent, or is repeatable, is retried at the next endpoint for
    `patience` seconds in all. A response, or a line of a stream, above `max_answer_bytes` is an error; 0 means no limit:
    set it where others choose what runs at the endpoints.
    """

    endpoints: tuple[str, ...]
    user: str = ""
    password: str = ""
    tls: EtcdTls | None = None
    timeout: float = 5.0
    connect_timeout: float = 2.0
    patience: float = 10.0
    backoff: Backoff = Backoff(initial=0.05, maximum=1.0)
    max_answer_bytes: int = 0

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ConfigError("expected at least one endpoint such as http://127.0.0.1:2379, got none")
        for endpoint in self.endpoints:
            parts = urlsplit(endpoint)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
                shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
                raise ConfigError(f"expected an endpoint such as http://127.0.0.1:2379 without a user, got {shown}")

    def __repr__(self) -> str:
        return f"EtcdOptions(endpoints={self.endpoints!r}, user={self.user!r})"
