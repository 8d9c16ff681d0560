"""Which protocol a client and the server have in common, in the words of Kubernetes where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from navarch.cluster.server.wire.request import ApiRequest, Reply

__all__ = ["asked_protocols", "choose", "is_spdy", "is_upgrade", "is_websocket", "plain", "stream_protocol", "unknown"]

_STREAM_PROTOCOL: Final = "x-stream-protocol-version"


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
