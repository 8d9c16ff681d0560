"""Ports over SPDY, as kubectl forwards them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from cluster.streams.wires import FakeNode, FakeSocket, SpdyClient
from navarch.cluster.server.pipeline.streams.port_forward import Forwarder, PortStreams


class Forwarded:
    """A client with its streams."""

    def __init__(self, node: FakeNode) -> None:
        self.node = node
        self.socket = FakeSocket()
        self.client = SpdyClient(self.socket)
        self.serving = PortStreams(Forwarder(node, "pod")).serve(self.socket)

    async def connect(self, number: int, port: str = "80") -> None:
        """Opens the two streams of a connection: `number` for data, the one before for errors."""
        request = {"requestID": str(number), "port": port}
        self.client.open(number - 2, streamType="error", **request)
        self.client.data(number - 2, fin=True)
        self.client.open(number, streamType="data", **request)
        assert [(await self.client.got())[:2] for _ in range(2)] == [("reply", number - 2), ("reply", number)]


@pytest.fixture
async def forwarded(echo_port: int) -> AsyncIterator[Forwarded]:
    """A client of a pod that listens on port 80; all has ended when it has left."""
    made = Forwarded(FakeNode({80: echo_port}))
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(made.serving)
        yield made
        made.client.leave()
    assert all(writer.is_closing() for writer in made.node.opened)


async def test_many_connections_share_one(forwarded: Forwarded) -> None:
    """Each has its own data."""
    for number in (3, 7, 11):
        await forwarded.connect(number)
    for number in (7, 11, 3):
        forwarded.client.data(number, f"hello {number}".encode())
        assert await forwarded.client.got() == ("data", number, f"hello {number}".encode(), False)
    assert len(forwarded.node.opened) == 3


async def test_client_that_finishes_still_gets_the_answer(forwarded: Forwarded) -> None:
    """The pod reads the end, and its own end comes back on both streams."""
    await forwarded.connect(3)
    forwarded.client.data(3, b"last words", fin=True)
    assert await forwarded.client.got() == ("data", 3, b"last words", False)
    assert await forwarded.client.got() == ("data", 3, b"", True)
    assert await forwarded.client.got() == ("data", 1, b"", True)


async def test_pod_that_finishes_first_is_told_to_the_client(forwarded: Forwarded) -> None:
    """The connection is over when the client has finished as well."""
    await forwarded.connect(3)
    forwarded.client.data(3, b"good bye")
    assert await forwarded.client.got() == ("data", 3, b"good bye", False)
    assert await forwarded.client.got() == ("data", 3, b"", True)
    forwarded.client.data(3, b"", fin=True)
    assert await forwarded.client.got() == ("data", 1, b"", True)


async def test_closed_port_is_told_and_others_go_on(forwarded: Forwarded) -> None:
    """On the stream for errors."""
    await forwarded.connect(3, port="81")
    kind, number, text, _ = await forwarded.client.got()
    assert (kind, number) == ("data", 1)
    assert b"error forwarding port 81 to pod pod, uid : failed to connect" in text
    assert [(await forwarded.client.got())[:2] for _ in range(2)] == [("reset", 3), ("data", 1)]
    await forwarded.connect(7)
    forwarded.client.data(7, b"hello")
    assert await forwarded.client.got() == ("data", 7, b"hello", False)


async def test_streams_without_a_port_are_reset(forwarded: Forwarded) -> None:
    """Or with one that is none, or of a kind that nobody knows."""
    for number, (port, kind) in enumerate((("", "data"), ("0", "data"), ("70000", "data"), ("²", "data"), ("80", "x"))):
        forwarded.client.open(2 * number + 1, port=port, streamType=kind)
        assert (await forwarded.client.got())[:2] == ("reset", 2 * number + 1)


async def test_old_clients_name_no_connection(forwarded: Forwarded) -> None:
    """Their streams belong together by their numbers."""
    forwarded.client.open(1, streamType="error", port="80")
    forwarded.client.open(3, streamType="data", port="80")
    assert [(await forwarded.client.got())[:2] for _ in range(2)] == [("reply", 1), ("reply", 3)]
    forwarded.client.data(3, b"hello")
    assert await forwarded.client.got() == ("data", 3, b"hello", False)
