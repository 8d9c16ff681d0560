"""Where etcd's gateway is: at /v3 since 3.4, at /v3beta in 3.3, and at /v3alpha before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["Prefixes"]

_PREFIXES: Final = ("/v3", "/v3beta", "/v3alpha")
_OLD_PLACES: Final = {
    "/lease/revoke": "/kv/lease/revoke",
    "/lease/timetolive": "/kv/lease/timetolive",
    "/lease/leases": "/kv/lease/leases",
}
"""What lay elsewhere before 3.4."""


class Prefixes:
    """Where the gateway of each endpoint was found last.

    A member may be of another version whenever it starts again, so that every place is looked at before one gives up.
    """

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def places(self, endpoint: str, path: str) -> Iterator[tuple[str, str]]:
        """Under which prefixes to look for a path that begins with /v3, and the path there; the likeliest first."""
        known = self._found.get(endpoint, _PREFIXES[0])
        rest = path.removeprefix(_PREFIXES[0])
        yield known, _there(known, rest)
        for prefix in _PREFIXES:
            if prefix != known:
                yield prefix, _there(prefix, rest)

    def found(self, endpoint: str, prefix: str) -> None:
        """It was there."""
        self._found[endpoint] = prefix


def _there(prefix: str, rest: str) -> str:
    return prefix + (rest if prefix == _PREFIXES[0] else _OLD_PLACES.get(rest, rest))
