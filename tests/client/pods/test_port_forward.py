"""Connections to pods, and local ports that lead there."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import WSMsgType, web

from client.pods.pod_server import V4, Script, refuses, serving
from navarch import errors
from navarch._base.clock import ManualClock
from navarch.client import Client, Listener, PodStream
from navarch.client.http import _kept_alive

PORT = 8080
GREETING = (b"\x00" + PORT.to_bytes(2, "little"), b"\x01" + PORT.to_bytes(2, "little"))
REFUSED = b"\x01error forwarding port 8080: dial tcp4 127.0.0.1:8080: connect: connection refused"
SECONDS = 60


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    """A pod that sends back what it is sent."""
    answer = web.WebSocketResponse(protocols=(V4,))
    await answer.prepare(request)
    for message in GREETING:
        await answer.send_bytes(message)
    async for received in answer:
        assert received.type is WSMsgType.BINARY
        await answer.send_bytes(received.data)
    return answer


@asynccontextmanager
async def connected(*messages: bytes, end: str = "close") -> AsyncIterator[PodStream]:
    """A connection to a pod that says this."""
    script = Script(messages, end=end, protocol=V4)  # type: ignore[arg-type] # parametrize knows no Literal
    async with serving(script) as client, client.port_forward("web", PORT) as forward:
        stream = await forward.connect()
        async with stream:
            yield stream
    assert script.queries == ["ports=8080"]


async def read_all(stream: PodStream) -> bytes:
    return b"".join([data async for data in _pieces(stream)])


async def _pieces(stream: PodStream) -> AsyncIterator[bytes]:
    while data := await stream.read():
        yield data


async def test_bytes_go_there_and_back() -> None:
    """The port number at the beginning is not data."""
    async with serving(echo) as client, client.port_forward("web", PORT) as forward:
        stream = await forward.connect()
        await stream.write(b"ping" * 100_000)
        received = b""
        while len(received) < 400_000:
            received += await stream.read()
        assert received == b"ping" * 100_000
        assert stream.received == 400_000


async def test_read_takes_no_more_than_it_is_asked_for() -> None:
    """The rest is for the next one; nothing at all is the end."""
    async with connected(*GREETING, b"\x00abcdef") as stream:
        assert [await stream.read(4), await stream.read(4), await stream.read(4)] == [b"abcd", b"ef", b""]


async def test_port_number_may_come_in_parts() -> None:
    """With data behind it."""
    first, second = PORT.to_bytes(2, "little")
    async with connected(bytes([0, first]), b"", bytes([0, second, 65])) as stream:
        assert await read_all(stream) == b"A"


@pytest.mark.parametrize("message", [b"\x07garbage", b"\x00\x01\x01data", b"\x01\x01"])
async def test_garbage_is_a_bad_answer(message: bytes) -> None:
    """A channel or a port that nobody asked for."""
    async with connected(message) as stream:
        with pytest.raises(errors.BadAnswerError, match="port-forward to pods default/web:8080: expected"):
            await stream.read()


async def test_port_that_nothing_listens_on_is_told() -> None:
    """With the words of the node."""
    async with connected(*GREETING, REFUSED) as stream:
        with pytest.raises(errors.ConnectError, match=r"nothing listens there \(.*: connection refused\)"):
            await stream.read()


async def test_failed_write_tells_the_reason_too() -> None:
    """Whoever writes first learns no less than whoever reads."""
    async with connected(*GREETING, REFUSED, end="break") as stream:
        with pytest.raises(errors.ConnectError, match="nothing listens there"):
            await asyncio.wait_for(_write_until_it_fails(stream), SECONDS)


async def _write_until_it_fails(stream: PodStream) -> None:
    while True:
        await stream.write(b"x" * 1000)


async def test_failure_in_the_middle_is_a_lost_connection() -> None:
    """The pod may have read something."""
    async with connected(*GREETING, b"\x00half", b"\x01connection reset by peer") as stream:
        assert await stream.read() == b"half"
        with pytest.raises(errors.ConnectionLostError, match="reset by peer"):
            await stream.read()


async def test_broken_connection_is_not_the_end() -> None:
    """The end of the pod's data comes with a farewell."""
    async with connected(*GREETING, b"\x00half", end="break") as stream:
        with pytest.raises(errors.ConnectionLostError, match="broke off"):
            await read_all(stream)


async def test_refusal_is_told_in_the_words_of_the_server() -> None:
    """When connecting, not before."""
    play = refuses(404, "pod not found", "text/plain")
    async with serving(play) as client, client.port_forward("web", PORT) as forward:
        with pytest.raises(errors.NotFound, match="pod not found"):
            await forward.connect()


@pytest.mark.parametrize("port", [0, -1, 65536])
async def test_port_must_be_one(port: int) -> None:
    """The server would say less."""
    async with serving(echo) as client:
        with pytest.raises(errors.InvalidValueError, match="from 1 to 65535"):
            async with client.port_forward("web", port):
                pytest.fail("expected no forward")


async def test_forward_closes_what_it_opened() -> None:
    """A connection that nobody closed ends with the forward."""
    script = Script(GREETING, end="silence", protocol=V4)
    async with serving(script) as client:
        async with client.port_forward("web", PORT) as forward:
            stream = await forward.connect()
            assert not stream.received
        await asyncio.wait_for(script.left.wait(), SECONDS)


@asynccontextmanager
async def local(listener: Listener) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of a local program."""
    reader, writer = await asyncio.open_connection(listener.host, listener.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_local_port_leads_to_the_pod() -> None:
    """Several connections at the same time, each on its own."""
    async with serving(echo) as client, client.port_forward("web", PORT) as forward, forward.listen() as listener:
        assert listener.host == "127.0.0.1"
        async with local(listener) as (one, to_one), local(listener) as (two, to_two):
            to_one.write(b"a" * 300_000)
            to_two.write(b"b")
            assert await asyncio.wait_for(two.readexactly(1), SECONDS) == b"b"
            assert await asyncio.wait_for(one.readexactly(300_000), SECONDS) == b"a" * 300_000


async def test_local_connection_is_reset_when_the_pod_refuses(caplog: pytest.LogCaptureFixture) -> None:
    """And the log says why."""
    script = Script((*GREETING, REFUSED), protocol=V4)
    async with serving(script) as client, client.port_forward("web", PORT) as forward, forward.listen() as listener:
        with caplog.at_level(logging.WARNING, "navarch.client"):
            async with local(listener) as (reader, writer):
                writer.write(b"x")
                assert await _rest(reader) == b""
    assert "nothing listens there" in caplog.text


async def test_local_connection_ends_with_the_pods() -> None:
    """In good order, after all of the data."""
    script = Script((*GREETING, b"\x00bye"), protocol=V4)
    async with serving(script) as client, _listening(client) as listener, local(listener) as (reader, _):
        assert await asyncio.wait_for(reader.read(), SECONDS) == b"bye"


async def test_program_that_stops_sending_still_gets_the_answer() -> None:
    """Until the pod has been silent for a while, since nobody can tell it."""
    clock = ManualClock()
    async with (
        serving(echo, clock=clock) as client,
        _listening(client) as listener,
        local(listener) as (reader, writer),
    ):
        writer.write(b"question")
        writer.write_eof()
        async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
            assert await reader.readexactly(8) == b"question"
            ending = tasks.create_task(reader.read())
            while not ending.done():
                await clock.advance(5)
                await asyncio.wait((ending,), timeout=0.01)
        assert ending.result() == b""


@asynccontextmanager
async def _listening(client: Client) -> AsyncIterator[Listener]:
    async with client.port_forward("web", PORT) as forward, forward.listen() as listener:
        yield listener


async def test_listener_ends_its_connections() -> None:
    """Nothing is left of them, and an error of the block stays what it is."""
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def fail_while_connected(client: Client) -> None:
        async with _listening(client) as listener:
            reader, writer = await asyncio.open_connection(listener.host, listener.port)
            opened.append((reader, writer))
            writer.write(b"x")
            assert await asyncio.wait_for(reader.readexactly(1), SECONDS) == b"x"
            raise ZeroDivisionError

    async with serving(echo) as client:
        with pytest.raises(ZeroDivisionError):
            await fail_while_connected(client)
        [(reader, writer)] = opened
        assert await _rest(reader) == b""
        writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """Nothing more, whether the connection was closed or reset."""
    try:
        return await asyncio.wait_for(reader.read(), SECONDS)
    except ConnectionResetError:
        return b""


async def test_port_that_is_taken_is_told() -> None:
    """With the remedy."""
    async with serving(echo) as client, client.port_forward("web", PORT) as forward, forward.listen() as listener:
        with pytest.raises(errors.ConnectError, match="port 0 takes any that is free"):
            async with forward.listen(listener.port):
                pytest.fail("expected no listener")


def test_connections_are_probed_when_silent() -> None:
    """A peer that vanished is noticed within a minute."""
    with _kept_alive((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))) as opened:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count = (
            opened.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle + interval * count <= 60
