"""The methods of etcd's JSON gateway: their paths in each version of etcd, and the decoding of responses."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from typing import Final, Generic, TypeVar

import msgspec

from navarch.errors import EtcdError
from navarch.etcd.faults import (
    StreamFault,
)


async def lines_of(chunks: AsyncIterable[bytes], max_bytes: int = 0) -> AsyncIterator[bytes]:
    """Yields the complete, non-empty lines of a stream; drops an incomplete last line.

    Raises `EtcdError` for a line longer than `max_bytes`; 0 means no limit.
    """
    begun: list[bytes] = []
    length = 0
    async for chunk in chunks:
        length += len(chunk)
        if max_bytes and length > max_bytes and b"\n" not in chunk:
            raise EtcdError(f"expected a line of at most {max_bytes} bytes, got more")
        if b"\n" not in chunk:
            begun.append(chunk)
            continue
        *lines, rest = b"".join((*begun, chunk)).split(b"\n")
        begun, length = ([rest] if rest else []), len(rest)
        for line in lines:
            if line:
                yield line


_PREFIXES: Final = ("/v3", "/v3beta", "/v3alpha")
_OLD_PLACES: Final = {
    "/lease/revoke": "/kv/lease/revoke",
    "/lease/timetolive": "/kv/lease/timetolive",
    "/lease/leases": "/kv/lease/leases",
}
"""Methods that had another path before etcd 3.4."""


class Prefixes:
    """Remembers the path prefix of each endpoint's gateway: /v3 since etcd 3.4, /v3beta in 3.3, /v3alpha before.

    A member may restart with another version, so a caller tries every prefix before it gives up.
    """

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def places(self, endpoint: str, path: str) -> Iterator[tuple[str, str]]:
        """Yields each prefix with the path under it, the last known prefix first; `path` begins with /v3."""
        known = self._found.get(endpoint, _PREFIXES[0])
        rest = path.removeprefix(_PREFIXES[0])
        yield known, _there(known, rest)
        for prefix in _PREFIXES:
            if prefix != known:
                yield prefix, _there(prefix, rest)

    def found(self, endpoint: str, prefix: str) -> None:
        """Remembers the prefix of an endpoint."""
        self._found[endpoint] = prefix


def _there(prefix: str, rest: str) -> str:
    return prefix + (rest if prefix == _PREFIXES[0] else _OLD_PLACES.get(rest, rest))


T = TypeVar("T")


class Method(Generic[T]):
    """A unary method of etcd.

    A repeatable method may run twice without harm. `seconds` replaces the usual timeout of a slow method.
    """

    def __init__(
        self, path: str, answer: type[T], *, repeatable: bool, seconds: float = 0.0, verb: str = "POST"
    ) -> None:
        self.path = path
        self.verb = verb
        self.seconds = seconds
        self.repeatable = repeatable
        self.decode = msgspec.json.Decoder(answer, strict=False).decode


class _StreamLine(msgspec.Struct, Generic[T]):
    result: T | None = None
    error: StreamFault | None = None


class Streaming(Generic[T]):
    """A method of etcd that streams responses."""

    def __init__(self, path: str, answer: type[T]) -> None:
        self.path = path
        self.decode: Callable[[bytes], _StreamLine[T]] = msgspec.json.Decoder(_StreamLine[answer], strict=False).decode  # type: ignore[valid-type]
