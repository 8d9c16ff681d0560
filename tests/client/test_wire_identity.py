"""What is sent of who is asking, to whom, and over which connections."""

import asyncio
import contextlib
import gc
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from certificates import Signed, sign
from faulty_server import Faulty, chunked, ended, faulty, http, says, says_and_ends, says_json, says_nothing
from navarch import errors
from navarch.api import Kind
from navarch.client import Impersonation, WatchOptions
from scripted import config_map, event

KIND = Kind("", "v1", "ConfigMap", plural="configmaps")
ANSWER = says_json(config_map())
UNAUTHORIZED = says_json(
    {"kind": "Status", "code": 401, "reason": "Unauthorized", "message": "who?"}, "401 Unauthorized"
)
LIMIT = 60.0


class Renewable:
    """A credential of which a new one can be had so many times."""

    def __init__(self, renewals: int) -> None:
        self.renewals = renewals
        self.number = 0

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer token-{self.number}"}

    async def refresh(self) -> bool:
        self.number += self.number < self.renewals
        return self.number <= self.renewals and self.renewals > 0


async def test_redirect_is_not_followed(reaching: Any) -> None:
    """The token does not reach another server, and the error says so."""
    async with faulty(ANSWER) as elsewhere:
        lead = says(http(b"", "307 Temporary Redirect", f"Location: {elsewhere.url}/api"))
        async with faulty(lead) as server, reaching(server.url, token="hunter2") as client:
            with pytest.raises(errors.BadAnswerError, match="leads elsewhere"):
                await client.get(KIND, "a")
        assert not elsewhere.connections


async def test_token_and_impersonation_are_sent(reaching: Any) -> None:
    """Every group and extra in a header of its own, as the server wants them."""
    who = Impersonation(user="jane", uid="7", groups=("dev", "ops"), extra={"example.com/scope": ("a", "b")})
    async with faulty(ANSWER) as server, reaching(server.url, token="t0ken", impersonate=who) as client:
        await client.get(KIND, "a")
    [sent] = server.requests
    assert sent.header("Authorization") == ["Bearer t0ken"]
    assert sent.header("Impersonate-User") == ["jane"]
    assert sent.header("Impersonate-Uid") == ["7"]
    assert sent.header("Impersonate-Group") == ["dev", "ops"]
    assert sent.header("Impersonate-Extra-example.com%2Fscope") == ["a", "b"]
    assert sent.header("User-Agent")[0].startswith("navarch/")


@pytest.mark.parametrize(
    ("fields", "authorization"), [({}, "Basic amFuZTpodW50ZXIvMg=="), ({"token": "abc"}, "Bearer abc")]
)
async def test_user_in_the_address_counts_if_there_is_no_other_credential(
    fields: dict[str, str], authorization: str, reaching: Any
) -> None:
    """As in Go; aiohttp alone refuses the two together."""
    async with faulty(says_json(config_map())) as server:
        address = server.url.replace("://", "://jane:hunter%2F2@")
        async with reaching(address, **fields) as client:
            await client.get(KIND, "a")
    [request] = server.requests
    assert request.header("Authorization") == [authorization]


@pytest.mark.parametrize("compression", [True, False])
async def test_compression_is_used_only_if_wanted(compression: bool, reaching: Any) -> None:
    """On the same machine it costs more than it saves."""
    body = json.dumps(config_map()).encode()
    packed = http(gzip.compress(body), "200 OK", "Content-Encoding: gzip") if compression else http(body)
    async with faulty(says(packed)) as server, reaching(server.url, compression=compression) as client:
        assert (await client.get(KIND, "a")).name == "a"
    assert server.requests[0].header("Accept-Encoding") == ["gzip" if compression else "identity"]


async def test_refused_credential_is_renewed_and_tried_once_more(reaching: Any) -> None:
    """With the new one."""
    async with faulty(UNAUTHORIZED, ANSWER) as server, reaching(server.url, credential=Renewable(1)) as client:
        assert (await client.get(KIND, "a")).name == "a"
    assert [sent.header("Authorization") for sent in server.requests] == [["Bearer token-0"], ["Bearer token-1"]]


@pytest.mark.parametrize(("renewals", "requests"), [(0, 1), (5, 2)])
async def test_credential_that_stays_refused_is_an_error(renewals: int, requests: int, reaching: Any) -> None:
    """After one more try at most."""
    async with faulty(UNAUTHORIZED) as server, reaching(server.url, credential=Renewable(renewals)) as client:
        with pytest.raises(errors.Unauthorized, match=r"get configmaps default/a: who\?"):
            await client.get(KIND, "a")
    assert len(server.requests) == requests


async def test_watches_and_requests_never_share_connections(reaching: Any) -> None:
    """Requests use theirs again; each watch has its own, also after another has ended."""
    quick = says(chunked(event("ADDED", config_map("a", 2))))
    plays = (ANSWER, quick, ANSWER, quick, ANSWER)
    async with faulty(*plays) as server, reaching(server.url) as client:
        for _ in range(2):
            await client.get(KIND, "a")
            async with client.watch(KIND, resource_version="1") as watch:
                await anext(watch)
        await client.get(KIND, "a")
    reads = {sent.connection for sent in server.requests if "watch=true" not in sent.target}
    watches = {sent.connection for sent in server.requests if "watch=true" in sent.target}
    assert len(reads) == 1
    assert not reads & watches


async def test_watches_without_number_do_not_keep_a_write_waiting(reaching: Any) -> None:
    """They have no share in the limit on connections."""
    silent = says_nothing(chunked(end=False))
    async with faulty(*[silent] * 150, ANSWER) as server, reaching(server.url) as client, AsyncExitStack() as stack:
        for _ in range(150):
            await stack.enter_async_context(client.watch(KIND, resource_version="1"))
        async with asyncio.timeout(LIMIT):
            assert (await client.get(KIND, "a")).name == "a"


async def next_of(watch: Any) -> Any:
    return await anext(watch)


async def until_closed(server: Faulty) -> None:
    async with asyncio.timeout(LIMIT):
        await server.all_closed.wait()


@contextlib.asynccontextmanager
async def cancelled_midway(server: Faulty, work: Any) -> AsyncIterator[None]:
    """Work that is cancelled as soon as its request has arrived."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        async with asyncio.timeout(LIMIT):
            while not server.requests:
                await asyncio.wait([task], timeout=0.01)
        task.cancel()
    assert task.cancelled()
    yield


@pytest.mark.parametrize("play", [says_nothing(), says_nothing(http(b"half", length=100))])
async def test_cancelled_call_leaves_no_connection(play: Any, reaching: Any) -> None:
    """Before the headers and in the middle of the body; the client can go on."""
    async with faulty(play, ANSWER) as server, reaching(server.url) as client:
        async with cancelled_midway(server, client.get(KIND, "a")):
            await until_closed(server)
        assert (await client.get(KIND, "a")).name == "a"


async def test_cancelled_watch_leaves_no_connection_and_no_task(reaching: Any) -> None:
    """Nor does one that is left in the middle of its events."""
    silent = says_nothing(chunked(event("ADDED", config_map("a", 2)), end=False))
    async with faulty(silent) as server, reaching(server.url) as client:
        before = asyncio.all_tasks()
        async with client.watch(KIND, resource_version="1", options=WatchOptions(timeout_seconds=9)) as watch:
            await anext(watch)
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(next_of(watch))
                await asyncio.wait([waiting], timeout=0.01)
                waiting.cancel()
        await until_closed(server)
        gc.collect()
        assert not asyncio.all_tasks() - before


async def test_closing_the_client_closes_every_connection(reaching: Any) -> None:
    """Idle ones too."""
    async with faulty(ANSWER) as server:
        async with reaching(server.url) as client:
            await client.get(KIND, "a")
            assert server.open == 1
        await until_closed(server)


async def proxied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: list[str], port: int) -> None:
    """A tiny proxy: notes what it is asked, and leads to `port` whatever the name."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    seen.append(head)
    there, back = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # a reset is an end like any other
            while data := await source.read(65536):
                target.write(data)
        target.close()

    await asyncio.gather(carry(reader, back), carry(there, writer))


@contextlib.asynccontextmanager
async def proxy(port: int) -> AsyncIterator[tuple[str, list[str]]]:
    """The proxy's address, and what it was asked."""
    seen: list[str] = []
    server = await asyncio.start_server(lambda reader, writer: proxied(reader, writer, seen, port), "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", seen
    finally:
        await ended(server)


async def test_proxy_carries_the_connection_and_sees_no_token(ca: Signed, server_tls: Any, reaching: Any) -> None:
    """CONNECT to the server's own name, TLS to the server inside, the proxy's password for the proxy alone."""
    async with (
        faulty(ANSWER, tls=server_tls(sign("server", ca, host="api.example"))) as server,
        proxy(server.port) as (address, seen),
    ):
        settings = {"ca_data": ca.pem, "token": "t0ken", "proxy_url": f"http://me:hunter2@{address}"}
        async with reaching("https://api.example:6443", **settings) as client:
            assert (await client.get(KIND, "a")).name == "a"
        await until_closed(server)
    assert seen[0].startswith("CONNECT api.example:6443 ")
    assert "Proxy-Authorization: Basic" in seen[0]
    assert "t0ken" not in seen[0]
    assert server.requests[0].header("Authorization") == ["Bearer t0ken"]
    assert not server.requests[0].header("Proxy-Authorization")


async def test_proxy_of_the_environment_is_used(
    ca: Signed, server_tls: Any, reaching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTPS_PROXY holds where the configuration names no proxy."""
    async with (
        faulty(ANSWER, tls=server_tls(sign("server", ca, host="api.example"))) as server,
        proxy(server.port) as (address, seen),
    ):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{address}")
        async with reaching("https://api.example:6443", ca_data=ca.pem) as client:
            assert (await client.get(KIND, "a")).name == "a"
        await until_closed(server)
    assert seen[0].startswith("CONNECT api.example:6443 ")


async def test_tls_server_name_holds_behind_a_proxy(ca: Signed, server_tls: Any, reaching: Any) -> None:
    """It names the server, not the proxy."""
    async with (
        faulty(ANSWER, tls=server_tls(sign("server", ca, host="inner.example"))) as server,
        proxy(server.port) as (address, _),
    ):
        settings = {"ca_data": ca.pem, "proxy_url": f"http://{address}", "tls_server_name": "inner.example"}
        async with reaching("https://api.example:6443", **settings) as client:
            assert (await client.get(KIND, "a")).name == "a"
        await until_closed(server)


@pytest.mark.parametrize(
    ("play", "expected", "words"),
    [
        (says_and_ends(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"), errors.ConnectError, "the proxy refused to connect"),
        (says_nothing(), errors.TransportError, ""),
        (says_and_ends(b""), errors.TransportError, ""),
        (says_and_ends(b"rubbish\r\n\r\n"), errors.TransportError, ""),
    ],
    ids=["refusal", "silence", "hang-up", "rubbish"],
)  # fmt: skip
async def test_proxy_that_fails_is_an_error_without_its_password(
    play: Any, expected: type[Exception], words: str, ca: Signed, reaching: Any
) -> None:
    """For calls and for watches, in bounded time."""
    async with faulty(play) as broken:
        settings = {"ca_data": ca.pem, "proxy_url": f"http://me:hunter2@127.0.0.1:{broken.port}", "token": "t0ken"}
        seconds = 60.0 if words else 0.2
        async with reaching("https://api.example:6443", options={"timeout": seconds}, **settings) as client:
            watch = client.watch(KIND, resource_version="1")
            calls: list[Any] = [lambda: client.get(KIND, "a"), lambda: anext(watch)]
            for call in calls:
                with pytest.raises(expected) as caught:
                    await call()
                assert words in str(caught.value)
                error: BaseException | None = caught.value
                while error is not None:
                    assert "hunter2" not in str(error) + repr(error)
                    error = error.__cause__


async def test_proxy_that_is_not_there_is_named_as_such(reaching: Any, ca: Signed) -> None:
    """It is not the API server that is down."""
    settings = {"ca_data": ca.pem, "proxy_url": "http://me:hunter2@127.0.0.1:1"}
    async with reaching("https://api.example:6443", **settings) as client:
        with pytest.raises(errors.ConnectError, match="nobody answered at the proxy") as caught:
            await client.get(KIND, "a")
    assert "hunter2" not in str(caught.value) + repr(caught.value.__cause__)
