"""HTTP/1.1 requests as kube-apiserver sends them: a head, and a body of a known length or in chunks. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from navarch.webhook.verdict import ReviewError

LONGEST_HEAD = 16 * 1024
CHUNKED = -1
"""The length of a body that comes in chunks."""
_LONGEST_LINE = 1024
_FIELDS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*")
_KNOWN = re.compile(rb"(?im)^(content-length|transfer-encoding|connection|expect):[ \t]*([^\r]*?)[ \t]*\r$")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n\0]*)?")
_TARGET = re.compile(r"/[\x21-\x7e]*")


class RequestHead(NamedTuple):
    """The head of a request, as far as it matters. `length` is that of the body, or `CHUNKED`."""

    method: str
    path: str
    length: int
    keeps_alive: bool
    expects_continue: bool


def parse_head(head: bytes) -> RequestHead:
    """Returns the head from its lines, each with its end. Raises `ReviewError` for one that two readers may read in two ways."""
    line, _, fields = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) != 3 or not _TARGET.fullmatch(words[1]) or not _FIELDS.fullmatch(fields):
        raise ReviewError(400, "expected the head of an HTTP request, got something else")
    method, target, version = words
    if version not in {"HTTP/1.1", "HTTP/1.0"}:
        raise ReviewError(505, f"expected HTTP/1.1, got {version[:20]}")
    known = _known(fields)
    options = {option.strip() for option in known.get(b"connection", b"").split(b",")}
    keeps_alive = b"close" not in options and (version == "HTTP/1.1" or b"keep-alive" in options)
    expected = known.get(b"expect", b"")
    if expected not in {b"", b"100-continue"}:
        raise ReviewError(417, f"expected no expectation but 100-continue, got {expected[:50].decode('latin-1')}")
    return RequestHead(method, target.partition("?")[0], _length(known), keeps_alive, bool(expected))


def _known(fields: bytes) -> dict[bytes, bytes]:
    known: dict[bytes, bytes] = {}
    for name, value in _KNOWN.findall(fields):
        name, value = name.lower(), value.lower()  # noqa: PLW2901 - as they are compared
        if name == b"connection":
            known[name] = known.get(name, b"") + b"," + value
        elif known.setdefault(name, value) != value:
            raise ReviewError(400, f"expected one {name.decode()}, got two that differ")
    return known


def _length(known: dict[bytes, bytes]) -> int:
    coding, length = known.get(b"transfer-encoding"), known.get(b"content-length")
    if coding is not None:
        if length is not None:
            raise ReviewError(400, "expected Content-Length or Transfer-Encoding, got both")
        if coding != b"chunked":
            raise ReviewError(501, f"expected Transfer-Encoding chunked, got {coding[:50].decode('latin-1')}")
        return CHUNKED
    if length is None:
        return 0
    if not length.isdigit() or len(length) > 15:
        raise ReviewError(400, f"expected a number as Content-Length, got {length[:50].decode('latin-1')}")
    return int(length)


class ChunkedBody:
    """A body that comes in chunks. Extensions of chunks and trailers are read and dropped."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._body = bytearray()
        self._left = 0
        """Bytes of the current chunk that are still to come; with the end of its line, which is two bytes."""
        self._is_last = False
        self._trailer_bytes = 0

    def feed(self, data: bytearray) -> bytes | None:
        """Takes what it can from the front of `data`; returns the body once it is complete.

        Raises `ReviewError` for a malformed body, and with 413 for one that is too large.
        """
        while True:
            if self._left:
                if not self._take(data):
                    return None
                continue
            end = data.find(b"\r\n", 0, _LONGEST_LINE)
            if end < 0:
                if len(data) >= _LONGEST_LINE:
                    raise ReviewError(400, "expected the size of a chunk, got a longer line")
                return None
            line = bytes(data[:end])
            del data[: end + 2]
            if not self._is_last:
                self._begin(line)
            elif not line:
                return bytes(self._body)
            else:
                self._drop_trailer(line)

    def _take(self, data: bytearray) -> bool:
        """Takes bytes of the current chunk; returns whether that is complete."""
        inside = min(len(data), max(self._left - 2, 0))
        self._body += data[:inside]
        del data[:inside]
        self._left -= inside
        if self._left > 2 or len(data) < 2:
            return False
        if data[:2] != b"\r\n":
            raise ReviewError(400, "expected the end of a chunk, got more of it")
        del data[:2]
        self._left = 0
        return True

    def _begin(self, line: bytes) -> None:
        found = _CHUNK_SIZE.fullmatch(line)
        if found is None:
            raise ReviewError(400, "expected the size of a chunk, got something else")
        size = int(found[1], 16)
        if len(self._body) + size > self._largest:
            raise ReviewError(413, f"expected a review of at most {self._largest} bytes, got more")
        self._is_last = not size
        self._left = size + 2 if size else 0

    def _drop_trailer(self, line: bytes) -> None:
        self._trailer_bytes += len(line)
        if self._trailer_bytes > LONGEST_HEAD:
            raise ReviewError(431, f"expected at most {LONGEST_HEAD} bytes of trailers, got more")
