"""How etcd is reached."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from navarch._base.backoff import Backoff
from navarch._base.trust import trusting
from navarch.errors import ConfigError

__all__ = ["EtcdOptions", "EtcdTls"]


class EtcdTls(msgspec.Struct, frozen=True, kw_only=True):
    """Files for TLS: who etcd must be, and who we are; `server_name` if its certificate has another name than its address.

    etcd does not take a user's name from a certificate over HTTP: users have passwords.
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
    """Where the members listen for clients, and how long one waits for them.

    Each attempt has `timeout` seconds. What was not sent, and what can be asked twice, is tried at the next endpoint,
    all in all for `patience` seconds. An answer, or a line of a stream, that is longer than `max_answer_bytes` is an error;
    0 takes any: bound it where others choose what runs at the endpoints.
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
