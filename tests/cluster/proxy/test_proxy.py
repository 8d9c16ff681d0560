"""What is passed on, and what is not, where no container is needed to show it."""

from __future__ import annotations

import asyncio
import base64
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from aiohttp import web

from certificates import sign
from navarch.api import Dynamic
from navarch.client import MergePatch, Request
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.http_server import HttpServer
from navarch.cluster.embedded.in_process import InProcessTransport
from navarch.cluster.server.server import RecordedStream
from navarch.cluster.server.wire.request import ApiRequest, Reply
from navarch.errors import ConnectError
from navarch.k8s.core.v1 import Pod

SECONDS = 30
PODS = "/api/v1/namespaces/default/pods"
PAGE = b'<a href="/x">x</a>'
THROUGH = f'<a href="{PODS}/web:%d/proxy/x">x</a>'
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Here(NamedTuple):
    """A node on which every pod is at 127.0.0.1."""

    address: str = "127.0.0.1"
    is_reachable: bool = True

    def pod_address(self, pod_uid: str) -> str:
        return self.address if pod_uid else ""


@pytest.fixture
async def embedded(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedCluster]:
    """A cluster with such a node, and a pod `web` there whose status says that it is somewhere else."""
    monkeypatch.setattr(EmbeddedCluster, "nodes", property(lambda _: {"here": Here()}))
    async with EmbeddedCluster() as cluster:
        await placed(cluster, "web", "here")
        yield cluster


async def placed(cluster: EmbeddedCluster, name: str, node: str) -> None:
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "x"}]}
    client = cluster.client()
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}))
    status = {"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]}
    await client.patch(Pod, name, MergePatch({"status": status}), subresource="status")


@asynccontextmanager
async def behind(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A program at 127.0.0.1; its port."""
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def ask(cluster: EmbeddedCluster, path: str, **headers: str) -> Reply:
    """The reply, with its body as a whole."""
    named = {"authorization": f"Bearer {cluster.token}"} | {
        key.replace("_", "-"): value for key, value in headers.items()
    }
    reply = await cluster.server.handle(ApiRequest(method="GET", path=f"{PODS}/{path}", headers=named))
    if isinstance(reply.stream, RecordedStream):
        reply.body = b"".join([piece async for piece in reply.stream])
        await reply.stream.aclose()
    return reply


async def test_pod_is_reached_where_its_node_has_put_it(embedded: EmbeddedCluster) -> None:
    """Not where its status says: many may write that, and loopback has more than pods."""

    async def hello(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.host)

    async with behind(hello) as port:
        assert (await ask(embedded, f"web:{port}/proxy/", host="cluster")).body == b"cluster"


@pytest.mark.parametrize("node", ["", "elsewhere"])
async def test_pod_without_a_node_that_answers_is_not_looked_for(embedded: EmbeddedCluster, node: str) -> None:
    """Nothing outside the cluster is asked in its place."""
    await placed(embedded, "lost", node)
    reply = await ask(embedded, "lost:80/proxy/")
    assert reply.status == 503
    assert b"error trying to reach service: dial tcp 192.0.2.1:80: connect: no route to host" in reply.body


def _tls(folder: Path) -> ssl.SSLContext:
    signed = sign("somebody", sign("ca"))
    (folder / "both.pem").write_bytes(signed.pem + signed.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context


async def test_any_certificate_is_taken(embedded: EmbeddedCluster, tmp_path: Path) -> None:
    """As Kubernetes does it for pods: nobody knows their names."""

    async def hello(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.scheme)

    async with behind(hello, _tls(tmp_path)) as port:
        assert (await ask(embedded, f"https:web:{port}/proxy/")).body == b"https"


@pytest.mark.parametrize(
    ("encoding", "pack", "unpack"),
    [
        ("gzip", gzip.compress, gzip.decompress),
        ("deflate", lambda page: zlib.compress(page, wbits=-15), lambda page: zlib.decompress(page, wbits=-15)),
        ("br", bytes, bytes),
    ],
)
async def test_links_of_compressed_pages_are_rewritten(
    embedded: EmbeddedCluster, encoding: str, pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]
) -> None:
    """But for compressions that Kubernetes does not know: those pages stay as they are."""

    async def page(_: web.BaseRequest) -> web.Response:
        headers = {"Content-Encoding": encoding, "Content-Type": "text/html"}
        return web.Response(body=pack(PAGE), headers=headers)

    async with behind(page) as port:
        reply = await ask(embedded, f"web:{port}/proxy/")
        assert unpack(reply.body).decode() == (PAGE.decode() if encoding == "br" else THROUGH % port)


async def test_page_that_is_not_what_it_says_is_refused(embedded: EmbeddedCluster) -> None:
    """It cannot be read, and half of it would be worse."""

    async def page(_: web.BaseRequest) -> web.Response:
        return web.Response(body=b"no gzip", headers={"Content-Encoding": "gzip", "Content-Type": "text/html"})

    async with behind(page) as port:
        reply = await ask(embedded, f"web:{port}/proxy/")
    assert (reply.status, b"the page cannot be read" in reply.body) == (500, True)


async def test_what_is_no_http_is_told(embedded: EmbeddedCluster) -> None:
    """And so is a program that hangs up without a word."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"no such thing\r\n\r\n" if b"/talk" in asked else b"")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        talked, silent = [(await ask(embedded, f"web:{port}/proxy/{path}")) for path in ("talk", "silent")]
    assert (talked.status, silent.status) == (503, 503)
    assert b"error trying to reach service: net/http: HTTP/1.x transport connection broken" in talked.body
    assert b"error trying to reach service: EOF" in silent.body


async def test_token_among_subprotocols_is_not_passed_on(embedded: EmbeddedCluster) -> None:
    """A browser has no other place for it."""
    seen = []

    async def refuse(request: web.BaseRequest) -> web.Response:
        seen.append(request.headers.get("Sec-WebSocket-Protocol"))
        return web.Response(status=400)

    hidden = base64.urlsafe_b64encode(embedded.token.encode()).decode().rstrip("=")
    offered = f"base64url.bearer.authorization.k8s.io.{hidden}, chat"
    async with behind(refuse) as port:
        upgrade = {"connection": "Upgrade", "upgrade": "websocket", "authorization": ""}
        answers = [
            await ask(embedded, f"web:{port}/proxy/", sec_websocket_protocol=offered, **more) for more in (upgrade, {})
        ]
    assert [reply.status for reply in answers] == [400, 400]
    assert seen == ["chat", "chat"]


async def test_websocket_in_process_is_refused_in_words(embedded: EmbeddedCluster) -> None:
    """There is no connection that could become one, and the one to the pod is ended."""
    ended = asyncio.Event()

    async def switch(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.receive()
        ended.set()
        return socket

    transport = InProcessTransport(embedded.server, embedded.token, embedded.clock)
    key = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    async with behind(switch) as port:
        request = Request(method="GET", path=f"{PODS}/web:{port}/proxy/", headers=key)
        with pytest.raises(ConnectError, match="a proxied connection needs a cluster over HTTPS"):
            await transport.connect(request, ["chat"])
        async with asyncio.timeout(SECONDS):
            await ended.wait()


async def test_websocket_goes_through(embedded: EmbeddedCluster, tmp_path: Path) -> None:
    """With its subprotocol and its messages; when one side closes it, so does the other."""
    closed = asyncio.Event()

    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("chat",))
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"{request.headers.get('Authorization', 'nobody')}: {message.data}")
        closed.set()
        return socket

    async with (
        asyncio.timeout(SECONDS),
        behind(echo) as port,
        HttpServer(embedded.server, _tls(tmp_path)) as server,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {embedded.token}"}) as session,
        session.ws_connect(f"{server.url}{PODS}/web:{port}/proxy/", protocols=("chat",), ssl=False) as socket,
    ):
        assert socket.protocol == "chat"
        for said in ("hello", "x" * 100_000):
            await socket.send_str(said)
            assert await socket.receive_str() == f"nobody: {said}"
        await socket.close()
        await closed.wait()


async def test_pod_is_left_when_its_client_leaves(embedded: EmbeddedCluster, tmp_path: Path) -> None:
    """Also before it has said a word."""
    came, left = asyncio.Event(), asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        came.set()
        await reader.read()
        left.set()
        writer.close()

    async with (
        asyncio.timeout(SECONDS),
        await asyncio.start_server(wait, "127.0.0.1", 0) as silent,
        HttpServer(embedded.server, _tls(tmp_path)) as server,
    ):
        careless = ssl.create_default_context()
        careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection(*server.address, ssl=careless)
        path = f"{PODS}/web:{silent.sockets[0].getsockname()[1]}/proxy/"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {embedded.token}\r\n\r\n".encode())
        await came.wait()
        writer.transport.abort()
        await left.wait()


async def test_what_is_passed_on_is_on_record(embedded: EmbeddedCluster) -> None:
    """As it begins and when it is over: by whom, how, and to whom, without what is behind."""

    async def hello(_: web.BaseRequest) -> web.Response:
        return web.Response(status=201)

    async with behind(hello) as port:
        await ask(embedded, f"web:{port}/proxy/secret/place")
    records = embedded.audit.records(subresource="proxy", stage="")
    assert [(record.stage, record.code) for record in records] == [("ResponseStarted", 201), ("ResponseComplete", 201)]
    assert {(record.verb, record.resource, record.name) for record in records} == {("get", "pods", f"web:{port}")}
