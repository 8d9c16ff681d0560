"""The endpoints `pods/exec` and `pods/attach`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from navarch._base.clock import Clock
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.streams.command_session import CommandChannels, converse, exited, over_streams
from navarch.cluster.server.pipeline.streams.node_access import NodeAccess, container_of, pod_of
from navarch.cluster.server.pipeline.streams.upgrades import (
    admit_command,
    asked_protocols,
    choose,
    flag,
    is_base64,
    is_websocket,
    plain,
    stream_protocol,
)
from navarch.cluster.server.wire.request import ApiRequest, Json, Reply, Socket, Upgrade
from navarch.cluster.streams import ContainerProcess, PodStreams, ProcessOptions
from navarch.errors import ContainerError

_V5: Final = "v5.channel.k8s.io"
_MESSAGES: Final = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io", "")
_SPDY: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")


class _Command(msgspec.Struct, frozen=True):
    """What is to be talked with, and how its end is told."""

    start: Callable[[], Awaitable[ContainerProcess]]
    outcome: Callable[[int], Json]
    options: ProcessOptions


async def execute(reaching: NodeAccess, call: ResourceCall) -> Reply:
    """Runs a program inside a container, and carries its streams."""
    node, uid, container = await _reached(reaching, call, "PodExecOptions")
    options = _options(call.request)
    if not node.is_running(uid, container):
        return plain(500, f'container not found ("{container}")')
    argv = tuple(call.request.query.get("command", ()))
    start = partial(_executed, node, uid, container, argv, options)
    return _upgraded(call, _Command(start, lambda code: exited(code, argv), options))


async def attach(reaching: NodeAccess, call: ResourceCall) -> Reply:
    """Carries the streams of the program that a container runs."""
    node, uid, container = await _reached(reaching, call, "PodAttachOptions")
    options = _options(call.request)
    if not node.is_running(uid, container):
        return plain(500, f"container {container} not found in pod {call.info.name}_{call.info.namespace}")
    start = partial(node.attach, uid, container, options)
    return _upgraded(call, _Command(start, lambda _: exited(0, ()), options))


async def _reached(reaching: NodeAccess, call: ResourceCall, kind: str) -> tuple[PodStreams, str, str]:
    """The node, the pod's uid and the container that are meant; refuses whoever may not reach them."""
    reaching.check_create(call)
    await admit_command(call, kind)
    pod = await pod_of(call)
    container = container_of(pod, call.request.parameter("container"))
    return await reaching.node(call, pod), pod["metadata"]["uid"], container


async def _executed(
    node: PodStreams, uid: str, container: str, argv: tuple[str, ...], options: ProcessOptions
) -> ContainerProcess:
    said = "error executing command in container: failed to exec in container: "
    if not argv:
        raise ContainerError(f"{said}OCI runtime exec failed: exec failed: args must not be empty: unknown")
    try:
        return await node.exec(uid, container, argv, options)
    except ContainerError as error:
        raise ContainerError(f"{said}{error}") from error


def _options(request: ApiRequest) -> ProcessOptions:
    """A terminal has one output for both."""
    tty = flag(request, "tty")
    return ProcessOptions(
        stdin=flag(request, "stdin"),
        stdout=flag(request, "stdout"),
        stderr=flag(request, "stderr") and not tty,
        tty=tty,
    )


def _upgraded(call: ResourceCall, command: _Command) -> Reply:
    request, options = call.request, command.options
    if not (options.stdin or options.stdout or options.stderr):
        return plain(400, "you must specify at least 1 of stdin, stdout, stderr")
    if not is_websocket(request):
        return _over_spdy(call, command)
    asked = asked_protocols(request)
    protocol = _V5 if _V5 in asked else choose(asked, _MESSAGES)
    if protocol is None:
        return plain(403, "")
    serve = partial(_over_channels, command, protocol)
    return Reply(101, upgrade=Upgrade("websocket", protocol, serve, text=is_base64(protocol)))


async def _over_channels(command: _Command, protocol: str, socket: Socket) -> None:
    wire = CommandChannels(socket, protocol)
    await wire.greet(command.options)
    await converse(command.start, wire, command.outcome)


def _over_spdy(call: ResourceCall, command: _Command) -> Reply:
    protocol = stream_protocol(call.request, _SPDY)
    if isinstance(protocol, Reply):
        return protocol
    serve = partial(_over_streams, command, protocol, call.kernel.clock)
    return Reply(101, upgrade=Upgrade("SPDY/3.1", protocol, serve))


async def _over_streams(command: _Command, protocol: str, clock: Clock, socket: Socket) -> None:
    await over_streams(
        socket, protocol, command.options, clock, lambda wire: converse(command.start, wire, command.outcome)
    )
