"""Upgrades of connections: admission, options, protocol negotiation, and the channels of a WebSocket."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.wire.request import ApiRequest, Reply, Socket
from navarch.cluster.server.wire.status_errors import bad_request

_CLOSED: Final = 255
_ZERO: Final = ord("0")
_FLAGS: Final = ("stdin", "stdout", "stderr", "tty")
_MOST_DIGITS: Final = 20
_STREAM_PROTOCOL: Final = "x-stream-protocol-version"


class ChannelMessage(NamedTuple):
    """What came on a channel; None if nothing more will come on it."""

    channel: int
    data: bytes | None


def is_base64(protocol: str) -> bool:
    """Whether the messages of that protocol are text.

    >>> [is_base64(name) for name in ("v4.base64.channel.k8s.io", "v5.channel.k8s.io", "")]
    [True, False, False]
    """
    return "base64." in protocol


class Channels:
    """The channels of one WebSocket."""

    def __init__(self, socket: Socket, protocol: str) -> None:
        self._socket = socket
        self._base64 = is_base64(protocol)
        self._can_close = protocol.startswith("v5.")

    async def receive(self) -> ChannelMessage | None:
        """The next piece; None when the client has closed, or has broken the protocol."""
        while (message := await self._socket.receive()) is not None:
            if self._can_close and message[:1] == bytes([_CLOSED]):
                return ChannelMessage(message[1], None) if len(message) == 2 else None
            if message and (piece := self._decoded(message)) is not None:
                return piece
        return None

    def _decoded(self, message: bytes) -> ChannelMessage | None:
        if not self._base64:
            return ChannelMessage(message[0], message[1:])
        try:
            return ChannelMessage(message[0] - _ZERO, b64decode(message[1:], validate=True))
        except binascii.Error:
            return None

    async def send(self, channel: int, data: bytes) -> None:
        """Sends a message on a channel; waits while the client takes no more."""
        if self._base64:
            await self._socket.send(bytes([_ZERO + channel]) + b64encode(data))
        else:
            await self._socket.send(bytes([channel]) + data)


async def admit(call: ResourceCall, kind: str, **options: Any) -> None:
    """Refuses what admission does not let pass. Kubernetes asks before it looks for the pod; what is empty is left out."""
    value = {"kind": kind, "apiVersion": "v1", **{name: given for name, given in options.items() if given}}
    attributes = await call.admitted("CONNECT", value, None, {})
    await call.validated(attributes, attributes.value)


async def admit_command(call: ResourceCall, kind: str) -> None:
    """The same for commands: which streams, of which container, and what is to be run there."""
    request: ApiRequest = call.request
    flags = {name: flag(request, name) for name in _FLAGS}
    command = list(request.query.get("command", ())) if kind == "PodExecOptions" else []
    await admit(call, kind, **flags, container=request.parameter("container"), command=command)


def flag(request: ApiRequest, name: str) -> bool:
    """Whether a parameter is given and not false; anything else counts as true.

    >>> [flag(ApiRequest(method="GET", path="/", query={"tty": [text]}), "tty") for text in ("1", "", "no", "0", "False")]
    [True, True, True, False, False]
    """
    return name in request.query and request.parameter(name).lower() not in {"0", "false"}


def ports(request: ApiRequest) -> list[int]:
    """The ports that are asked for, one by one or joined by commas; refuses with 400 what is none.

    >>> ports(ApiRequest(method="GET", path="/", query={"ports": ["80,443", "9"]}))
    [80, 443, 9]
    """
    return [_port(part) for text in request.query.get("ports", ()) for part in text.split(",")]


def _port(text: str) -> int:
    fault = "" if text.isascii() and text.isdecimal() else "invalid syntax"
    if not fault and (len(text) > _MOST_DIGITS or int(text) >= 2**16):
        fault = "value out of range"
    if fault:
        raise bad_request(f'cannot convert to []int32: strconv.ParseUint: parsing "{text}": {fault}')
    return int(text)


def plain(status: int, text: str, **headers: str) -> Reply:
    """An answer in plain text: what comes from nodes is no Status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, text.encode(), content_type="text/plain; charset=utf-8", headers=named)


def is_upgrade(request: ApiRequest) -> bool:
    """Whether the client wants to speak something else than HTTP."""
    return "upgrade" in request.headers.get("connection", "").lower() and bool(request.headers.get("upgrade"))


def is_websocket(request: ApiRequest) -> bool:
    """Whether it wants a WebSocket."""
    return request.headers.get("upgrade", "").lower() == "websocket"


def is_spdy(request: ApiRequest) -> bool:
    """Whether it wants SPDY."""
    return request.headers.get("upgrade", "").lower() == "spdy/3.1"


def asked_protocols(request: ApiRequest) -> list[str]:
    """The subprotocols of a WebSocket that the client speaks; a client that names none takes the oldest."""
    text = request.headers.get("sec-websocket-protocol", "").replace("\n", ",")
    return [part.strip() for part in text.split(",") if part.strip()] or [""]


def choose(asked: Sequence[str], served: Sequence[str]) -> str | None:
    """The first protocol of the client that is served."""
    return next((each for each in asked if each in served), None)


def stream_protocol(request: ApiRequest, served: Sequence[str]) -> str | Reply:
    """The protocol inside SPDY, or the refusal."""
    text = request.headers.get(_STREAM_PROTOCOL, "").replace("\n", ",")
    asked = [part.strip() for part in text.split(",") if part.strip()]
    if not asked:
        return plain(400, "unable to upgrade: X-Stream-Protocol-Version is required\n")
    return choose(asked, served) or unknown(asked, served)


def unknown(asked: Sequence[str], served: Sequence[str]) -> Reply:
    """403: nothing in common."""
    said = f"client supports [{' '.join(asked)}], server accepts [{' '.join(served)}]"
    text = f"unable to upgrade: unable to negotiate protocol: {said}\n"
    return plain(403, text, X_Accepted_Stream_Protocol_Versions=", ".join(served))
