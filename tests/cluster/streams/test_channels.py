"""Commands and ports over the channels of a WebSocket."""

from __future__ import annotations

import asyncio
import json

import pytest

from cluster.streams.wires import FakeNode, FakeProcess, FakeSocket
from navarch.cluster.server.pipeline.streams.command_session import CommandChannels, converse, exited
from navarch.cluster.server.pipeline.streams.port_forward import Forwarder, PortChannels
from navarch.cluster.server.pipeline.streams.upgrades import ChannelMessage, Channels
from navarch.errors import ContainerError

V5 = "v5.channel.k8s.io"


async def talk(socket: FakeSocket, process: FakeProcess, protocol: str = V5) -> None:
    """One command to its end."""

    async def start() -> FakeProcess:
        return process

    async with asyncio.timeout(30):
        await converse(start, CommandChannels(socket, protocol), lambda code: exited(code, ("x",)))


def sent(socket: FakeSocket) -> list[bytes]:
    """All that the client got."""
    return [socket.sent.get_nowait() for _ in range(socket.sent.qsize())]


async def test_pieces_of_text_protocols_are_base64() -> None:
    """What is not, is passed over."""
    socket = FakeSocket()
    channels = Channels(socket, "base64.channel.k8s.io")
    for message in (b"0aGkK", b"0***", b"", None):
        socket.coming.put_nowait(message)
    assert [await channels.receive(), await channels.receive()] == [ChannelMessage(0, b"hi\n"), None]
    await channels.send(1, b"hi\n")
    assert await socket.got() == b"1aGkK"


@pytest.mark.parametrize("message", [b"\xff", b"\xff\x00\x00"])
async def test_client_that_ends_no_channel_is_left(message: bytes) -> None:
    """One byte must follow."""
    socket = FakeSocket()
    socket.coming.put_nowait(message)
    assert await Channels(socket, V5).receive() is None


async def test_command_gets_its_input_and_its_size() -> None:
    """Sizes that make no sense, and channels that nobody knows, are passed over."""
    socket, process = FakeSocket(), FakeProcess(code=3)
    sizes = [b'{"Width":80,"Height":24}', b"nonsense", b'{"Width":70000,"Height":1}', b'{"Width":-1,"Height":1}']
    for message in (*(b"\x04" + size for size in sizes), b"\x09what", b"\x00hello", b"\xff\x00"):
        socket.coming.put_nowait(message)
    await talk(socket, process)
    *outputs, status = sent(socket)
    assert process.sizes == [(80, 24)]
    assert sorted(outputs) == [b"\x01hello", b"\x02warned"]
    assert json.loads(status[1:])["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}


async def test_client_that_leaves_ends_the_command() -> None:
    """Also one whose input nobody reads."""
    socket, process = FakeSocket(), FakeProcess()
    socket.coming.put_nowait(None)
    await talk(socket, process)
    assert process.closed.is_set()
    stuck = FakeProcess(reads=False)
    socket.coming.put_nowait(b"\x00hello")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):  # the carrier cancels when the connection is lost
            await talk(socket, stuck)
    assert stuck.closed.is_set()


async def test_command_that_cannot_start_is_told() -> None:
    """As a Status, or as a text before version 4."""

    async def start() -> FakeProcess:
        raise ContainerError("no such program")

    for protocol in (V5, "channel.k8s.io"):
        socket = FakeSocket()
        await converse(start, CommandChannels(socket, protocol), lambda code: exited(code, ()))
        said = (await socket.got())[1:]
        text = json.loads(said)["message"] if protocol == V5 else said.decode()
        assert text == "Internal error occurred: no such program"


async def test_ports_are_carried_side_by_side(echo_port: int) -> None:
    """One that is closed is told, the other goes on; the WebSocket ends with the last."""
    socket, node = FakeSocket(), FakeNode({80: echo_port})
    ports = PortChannels(Channels(socket, "v4.channel.k8s.io"), [80, 81])
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(ports.run(Forwarder(node, "pod")))
        greeting = [await socket.got() for _ in range(4)]
        assert greeting == [b"\x00\x50\x00", b"\x01\x50\x00", b"\x02\x51\x00", b"\x03\x51\x00"]
        assert b"connection refused" in await socket.got()
        socket.coming.put_nowait(b"\x02nobody is there")
        socket.coming.put_nowait(b"\x09nor here")
        socket.coming.put_nowait(b"\x00good bye")
        assert await socket.got() == b"\x00good bye"


async def test_client_that_leaves_closes_its_ports(echo_port: int) -> None:
    """No connection is left."""
    socket, node = FakeSocket(), FakeNode({80: echo_port})
    ports = PortChannels(Channels(socket, "v4.channel.k8s.io"), [80])
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(ports.run(Forwarder(node, "pod")))
        socket.coming.put_nowait(b"\x00hello")
        while await socket.got() != b"\x00hello":
            pass
        socket.coming.put_nowait(None)
    assert [writer.is_closing() for writer in node.opened] == [True]
