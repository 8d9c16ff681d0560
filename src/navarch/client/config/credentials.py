"""Who is asking: credentials that do not change, and tokens in files that do."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from navarch._base.clock import Clock
from navarch.client.config.model import Config
from navarch.errors import CredentialError

_log = logging.getLogger("navarch.client.config")

# kubelet replaces a token long before it expires: client-go reads the file once a minute, and so do we.
# In between, a glance at the file's date finds a token that was replaced by hand.
_REREAD_SECONDS = 60.0
_GLANCE_SECONDS = 1.0


class Credential(Protocol):
    """Where the Authorization header comes from; may be written by the user."""

    async def headers(self) -> Mapping[str, str]:
        """The headers that say who is asking; CredentialError if there are none to be had."""
        ...

    async def refresh(self) -> bool:
        """After the server refused the last ones: whether different headers can be had now."""
        ...


class Fixed:
    """The same headers for ever."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = MappingProxyType(dict(headers))

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def refresh(self) -> bool:
        return False


class TokenFile:
    """A token in a file that somebody else replaces from time to time.

    If the file cannot be read, the last token read from it is used, or else `fallback`.
    """

    def __init__(self, path: Path, clock: Clock, *, where: str, fallback: str = "") -> None:
        self._path = path
        self._clock = clock
        self._where = f"{where}: token file {path}"
        self._headers = bearer(fallback, where) if fallback else None
        self._read_at = self._glanced_at = float("-inf")
        self._stamp: tuple[int, ...] = ()

    async def headers(self) -> Mapping[str, str]:
        if self._is_due():
            self._read_or_keep()
        assert self._headers is not None
        return self._headers

    async def refresh(self) -> bool:
        before = self._headers
        self._read()
        return self._headers != before

    def _is_due(self) -> bool:
        now = self._clock.monotonic()
        if now - self._read_at >= _REREAD_SECONDS:
            return True
        if now - self._glanced_at < _GLANCE_SECONDS:
            return False
        self._glanced_at = now
        return stamp(self._path) != self._stamp

    def _read_or_keep(self) -> None:
        try:
            self._read()
        except CredentialError as error:
            if self._headers is None:
                raise
            self._read_at = self._clock.monotonic()
            _log.warning("%s The last token is kept.", error)

    def _read(self) -> None:
        seen = stamp(self._path)
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise CredentialError(f"{self._where}: expected a token, got {reason(error)}.") from None
        if not token:
            raise CredentialError(f"{self._where}: expected a token, got an empty file.")
        headers = bearer(token, self._where)
        self._headers = self._headers if headers == self._headers else headers
        self._stamp = seen
        self._read_at = self._glanced_at = self._clock.monotonic()


def fixed(config: Config) -> Fixed:
    """The headers of a Config whose credential does not change; none for a client certificate or no credential."""
    if config.token:
        return Fixed(bearer(config.token, config.origin))
    if config.username:
        return Fixed(basic(config.username, config.password))
    return Fixed({})


def basic(username: str, password: str) -> Mapping[str, str]:
    """The header for a user name and a password."""
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    return MappingProxyType({"Authorization": f"Basic {pair}"})


def bearer(token: str, where: str) -> Mapping[str, str]:
    """The header for a token; CredentialError if it cannot stand in a header."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialError(f"{where}: expected a token, got text that cannot stand in an HTTP header")
    return MappingProxyType({"Authorization": f"Bearer {token}"})


def stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file does, also when a symbolic link is turned to another file; empty if it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - Path.stat costs twice as much, and this runs between requests
    except (OSError, ValueError):
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def reason(error: Exception) -> str:
    """Why a file could not be read, without its content."""
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return "bytes that are no text"
