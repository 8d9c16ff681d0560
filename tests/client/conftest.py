"""Certificates, and clients that reach a server of ours over real sockets while their waits leap."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from certificates import Signed, sign
from navarch.client import Client, Config, Options
from navarch.client.http import HttpTransport
from scripted import LeapingClock


@pytest.fixture(scope="session")
def ca() -> Signed:
    return sign("ca")


ServerTls = Callable[..., ssl.SSLContext]


@pytest.fixture
def server_tls(tmp_path: Path) -> ServerTls:
    """The server's side of TLS; with `client_ca` it demands a client certificate."""

    def make(server: Signed, client_ca: Signed | None = None, *, newest: bool = True) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if not newest:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        (tmp_path / "server.pem").write_bytes(server.pem + server.key)
        context.load_cert_chain(tmp_path / "server.pem")
        if client_ca:
            context.load_verify_locations(cadata=client_ca.pem.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    return make


Reaching = Callable[..., contextlib.AbstractAsyncContextManager[Client]]


@pytest.fixture
def reaching() -> Reaching:
    """A client for a server; keywords are of `Config`, `options` are of `Options`."""

    @contextlib.asynccontextmanager
    async def make(server: str, *, options: dict[str, Any] | None = None, **config: Any) -> AsyncIterator[Client]:
        clock = LeapingClock()
        transport = HttpTransport(Config(server=server, **config), clock)
        async with Client(transport, Options(**(options or {})), clock=clock) as client:
            yield client

    return make
