"""Connections to etcd that are given up."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from certificates import Signed, sign
from chaos.proxy import proxy_to
from chaos.waiting import until
from faulty_server import chunked, faulty, says_nothing
from navarch.etcd import EtcdClient, EtcdOptions, EtcdTls, WatchRequest

SECONDS = 15.0
"""Half as long as asyncio waits for the other side to end TLS."""


@pytest.fixture
def ca(tmp_path: Path) -> Signed:
    signed = sign("ca")
    (tmp_path / "ca.pem").write_bytes(signed.pem)
    return signed


async def test_watch_that_is_left_does_not_wait_for_the_other_side(ca: Signed, tmp_path: Path) -> None:
    """Its connection is closed at once: it would outlive its client, and be found by the garbage collection."""
    server = sign("server", ca)
    (tmp_path / "server.pem").write_bytes(server.pem + server.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    created = b'{"result": {"header": {"revision": "1"}, "created": true}}\n'
    async with (
        faulty(says_nothing(chunked(created, end=False)), tls=context) as played,
        proxy_to(played.url) as proxy,
    ):
        options = EtcdOptions(endpoints=(f"https://127.0.0.1:{proxy.port}",), tls=EtcdTls(ca_file=tmp_path / "ca.pem"))
        async with EtcdClient(options) as client:
            async with client.watch(WatchRequest(key=b"a")) as answers:
                await anext(answers)
                proxy.silence_all()
            await until(lambda: proxy.open == 0, "no connection to be left", seconds=SECONDS)
