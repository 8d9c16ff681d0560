"""Query parameters of options, as Kubernetes turns them into fields."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.wire.request import ApiRequest
from navarch.cluster.server.wire.status_errors import bad_request

__all__ = ["flag", "ports"]

_MOST_DIGITS: Final = 20


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
