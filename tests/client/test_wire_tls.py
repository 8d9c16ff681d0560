"""Who the server is and who is asking: TLS through real sockets."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from certificates import Signed, sign
from chaos.proxy import proxy_to
from chaos.waiting import until
from faulty_server import chunked, faulty, says_json, says_nothing
from navarch import errors
from navarch.api import Kind
from scripted import config_map, event

KIND = Kind("", "v1", "ConfigMap", plural="configmaps")
ANSWER = says_json(config_map())
SECONDS = 15.0
"""Half as long as asyncio waits for the other side to end TLS."""
SOON_OVER = timedelta(days=30)
"""After the first of January 2020."""


async def test_server_that_the_ca_vouches_for_is_trusted(ca: Signed, server_tls: Any, reaching: Any) -> None:
    """The good case, without which the bad ones prove nothing."""
    async with (
        faulty(ANSWER, tls=server_tls(sign("server", ca))) as server,
        reaching(server.url, ca_data=ca.pem) as client,
    ):
        assert (await client.get(KIND, "a")).name == "a"


async def test_the_scheme_in_capitals_is_the_same_scheme(ca: Signed, server_tls: Any, reaching: Any) -> None:
    """The configured CA counts, and not those of the system."""
    async with (
        faulty(ANSWER, tls=server_tls(sign("server", ca))) as server,
        reaching(server.url.replace("https", "HTTPS"), ca_data=ca.pem) as client,
    ):
        assert (await client.get(KIND, "a")).name == "a"


BAD_SERVERS: dict[str, tuple[Callable[[Signed], Signed], str, str]] = {
    "another ca": (lambda ca: sign("server", sign("other")), "certificate", "check the CA"),
    "expired": (lambda ca: sign("server", ca, lifetime=SOON_OVER), "has expired", "renew the server's certificate"),
    "another name": (
        lambda ca: sign("server", ca, host="api.example"),
        "mismatch",
        "use an address that the certificate names",
    ),
}


@pytest.mark.parametrize("name", BAD_SERVERS)
async def test_server_that_cannot_be_trusted_is_refused_at_once(
    name: str, ca: Signed, server_tls: Any, reaching: Any
) -> None:
    """The error says why and what to do; nothing was sent, and nothing is tried again."""
    make, why, remedy = BAD_SERVERS[name]
    async with (
        faulty(ANSWER, tls=server_tls(make(ca))) as server,
        reaching(server.url, ca_data=ca.pem, token="hunter2") as client,
    ):
        with pytest.raises(errors.TlsError, match=why) as caught:
            await client.get(KIND, "a")
        assert not client._caller.clock.slept
    assert server.url in str(caught.value)
    assert remedy in str(caught.value)
    assert not server.requests


async def test_watch_does_not_wait_for_a_server_that_cannot_be_trusted(
    ca: Signed, server_tls: Any, reaching: Any
) -> None:
    """It would wait for ever."""
    async with (
        faulty(ANSWER, tls=server_tls(sign("server", sign("other")))) as server,
        reaching(server.url, ca_data=ca.pem) as client,
    ):
        with pytest.raises(errors.TlsError, match="not verify"):
            await anext(client.watch(KIND, resource_version="1"))


async def test_tls_server_name_says_which_name_the_certificate_must_have(
    ca: Signed, server_tls: Any, reaching: Any
) -> None:
    """Instead of the address; a wrong one is refused."""
    async with faulty(ANSWER, tls=server_tls(sign("server", ca, host="api.example"))) as server:
        async with reaching(server.url, ca_data=ca.pem, tls_server_name="api.example") as client:
            assert (await client.get(KIND, "a")).name == "a"
        async with reaching(server.url, ca_data=ca.pem, tls_server_name="other.example") as client:
            with pytest.raises(errors.TlsError, match=r"api\.example|mismatch"):
                await client.get(KIND, "a")


async def test_client_certificate_is_shown(ca: Signed, server_tls: Any, reaching: Any) -> None:
    """To a server that demands one."""
    mine = sign("me", ca)
    async with faulty(ANSWER, tls=server_tls(sign("server", ca), ca)) as server:
        credentials = {"client_certificate_data": mine.pem, "client_key_data": mine.key}
        async with reaching(server.url, ca_data=ca.pem, **credentials) as client:
            assert (await client.get(KIND, "a")).name == "a"


@pytest.mark.parametrize("newest", [True, False], ids=["TLS 1.3", "TLS 1.2"])
async def test_expired_client_certificate_is_named_as_the_reason(
    newest: bool, ca: Signed, server_tls: Any, reaching: Any, tmp_path: Path
) -> None:
    """Not only that the connection broke off: which file it is, and when it expired."""
    mine = sign("me", ca, lifetime=SOON_OVER)
    (tmp_path / "me.crt").write_bytes(mine.pem)
    async with faulty(ANSWER, tls=server_tls(sign("server", ca), ca, newest=newest)) as server:
        credentials = {"client_certificate_file": tmp_path / "me.crt", "client_key_data": mine.key}
        async with reaching(server.url, ca_data=ca.pem, **credentials) as client:
            with pytest.raises(errors.CredentialError, match="expired") as caught:
                await client.get(KIND, "a")
    assert "me.crt" in str(caught.value)
    assert "2020-01-31" in str(caught.value)


async def test_plain_http_from_a_tls_address_is_told_apart_from_nobody(reaching: Any, ca: Signed) -> None:
    """Somebody answered, but not with TLS."""

    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with reaching(address, ca_data=ca.pem) as client:
            with pytest.raises(errors.TlsError, match="expected TLS from"):
                await client.get(KIND, "a")


async def test_watch_that_is_left_does_not_wait_for_the_other_side(ca: Signed, server_tls: Any, reaching: Any) -> None:
    """Its connection is closed at once: it would outlive its client, and be found by the garbage collection."""
    play = says_nothing(chunked(event("ADDED", config_map()), end=False))
    async with (
        faulty(play, tls=server_tls(sign("server", ca))) as server,
        proxy_to(server.url) as proxy,
        reaching(f"https://127.0.0.1:{proxy.port}", ca_data=ca.pem) as client,
    ):
        async with client.watch(KIND, resource_version="1") as watch:
            await anext(watch)
            proxy.silence_all()
        await until(lambda: proxy.open == 0, "no connection to be left", seconds=SECONDS)


async def test_request_that_is_cancelled_does_not_wait_for_the_other_side(
    ca: Signed, server_tls: Any, reaching: Any
) -> None:
    """As with a watch."""
    async with (
        faulty(says_nothing(), tls=server_tls(sign("server", ca))) as server,
        proxy_to(server.url) as proxy,
        reaching(f"https://127.0.0.1:{proxy.port}", ca_data=ca.pem) as client,
    ):
        async with asyncio.TaskGroup() as group:
            request = group.create_task(client.get(KIND, "a"))
            await until(lambda: bool(server.requests), "the request to have come")
            proxy.silence_all()
            request.cancel()
        await until(lambda: proxy.open == 0, "no connection to be left", seconds=SECONDS)
