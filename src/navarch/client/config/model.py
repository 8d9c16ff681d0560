"""`Config`: the address of the API server, its CA, and the credential."""

from __future__ import annotations

import math
import platform
import ssl
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from navarch._version import __version__
from navarch.client.config.credentials import Credential
from navarch.client.config.masking import MaskedStruct, without_password
from navarch.client.config.tls import FilePath, client_certificate, ssl_context
from navarch.errors import ConfigError

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Impersonation(MaskedStruct, frozen=True, kw_only=True):
    """The user to impersonate; needs the right to impersonate."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Returns the headers to send; a name may occur several times."""
        pairs = [("Impersonate-User", self.user)]
        if self.uid:
            pairs.append(("Impersonate-Uid", self.uid))
        pairs += [("Impersonate-Group", group) for group in self.groups]
        for key, values in sorted(self.extra.items()):
            pairs += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
        return tuple(pairs)


class ExecPlugin(MaskedStruct, frozen=True, kw_only=True):
    """A command that prints a credential, as kubeconfig's `exec` describes it.

    `timeout` is in seconds; a plugin that takes longer is killed together with its children. `cluster_extension` is
    JSON that the plugin gets with `provide_cluster_info`.
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


class Config(MaskedStruct, frozen=True, kw_only=True):
    """How to reach one API server; returned by `load`, or created by hand. To change a field:
    `msgspec.structs.replace`.

    The first of several credentials applies: `credential`, `token_file`, `token`, user name and password, the client
    certificate, `exec_plugin`. `timeout` is in seconds, per request. `origin` names the source in errors. Raises
    ConfigError if the fields contradict each other.
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
        """The API server's host and port."""
        return urlsplit(self.server).netloc.rpartition("@")[2]

    def ssl_context(self) -> ssl.SSLContext | None:
        """Returns a TLS context with the CA and the client certificate of this Config; None for a server without TLS.

        Ignores certificates of an exec plugin: with one, use `Authenticator`.
        """
        return ssl_context(self, client_certificate(self))


def default_user_agent() -> str:
    """Returns the User-Agent for a Config without one."""
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
    """Returns the address as a prefix of paths, with its scheme in lower case, which decides about TLS."""
    scheme, separator, rest = server.partition("://")
    return scheme.lower() + separator + rest.rstrip("/")


def _is_host(name: str) -> bool:
    """Returns True for a valid host name; Python fails on labels that are too long."""
    labels = name.removesuffix(".").split(".")
    return name.isprintable() and " " not in name and all(0 < len(label) < 64 for label in labels)


def check_proxy(proxy: str, where: str, field: str) -> None:
    """Raises ConfigError for a proxy that cannot be used; an empty one means none."""
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
    """Raises ConfigError for values that do not fit into one line of a request."""
    impersonation = config.impersonate.headers() if config.impersonate else ()
    for name, value in (("user_agent", config.user_agent), *impersonation):
        if not value.isprintable():
            raise ConfigError(f"{config.origin}: expected {name} in one line of printable text, got {value!r}")
