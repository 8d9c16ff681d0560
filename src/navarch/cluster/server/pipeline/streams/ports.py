"""`pods/portforward`."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from navarch.cluster.server.pipeline.endpoints.call import Call
from navarch.cluster.server.pipeline.streams.admitting import admit
from navarch.cluster.server.pipeline.streams.channels import Channels, is_base64
from navarch.cluster.server.pipeline.streams.forwarding import Forwarder
from navarch.cluster.server.pipeline.streams.parameters import ports
from navarch.cluster.server.pipeline.streams.places import pod_of
from navarch.cluster.server.pipeline.streams.port_channels import PortChannels
from navarch.cluster.server.pipeline.streams.port_streams import PortStreams
from navarch.cluster.server.pipeline.streams.reaching import Reaching
from navarch.cluster.server.pipeline.streams.upgrades import (
    asked_protocols,
    choose,
    is_websocket,
    plain,
    stream_protocol,
    unknown,
)
from navarch.cluster.server.wire.request import ApiRequest, Reply, Socket, Upgrade

__all__ = ["forward"]

_MESSAGES: Final = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "")
_STREAMS: Final = ("portforward.k8s.io",)
_TUNNEL: Final = "SPDY/3.1+"
_MOST_PORTS: Final = 128
"""Each has two channels, and a channel is a byte."""
_OVER: Final = frozenset({"Succeeded", "Failed"})


async def forward(reaching: Reaching, call: Call) -> Reply:
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
