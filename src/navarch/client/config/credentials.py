"""Credentials: static ones, and tokens in files that are replaced."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from navarch._base.clock import Clock
from navarch.errors import CredentialError

_log = logging.getLogger("navarch.client.config")

# kubelet replaces a token long before it expires: client-go reads the file once a minute, and so do we.
# In between, a glance at the file's date finds a token that was replaced by hand.
_REREAD_SECONDS = 60.0
_GLANCE_SECONDS = 1.0


class Credential(Protocol):
    """Supplies the Authorization header; users may implement it."""

    async def headers(self) -> Mapping[str, str]:
        """Returns the authentication headers. Raises CredentialError if there are none."""
        ...

    async def refresh(self) -> bool:
        """Call it after the server refused the last headers. Returns True if there are other headers now."""
        ...


class StaticCredential:
    """A credential whose headers never change."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = MappingProxyType(dict(headers))

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def refresh(self) -> bool:
        return False


class TokenFile:
    """A token in a file that another process replaces from time to time.

    If the file cannot be read, it uses the last token that it read, or else `fallback`.
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


def basic(username: str, password: str) -> Mapping[str, str]:
    """Returns the header for a user name and a password."""
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    return MappingProxyType({"Authorization": f"Basic {pair}"})


def bearer(token: str, where: str) -> Mapping[str, str]:
    """Returns the header for a token. Raises CredentialError if the token cannot be in a header."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialError(f"{where}: expected a token, got text that cannot stand in an HTTP header")
    return MappingProxyType({"Authorization": f"Bearer {token}"})


def stamp(path: Path) -> tuple[int, ...]:
    """Returns values that change with the file, also when a symbolic link is changed; empty if the file is missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - Path.stat costs twice as much, and this runs between requests
    except (OSError, ValueError):
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def reason(error: Exception) -> str:
    """Returns the reason why a file could not be read, without its content."""
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return "bytes that are no text"
