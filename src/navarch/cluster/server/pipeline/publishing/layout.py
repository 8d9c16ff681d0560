"""Answers laid out for people: on many lines, if they ask for it, or look through curl, wget or a browser."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.wire.request import ApiRequest, Reply

__all__ = ["laid_out"]

_PROGRAMS: Final = ("curl", "Wget", "Mozilla/5.0")


def laid_out(request: ApiRequest, reply: Reply) -> Reply:
    """The answer as whoever asks likes to read it; streams and what is no JSON stay as they are."""
    if not _is_wanted(request) or reply.stream is not None or not reply.content_type.startswith("application/json"):
        return reply
    if not reply.body or request.path.startswith(("/openapi", "/.well-known")):
        return reply
    return replace(reply, body=msgspec.json.format(reply.body, indent=2))


def _is_wanted(request: ApiRequest) -> bool:
    if request.parameter("pretty"):
        return request.flag("pretty")
    return request.headers.get("user-agent", "").startswith(_PROGRAMS)
