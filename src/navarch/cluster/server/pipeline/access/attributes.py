"""What of a request counts for whether it is allowed."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from navarch.api.selectors import Fields, Operator
from navarch.cluster.server.wire.request import ApiRequest, RequestInfo
from navarch.errors import InvalidValueError

__all__ = ["attributes_of"]

_NO_NAMES: Final = frozenset({"", ".", ".."})


def attributes_of(request: ApiRequest, info: RequestInfo) -> RequestInfo:
    """What the authorizer is to be asked: a list or watch of one object by its name is about that name, and whatever comes
    after a subresource does not count.

    >>> request = ApiRequest(method="GET", path="/api/v1/pods", query={"fieldSelector": ["metadata.name=a"]})
    >>> attributes_of(request, RequestInfo("list", "/api/v1/pods", resource="pods")).name
    'a'
    """
    if "/" in info.subresource:
        info = replace(info, subresource=info.subresource.partition("/")[0])
    if info.name or info.verb not in {"list", "watch"} or "fieldSelector" not in request.query:
        return info
    return replace(info, name=_selected_name(request.parameter("fieldSelector")))


def _selected_name(selector: str) -> str:
    try:
        requirements = Fields(selector).requirements
    except InvalidValueError:
        return ""
    named = (each for each in requirements if each.path == "metadata.name" and each.operator is Operator.EQUALS)
    name = next((each.value for each in named), "")
    return "" if name in _NO_NAMES or "/" in name or "%" in name else name
