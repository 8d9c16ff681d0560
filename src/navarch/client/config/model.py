"""Where the API server is, how to trust it, and who is asking."""

from __future__ import annotations

import math
import os
import platform
import ssl
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from navarch._version import __version__
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch._base.clock import Clock
    from navarch.client.config.authenticator import Authenticator
    from navarch.client.config.credentials import Credential

FilePath = str | os.PathLike[str]

MASK = "***"
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_SECRET = frozenset({"token", "password", "client_key_data", "args", "env"})
_BULKY = frozenset({"ca_data", "client_certificate_data", "cluster_extension"})
_URLS = frozenset({"server", "proxy_url"})


class _Guarded(msgspec.Struct, frozen=True, kw_only=True):
    """A struct that can be printed without giving a secret away; empty fields are left out."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, _shown(name, value)) for name, value in values if value]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


def _shown(name: str, value: Any) -> Any:
    if name in _SECRET:
        return MASK
    if name in _BULKY:
        return f"{len(value)} bytes"
    return without_password(value) if name in _URLS else value


def without_password(url: str) -> str:
    """A URL as it may be shown; what cannot be taken apart is not shown at all."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    if "@" not in url:
        return url
    return parts._replace(netloc=f"{MASK}@{parts.netloc.rpartition('@')[2]}").geturl() if parts.netloc else MASK


class Impersonation(_Guarded, frozen=True, kw_only=True):
    """Whom the API server should take the caller for; needs the right to impersonate."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers to send; a name may come several times."""
        pairs = [("Impersonate-User", self.user)]
        if self.uid:
            pairs.append(("Impersonate-Uid", self.uid))
        pairs += [("Impersonate-Group", group) for group in self.groups]
        for key, values in sorted(self.extra.items()):
            pairs += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
        return tuple(pairs)


class ExecPlugin(_Guarded, frozen=True, kw_only=True):
    """A command that prints a credential, as kubeconfig's `exec` describes it.

    `timeout` is in seconds; a plugin that takes longer is killed together with its children.
    `cluster_extension` is JSON for the plugin, handed over with `provide_cluster_info`.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    api_version: str = EXEC_VERSIONS[0]
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    provide_cluster_info: bool = False
    cluster_extension: bytes = b""
    timeout: float = 60.0


class Config(_Guarded, frozen=True, kw_only=True):
    """How to reach one API server; made by `load`, or by hand. To change a field: `msgspec.structs.replace`.

    Of several credentials the first counts: `credential`, `token_file`, `token`, user name and password, the client
    certificate, `exec_plugin`. `timeout` is in seconds, per request. `origin` says where it came from, for errors.
    Raises ConfigError if the fields contradict each other.
    """

    server: str
    namespace: str = "default"
    token: str = ""
    token_file: FilePath = ""
    username: str = ""
    password: str = ""
    exec_plugin: ExecPlugin | None = None
    credential: Credential | None = None
    ca_file: FilePath = ""
    ca_data: bytes = b""
    client_certificate_file: FilePath = ""
    client_certificate_data: bytes = b""
    client_key_file: FilePath = ""
    client_key_data: bytes = b""
    tls_server_name: str = ""
    insecure_skip_verify: bool = False
    proxy_url: str = ""
    impersonate: Impersonation | None = None
    compression: bool = True
    user_agent: str = ""
    timeout: float = 30.0
    origin: str = "this Config"

    def __post_init__(self) -> None:
        _check_server(self)
        msgspec.structs.force_setattr(self, "server", _plainly(self.server))
        check_proxy(self.proxy_url, self.origin, "proxy_url")
        _check_tls(self)
        _check_credentials(self)
        _check_headers(self)

    @property
    def host(self) -> str:
        """The API server's host and port, as far as the address names one."""
        return urlsplit(self.server).netloc.rpartition("@")[2]

    def authenticator(self, clock: Clock) -> Authenticator:
        """What the transport asks for headers and TLS; holds tokens and certificates for as long as they are valid."""
        from navarch.client.config.authenticator import Authenticator  # noqa: PLC0415 - it needs this module

        return Authenticator(self, clock)

    def ssl_context(self) -> ssl.SSLContext | None:
        """A TLS context with the CA and the client certificate of this Config; None for a server without TLS.

        Knows nothing of certificates from an exec plugin: with one, use `authenticator`.
        """
        from navarch.client.config.tls import client_certificate, ssl_context  # noqa: PLC0415 - they need this module

        return ssl_context(self, client_certificate(self))


def default_user_agent() -> str:
    """What is sent as User-Agent when the Config names none."""
    system, machine = platform.system().lower(), platform.machine()
    return f"navarch/{__version__} ({system}/{machine}) python/{sys.version_info[0]}.{sys.version_info[1]}"


def _check_server(config: Config) -> None:
    server, where = config.server, config.origin
    if not server:
        raise ConfigError(f"{where}: expected a server such as https://127.0.0.1:6443, got none")
    parts = _split(server, f"{where}: expected server to be a URL")
    if parts.scheme not in {"http", "https"} or "://" not in server:
        raise ConfigError(
            f"{where}: expected server to begin with https:// or http://, got {without_password(server)!r}. "
            f"Write it as https://HOST:PORT."
        )
    if not _is_host(parts.hostname or "") or parts.query or parts.fragment:
        raise ConfigError(f"{where}: expected server as https://HOST:PORT, got {without_password(server)!r}")


def _plainly(server: str) -> str:
    """The address as paths are put behind it; its scheme in small letters, by which TLS is chosen."""
    scheme, separator, rest = server.partition("://")
    return scheme.lower() + separator + rest.rstrip("/")


def _is_host(name: str) -> bool:
    """Whether a name can be looked up, or told to a server; Python fails over the length of a label."""
    labels = name.removesuffix(".").split(".")
    return name.isprintable() and " " not in name and all(0 < len(label) < 64 for label in labels)


def check_proxy(proxy: str, where: str, field: str) -> None:
    """Raises ConfigError for a proxy that cannot be used; an empty one is none at all."""
    if not proxy:
        return
    parts = _split(proxy, f"{where}: expected {field} to be a URL")
    if parts.scheme in {"socks5", "socks5h"}:
        raise ConfigError(
            f"{where}: expected {field} to begin with http:// or https://, got a SOCKS proxy. "
            f"SOCKS is not supported: use an HTTP proxy, or a tunnel to the API server with tls_server_name."
        )
    if parts.scheme not in {"http", "https"} or not _is_host(parts.hostname or ""):
        raise ConfigError(f"{where}: expected {field} as http://HOST:PORT, got {without_password(proxy)!r}")


def _split(url: str, expected: str) -> Any:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError(f"{expected}, got text with spaces, control or non-ASCII characters")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError(f"{expected}, got {without_password(url)!r}, whose host or port is malformed") from None
    return parts


def _check_tls(config: Config) -> None:
    where = config.origin
    if config.insecure_skip_verify and (config.ca_file or config.ca_data):
        raise ConfigError(
            f"{where}: expected either a CA certificate or insecure_skip_verify, got both. "
            f"Keep the CA: without verification anybody can pose as the server."
        )
    if config.ca_file and config.ca_data:
        raise ConfigError(f"{where}: expected one CA certificate, got ca_file and ca_data. Keep one.")
    if config.tls_server_name and not _is_host(config.tls_server_name):
        raise ConfigError(f"{where}: expected tls_server_name to be a host name, got {config.tls_server_name!r}")
    certificate = bool(config.client_certificate_file or config.client_certificate_data)
    key = bool(config.client_key_file or config.client_key_data)
    if certificate != key:
        got = "a client certificate without its key" if certificate else "a client key without its certificate"
        raise ConfigError(f"{where}: expected a client certificate and its key, got {got}. Give both.")


def _check_credentials(config: Config) -> None:
    where = config.origin
    if (config.token or config.token_file) and (config.username or config.password):
        raise ConfigError(f"{where}: expected one way to authenticate, got a token and a user name. Keep one.")
    if config.password and not config.username:
        raise ConfigError(f"{where}: expected a user name with the password, got none")
    if not 0 < config.timeout < math.inf:
        raise ConfigError(f"{where}: expected a timeout above 0 seconds, got {config.timeout:g}")
    user = config.impersonate
    if user is not None and not user.user:
        raise ConfigError(f"{where}: expected the user to impersonate, got only a uid, groups or extra")


def _check_headers(config: Config) -> None:
    """What is sent as it is must fit into one line of a request."""
    impersonation = config.impersonate.headers() if config.impersonate else ()
    for name, value in (("user_agent", config.user_agent), *impersonation):
        if not value.isprintable():
            raise ConfigError(f"{config.origin}: expected {name} in one line of printable text, got {value!r}")
