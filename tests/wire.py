"""Requests byte by byte over TLS, for what no client would send."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from navarch.client import Config

SECONDS = 60.0


class Answer(NamedTuple):
    """The code of an answer, and what it says: the message of a Status, the kind of an object, else its text."""

    status: int
    said: str


class Wire:
    """Connections to a cluster, as whoever the token proves."""

    def __init__(self, config: Config) -> None:
        parts = urlsplit(config.server)
        self._address = (parts.hostname or "", parts.port or 443)
        ca = config.ca_data.decode() or Path(config.ca_file).read_text()
        self._context = ssl.create_default_context(cadata=ca)
        self.authorization = f"Authorization: Bearer {config.token}"

    @contextmanager
    def connected(self) -> Iterator[ssl.SSLSocket]:
        with (
            socket.create_connection(self._address, timeout=SECONDS) as plain,
            self._context.wrap_socket(plain, server_hostname=self._address[0]) as secured,
        ):
            yield secured

    def head(self, line: str, headers: Sequence[str] = ()) -> bytes:
        """The head of a request with a credential; `line` is its first one, up to the version."""
        first = line if " HTTP/" in line else f"{line} HTTP/1.1"
        return "\r\n".join([first, "Host: cluster", self.authorization, *headers, "", ""]).encode("latin-1")

    def ask(
        self, line: str, headers: Sequence[str] = (), body: bytes = b"", media_type: str = "application/json"
    ) -> Answer:
        """One request on a connection of its own; a server that has seen enough may answer before it was sent whole."""
        length = [f"Content-Length: {len(body)}", f"Content-Type: {media_type}"] if body else []
        with self.connected() as connection:
            with suppress(ConnectionError, ssl.SSLEOFError):
                connection.sendall(self.head(line, [*length, *headers, "Connection: close"]) + body)
            return answer_in(everything(connection))


def everything(connection: ssl.SSLSocket) -> bytes:
    """All that is sent until the connection ends."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def answer_in(received: bytes) -> Answer:
    """The first answer of what was received."""
    head, _, body = received.partition(b"\r\n\r\n")
    found = re.match(rb"HTTP/\d\.\d (\d+)", head)
    assert found is not None, f"expected an answer, got {received[:200]!r}"
    return Answer(int(found[1]), _said(_dechunked(body) if b"chunked" in head else body))


def _dechunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return whole


def _said(body: bytes) -> str:
    try:
        value = json.loads(body)
    except ValueError:
        return body.decode(errors="replace").strip()
    return str(value.get("message") or value.get("kind"))
