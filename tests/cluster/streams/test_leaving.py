"""Clients that vanish or misbehave, over HTTPS: nothing of them is left."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from cluster.nodes.machines import long_while, sleeping
from navarch.api import Dynamic
from navarch.errors import Forbidden
from navarch.k8s.core.v1 import Pod
from navarch.testing.cluster import Cluster

pytestmark = pytest.mark.cluster(nodes=1)

PATH = "/api/v1/namespaces/default/pods/web"
WEBSOCKET = {"Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
SPDY = {"Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}


@pytest.fixture
async def served(http_cluster: Cluster) -> Cluster:
    """A cluster with a pod that runs."""
    container = {"name": "main", "image": "busybox", "args": ["-c", "sleep 1000"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
    await http_cluster.eventually(lambda: _created(http_cluster, spec), bool, timeout=120)
    await http_cluster.eventually(
        lambda: http_cluster.get(Pod, "web"),
        lambda pod: pod.status.phase == "Running",
        timeout=120,
        what="a pod that runs",
    )
    return http_cluster


async def _created(cluster: Cluster, spec: dict[str, object]) -> bool:
    """Once there is a ServiceAccount for it."""
    try:
        await cluster.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}))
    except Forbidden:
        return False
    return True


@asynccontextmanager
async def connected(cluster: Cluster) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection without a client."""
    assert cluster.access is not None
    host, port = cluster.access.url.removeprefix("https://").split(":")
    context = ssl.create_default_context(cadata=cluster.access.authority.decode())
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def asked(cluster: Cluster, writer: asyncio.StreamWriter, query: str, headers: dict[str, str]) -> None:
    """Asks for a command to be run."""
    assert cluster.access is not None
    given = {"Host": "x", "Authorization": f"Bearer {cluster.access.token}", "Connection": "Upgrade", **headers}
    lines = [f"GET {PATH}/exec?{query} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    writer.write("\r\n".join((*lines, "", "")).encode())
    await writer.drain()


async def counted(seconds: str) -> int:
    return len(sleeping(seconds))


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_client_that_vanishes_ends_its_command(served: Cluster, protocol: str) -> None:
    """Without a goodbye."""
    seconds = long_while()
    async with connected(served) as (reader, writer):
        headers = {**WEBSOCKET, "Sec-WebSocket-Protocol": protocol}
        await asked(served, writer, f"command=sleep&command={seconds}&stdout=1&stdin=1", headers)
        assert b"101 Switching Protocols" in await reader.readuntil(b"\r\n\r\n")
        await served.eventually(lambda: counted(seconds), lambda found: found == 1, what="a command that runs")
    await served.eventually(lambda: counted(seconds), lambda found: found == 0, what="a command that was ended")
    await served.eventually(lambda: _ends(served), lambda ends: ends == 1, what="the end on record")


async def test_client_that_vanishes_while_nobody_reads_ends_its_command(served: Cluster) -> None:
    """Its input has filled all that is on the way."""
    data, seconds = b"\x00" + bytes(2**16), long_while()
    frame = b"\x82\xff" + len(data).to_bytes(8, "big") + bytes(4) + data
    async with connected(served) as (reader, writer):
        headers = {**WEBSOCKET, "Sec-WebSocket-Protocol": "v5.channel.k8s.io"}
        await asked(served, writer, f"command=sleep&command={seconds}&stdout=1&stdin=1", headers)
        assert b"101 Switching Protocols" in await reader.readuntil(b"\r\n\r\n")
        await served.eventually(lambda: counted(seconds), lambda found: found == 1, what="a command that runs")
        for _ in range(200):
            writer.write(frame)
        await served.client.list(Pod)  # the server has had its turn
    await served.eventually(
        lambda: counted(seconds), lambda found: found == 0, timeout=30, what="a command that was ended"
    )


async def test_client_that_opens_no_streams_starts_nothing(served: Cluster) -> None:
    """SPDY is there, but nothing is said in it."""
    seconds = long_while()
    async with connected(served) as (reader, writer):
        await asked(served, writer, f"command=sleep&command={seconds}&stdout=1", SPDY)
        assert b"101 Switching Protocols" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
    assert not sleeping(seconds)
    await served.eventually(lambda: _ends(served), lambda ends: ends == 1, what="the end on record")


async def _ends(cluster: Cluster) -> int:
    found = [each for each in cluster.audit.records(verb="get") if each.path == f"{PATH}/exec"]
    return sum(each.stage == "ResponseComplete" for each in found)


async def test_messages_beyond_measure_end_the_connection(served: Cluster) -> None:
    """With the code for it; the command is ended."""
    assert served.access is not None
    seconds = long_while()
    context = ssl.create_default_context(cadata=served.access.authority.decode())
    url = f"{served.access.url}{PATH}/exec?command=sleep&command={seconds}&stdin=1&stdout=1"
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {served.access.token}"}) as session,
        session.ws_connect(url, ssl=context, protocols=("v5.channel.k8s.io",)) as opened,
    ):
        assert (await opened.receive_bytes()) == b"\x01"
        await opened.send_bytes(bytes(2**25 + 1))
        message = await opened.receive()
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)
    await served.eventually(lambda: counted(seconds), lambda found: found == 0, what="a command that was ended")


async def test_handshake_that_is_none_is_refused(served: Cluster) -> None:
    """A WebSocket needs a key."""
    async with connected(served) as (reader, writer):
        await asked(served, writer, "command=sleep&command=1&stdout=1", {"Upgrade": "websocket"})
        assert b" 400 " in await reader.readuntil(b"\r\n\r\n")
