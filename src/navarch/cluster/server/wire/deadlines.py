"""How long a client wants to wait for an answer: `?timeout=` in the query."""

from __future__ import annotations

import re
from typing import Final

from navarch.cluster.server.wire.request import ApiRequest, RequestInfo
from navarch.cluster.server.wire.status_errors import bad_request
from navarch.schema.values.violations import go_quoted

__all__ = ["duration_fault", "refuse_malformed_timeout"]

_LONG: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_NUMBER: Final = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)")
_UNIT: Final = re.compile(r"[^\d.]*")
_UNITS: Final = frozenset({"ns", "us", "µs", "μs", "ms", "s", "m", "h"})


def refuse_malformed_timeout(request: ApiRequest, info: RequestInfo) -> None:
    """400 for a time that is none, whoever asks. One that can be read is not needed: every answer is soon there.

    What lasts long, such as a watch, has no such time.
    """
    given = request.parameter("timeout")
    if not given or info.verb == "watch" or info.subresource.partition("/")[0] in _LONG:
        return
    if fault := duration_fault(given):
        raise bad_request(f"invalid timeout specified in the request URL - {fault}")


def duration_fault(text: str) -> str:
    """What Go's `time.ParseDuration` says about a text that is no duration; empty if it is one.

    >>> duration_fault("1h2.5s"), duration_fault("soon"), duration_fault("5")
    ('', 'time: invalid duration "soon"', 'time: missing unit in duration "5"')
    """
    place = 1 if text[:1] in {"+", "-"} else 0
    if text[place:] == "0":
        return ""
    invalid = f"time: invalid duration {go_quoted(text)}"
    while place < len(text):
        if (number := _NUMBER.match(text, place)) is None:
            return invalid
        unit = _UNIT.match(text, number.end())
        assert unit is not None
        if not unit[0]:
            return f"time: missing unit in duration {go_quoted(text)}"
        if unit[0] not in _UNITS:
            return f"time: unknown unit {go_quoted(unit[0])} in duration {go_quoted(text)}"
        place = unit.end()
    return "" if text not in {"", "+", "-"} else invalid
