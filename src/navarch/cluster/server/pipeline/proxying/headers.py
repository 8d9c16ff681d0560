"""Which headers go on to the place behind, and which come back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from navarch.cluster.server.wire.request import ApiRequest

__all__ = ["coming", "going", "switching"]

_ONE_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""What holds between two neighbours only."""
_CREDENTIALS: Final = (
    "authorization",
    "impersonate-",
    *(f"x-remote-{what}" for what in ("user", "uid", "group", "extra-")),
)
_WEBSOCKET_TOKEN: Final = "base64url.bearer.authorization.k8s.io."  # noqa: S105 - a prefix
_SHARING: Final = frozenset(f"access-control-allow-{what}" for what in ("credentials", "headers", "methods", "origin"))
_FORWARDED_FOR: Final = "x-forwarded-for"

Headers = list[tuple[str, str]]


def going(request: ApiRequest, uri: str) -> Headers:
    """What the place behind is told: all that the client said, but for its credentials, and where it comes from."""
    dropped = _ONE_HOP | _named(request.headers.get("connection", "")) | {"x-forwarded-uri", "expect"}
    trailers = [("te", "trailers")] if "trailers" in request.headers.get("te", "") else []
    return [*_kept(request, dropped), *trailers, *_forwarded_for(request), ("x-forwarded-uri", uri)]


def switching(request: ApiRequest) -> Headers:
    """The same for a connection that is to become something else than HTTP."""
    return [*_kept(request, frozenset()), *_forwarded_for(request)]


def coming(answered: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What the client is told; the values of a repeated header are joined by line breaks."""
    answered = list(answered)
    connection = ",".join(value for name, value in answered if name.lower() == "connection")
    dropped = _ONE_HOP | _SHARING | _named(connection)
    found: dict[str, str] = {}
    for name, value in answered:
        if name.lower() not in dropped:
            found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


def _named(connection: str) -> frozenset[str]:
    """The headers that a `Connection` says are for the neighbour."""
    return frozenset(part.strip().lower() for part in connection.replace("\n", ",").split(","))


def _kept(request: ApiRequest, dropped: frozenset[str]) -> Iterator[tuple[str, str]]:
    for name, joined in request.headers.items():
        if name in dropped or name == _FORWARDED_FOR or name.startswith(_CREDENTIALS):
            continue
        if name == "sec-websocket-protocol":
            joined = _without_token(joined)  # noqa: PLW2901 - the same without a secret
        yield from ((name, value) for value in joined.split("\n"))


def _without_token(protocols: str) -> str:
    offered = [each.strip() for each in protocols.replace("\n", ",").split(",")]
    if not any(each.startswith(_WEBSOCKET_TOKEN) for each in offered):
        return protocols
    return ",".join(each for each in offered if not each.startswith(_WEBSOCKET_TOKEN))


def _forwarded_for(request: ApiRequest) -> Headers:
    """Who asked, behind whoever the client says has asked it."""
    before = _values(request.headers, _FORWARDED_FOR)
    chain = ", ".join([*before, request.source] if request.source else before)
    return [(_FORWARDED_FOR, chain)] if chain else []


def _values(headers: Mapping[str, str], name: str) -> list[str]:
    return headers[name].split("\n") if name in headers else []
