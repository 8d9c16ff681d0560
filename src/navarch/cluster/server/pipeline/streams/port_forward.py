"""The endpoint `pods/portforward`: carries connections to ports of a pod, over WebSocket channels or SPDY."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Literal, Protocol

import msgspec

from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.streams.node_access import NodeAccess, pod_of
from navarch.cluster.server.pipeline.streams.upgrades import (
    Channels,
    admit,
    asked_protocols,
    choose,
    is_base64,
    is_websocket,
    plain,
    ports,
    stream_protocol,
    unknown,
)
from navarch.cluster.server.wire.byte_pipe import BytePipe
from navarch.cluster.server.wire.request import ApiRequest, Reply, Socket, Upgrade
from navarch.cluster.server.wire.spdy import SpdyConnection, SpdyStream
from navarch.cluster.streams import PodStreams
from navarch.errors import ContainerError

_PIECE: Final = 32 * 1024
_KIND: Final = "streamtype"
_PORT: Final = "port"
_REQUEST: Final = "requestid"
_KINDS: Final = frozenset({"data", "error"})
_MESSAGES: Final = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "")
_STREAMS: Final = ("portforward.k8s.io",)
_TUNNEL: Final = "SPDY/3.1+"
_MOST_PORTS: Final = 128
"""Each has two channels, and a channel is a byte."""
_OVER: Final = frozenset({"Succeeded", "Failed"})


class PortClient(Protocol):
    """The client's side of one connection."""

    async def receive(self) -> bytes | None:
        """What the client sends; None when nothing more comes."""
        ...

    async def send(self, data: bytes) -> None:
        """Carries bytes to the client."""
        ...

    async def finish(self) -> None:
        """The pod sends nothing more. Returns when the client has finished too, or cannot know."""
        ...


class Forwarder(msgspec.Struct, frozen=True):
    """Connects clients with one pod."""

    node: PodStreams
    pod_uid: str

    async def carry(self, port: int, peer: PortClient) -> str:
        """Carries everything between the client and the port until both are done; returns what went wrong, if anything."""
        try:
            reader, writer = await self.node.forward(self.pod_uid, port)
        except ContainerError as error:
            return self._failed(port, error)
        fault = ""
        try:
            await _both_ways(reader, writer, peer)
        except* OSError as errors:
            fault = self._failed(port, errors.exceptions[0])
        finally:
            writer.close()
        return fault

    def _failed(self, port: int, error: BaseException) -> str:
        return f"error forwarding port {port} to pod {self.pod_uid}, uid : {error}"


async def _both_ways(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: PortClient) -> None:
    async with asyncio.TaskGroup() as group:
        upward = group.create_task(_upward(writer, peer))
        while data := await reader.read(_PIECE):
            await peer.send(data)
        await peer.finish()
        upward.cancel()


async def _upward(writer: asyncio.StreamWriter, peer: PortClient) -> None:
    """What the pod no longer reads is dropped: whether it has more to say is for the other direction to find out."""
    while (data := await peer.receive()) is not None:
        with suppress(OSError):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()


class PortChannels:
    """The connections of one WebSocket."""

    def __init__(self, channels: Channels, ports: Sequence[int]) -> None:
        self._channels = channels
        self._ports = [_PortChannel(channels, index, port) for index, port in enumerate(ports)]

    async def run(self, forwarder: Forwarder) -> None:
        """Carries everything until all connections have ended, or the client leaves."""
        for port in self._ports:
            await port.greet()
        async with asyncio.TaskGroup() as group:
            carrying = group.create_task(self._carry(forwarder))
            receiving = group.create_task(self._receive())
            await asyncio.wait((carrying, receiving), return_when=asyncio.FIRST_COMPLETED)
            carrying.cancel()
            receiving.cancel()

    async def _carry(self, forwarder: Forwarder) -> None:
        async with asyncio.TaskGroup() as group:
            for port in self._ports:
                group.create_task(port.carry(forwarder))

    async def _receive(self) -> None:
        while (piece := await self._channels.receive()) is not None:
            number, is_error = divmod(piece.channel, 2)
            if number < len(self._ports) and not is_error and piece.data:
                await self._ports[number].coming.put(piece.data)


class _PortChannel:
    """See `PortClient`."""

    def __init__(self, channels: Channels, index: int, port: int) -> None:
        self._channels = channels
        self._data, self._error = 2 * index, 2 * index + 1
        self._port = port
        self.coming = BytePipe()

    async def greet(self) -> None:
        for channel in (self._data, self._error):
            await self._channels.send(channel, self._port.to_bytes(2, "little"))

    async def carry(self, forwarder: Forwarder) -> None:
        fault = await forwarder.carry(self._port, self)
        self.coming.close()
        if fault:
            await self._channels.send(self._error, fault.encode())

    async def receive(self) -> bytes | None:
        return await self.coming.get()

    async def send(self, data: bytes) -> None:
        await self._channels.send(self._data, data)

    async def finish(self) -> None:
        """The client cannot be told, nor tell."""


class PortStreams:
    """The connections of one client."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._waiting: dict[str, SpdyStream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None

    async def serve(self, socket: Socket) -> None:
        """Until the client leaves."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await SpdyConnection(socket).run(self)
            for task in self._tasks:
                task.cancel()

    def wants(self, headers: Mapping[str, str]) -> bool:
        """See `Service`."""
        port = headers.get(_PORT, "")
        is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 2**16
        return is_port and headers.get(_KIND) in _KINDS

    def begin(self, stream: SpdyStream) -> None:
        """See `Service`. The other stream of the connection may have come before."""
        request = _request_of(stream)
        other = self._waiting.pop(request, None)
        if other is None or other.headers[_KIND] == stream.headers[_KIND]:
            self._waiting[request] = stream
            return
        data, error = (stream, other) if stream.headers[_KIND] == "data" else (other, stream)
        assert self._group is not None
        task = self._group.create_task(self._carry(data, error))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, data: SpdyStream, error: SpdyStream) -> None:
        fault = await self._forwarder.carry(int(data.headers[_PORT]), _DataStream(data))
        if fault:
            await error.send(fault.encode())
            await data.reset()
        else:
            await data.finish()
            data.ignore()
        await error.finish()
        error.ignore()


class _DataStream:
    """See `PortClient`."""

    def __init__(self, stream: SpdyStream) -> None:
        self._stream = stream
        self._ended = asyncio.Event()

    async def receive(self) -> bytes | None:
        data = await self._stream.receive()
        if data is None:
            self._ended.set()
        return data

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def finish(self) -> None:
        await self._stream.finish()
        await self._ended.wait()


def _request_of(stream: SpdyStream) -> str:
    """Which streams belong together; clients that do not say it open them one after the other."""
    number = stream.number if stream.headers[_KIND] == "error" else stream.number - 2
    return stream.headers.get(_REQUEST) or str(number)


async def forward(reaching: NodeAccess, call: ResourceCall) -> Reply:
    """Connections to ports of a pod."""
    asked = ports(call.request)
    reaching.check_create(call)
    await admit(call, "PodPortForwardOptions", ports=asked)
    pod = await pod_of(call)
    node, uid = await reaching.node(call, pod), pod["metadata"]["uid"]
    if pod["status"].get("phase") in _OVER or not node.is_running(uid):
        return plain(500, f'pod not found ("{call.info.name}_{call.info.namespace}")')
    forwarder = Forwarder(node, uid)
    if not is_websocket(call.request):
        protocol = stream_protocol(call.request, _STREAMS)
        return protocol if isinstance(protocol, Reply) else _over_spdy("SPDY/3.1", protocol, forwarder)
    tunnels = [name for name in asked_protocols(call.request) if name.startswith(_TUNNEL) and name.endswith(".k8s.io")]
    return _tunnelled(tunnels, forwarder) if tunnels else _over_channels(call.request, asked, forwarder)


def _over_spdy(kind: Literal["websocket", "SPDY/3.1"], protocol: str, forwarder: Forwarder) -> Reply:
    return Reply(101, upgrade=Upgrade(kind, protocol, PortStreams(forwarder).serve))


def _tunnelled(tunnels: list[str], forwarder: Forwarder) -> Reply:
    """SPDY through a WebSocket, as kubectl does it."""
    inner = [name.removeprefix(_TUNNEL) for name in tunnels]
    chosen = choose(inner, _STREAMS)
    return unknown(inner, _STREAMS) if chosen is None else _over_spdy("websocket", _TUNNEL + chosen, forwarder)


def _over_channels(request: ApiRequest, asked: list[int], forwarder: Forwarder) -> Reply:
    if not asked:
        return plain(400, 'query parameter "port" is required')
    if len(asked) > _MOST_PORTS:
        return plain(400, f"expected at most {_MOST_PORTS} ports, got {len(asked)}")
    if 0 in asked:
        return plain(400, 'port "0" must be > 0')
    protocol = choose(asked_protocols(request), _MESSAGES)
    if protocol is None:
        return plain(403, "")
    serve = partial(_serve_channels, forwarder, asked, protocol)
    return Reply(101, upgrade=Upgrade("websocket", protocol, serve, text=is_base64(protocol)))


async def _serve_channels(forwarder: Forwarder, asked: list[int], protocol: str, socket: Socket) -> None:
    await PortChannels(Channels(socket, protocol), asked).run(forwarder)
