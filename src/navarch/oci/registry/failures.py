"""What can go wrong with a request to a registry, as errors with a remedy."""

from __future__ import annotations

import os
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
import msgspec
from yarl import URL

from navarch.errors import RegistryError
from navarch.oci.registry.options import RegistryOptions

_REPEATABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
_LARGEST_BODY: Final = 64 * 2**10
_LONGEST_TEXT: Final = 300
_REMEDIES: Final = {
    401: "; run `docker login`",
    403: "; check the rights of the user",
    405: "; the registry does not allow this",
}


class Interruption(Exception):  # noqa: N818 - no error yet: another attempt may succeed
    """An attempt that may be repeated, at the earliest `after` so many seconds; `error` is raised if none is left."""

    def __init__(self, error: RegistryError, *, after: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after


class _RegistryFault(msgspec.Struct):
    code: str = ""
    message: str = ""


class _RegistryErrorBody(msgspec.Struct):
    errors: list[_RegistryFault] = []


def place(url: URL) -> str:
    """Returns an address as errors show it: without user, query and fragment, which may have secrets."""
    return str(url.with_user(None).with_query(None).with_fragment(None))


def printable(text: str) -> str:
    """Returns foreign text as errors show it: short, and without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:_LONGEST_TEXT].strip()


async def refusal(
    response: aiohttp.ClientResponse, where: str, options: RegistryOptions
) -> RegistryError | Interruption:
    """Returns the error of an answer that nobody expected, with the registry's own words."""
    content = await response.content.read(_LARGEST_BODY)
    status = f"{response.status} {printable(response.reason or '')}".strip()
    if options.plain_http and b"HTTPS server" in content:
        return RegistryError(
            f"{where}: expected a registry without TLS, got one with TLS; leave out --plain-http",
            status=response.status,
        )
    said = _said(content) or _not_a_registry(response)
    remedy = _REMEDIES.get(response.status, "")
    error = RegistryError(f"{where}: expected success, got {status}{said}{remedy}", status=response.status)
    if response.status in _REPEATABLE:
        return Interruption(error, after=_retry_after(response, options))
    return error


def connection_failure(
    error: aiohttp.ClientError | OSError, where: str, url: URL, *, answered: bool
) -> RegistryError | Interruption:
    """Returns our error for one of aiohttp's; a server that has `answered` before may come back."""
    host = url.host if url.port is None else f"{url.host}:{url.port}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        detail = getattr(cause, "verify_message", "") or str(cause)
        return RegistryError(
            f"{where}: expected {host} to have a certificate that this machine trusts, got another: {detail}; "
            "name the file of its CA in SSL_CERT_FILE"
        )
    if isinstance(error, aiohttp.ClientSSLError):
        return RegistryError(
            f"{where}: expected TLS from {host}, got something else; for a registry without TLS give --plain-http"
        )
    if isinstance(error, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError):
        return RegistryError(f"{where}: expected the proxy to connect to {host}, got a failure; check HTTPS_PROXY")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return RegistryError(f"{where}: expected an address for {url.host}, got none; check the name and the DNS")
    if isinstance(error, aiohttp.ClientConnectorError):
        found = RegistryError(f"{where}: expected a registry at {host}, got: {_reason(error)}; is it running?")
        return Interruption(found) if answered else found
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.InvalidURL):
        return RegistryError(f"{where}: expected HTTP from {host}, got something else; check the address")
    if isinstance(error, aiohttp.ClientError | ConnectionError):
        hint = (
            "" if answered else "; check whether it needs TLS" if url.scheme == "http" else "; check whether it has TLS"
        )
        return Interruption(
            RegistryError(f"{where}: expected an answer, got a broken connection ({_reason(error)}){hint}")
        )
    return RegistryError(f"{where}: {_reason(error)}")  # a full disk, for example


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientPayloadError):
        return "it was cut short"
    inner = getattr(error, "os_error", None) or error
    if isinstance(inner, OSError) and inner.errno:
        return os.strerror(inner.errno)
    return printable(str(inner)) or type(error).__name__


def _said(content: bytes) -> str:
    try:
        faults = msgspec.json.decode(content, type=_RegistryErrorBody).errors
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    texts = [printable(f"{each.code}: {each.message}" if each.message else each.code) for each in faults[:3]]
    return ": " + "; ".join(texts) if texts else ""


def _not_a_registry(response: aiohttp.ClientResponse) -> str:
    if response.content_type == "text/html":
        return " with a page of HTML: it is no registry that answers, or a proxy answers for it"
    return ""


def _retry_after(response: aiohttp.ClientResponse, options: RegistryOptions) -> float:
    text = response.headers.get("Retry-After", "")
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max((parsedate_to_datetime(text) - options.clock.now()).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0
