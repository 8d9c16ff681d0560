"""Packed bytes of somebody else, unpacked as far as they may."""

from __future__ import annotations

import zlib
from typing import Final

__all__ = ["unpacked"]

_MOST_MEMBERS: Final = 16
"""What is behind a member is copied before it is read."""
_FORMS: Final = {"gzip": zlib.MAX_WBITS | 16, "deflate": -zlib.MAX_WBITS}


def unpacked(body: bytes, encoding: str, limit: int) -> bytes | None:
    """Returns what a body in `gzip`, `deflate` or nothing stands for; None if that is more than `limit` bytes, or in
    very many members.

    No more than the limit is ever held. Raises zlib.error for what is not packed so, EOFError if its end is missing.

    >>> unpacked(zlib.compress(bytes(1000), wbits=31), "gzip", 999) is None
    True
    """
    if not encoding:
        return body if len(body) <= limit else None
    pieces: list[bytes] = []
    size = 0
    while body or not pieces:  # of gzip there may be several, one behind the other
        if len(pieces) == _MOST_MEMBERS:
            return None
        inflate = zlib.decompressobj(_FORMS[encoding])
        piece = inflate.decompress(body, limit + 1 - size)
        size += len(piece)
        if size > limit:
            return None
        if not inflate.eof:
            raise EOFError("compressed data ended before the end-of-stream marker was reached")
        pieces.append(piece)
        body = inflate.unused_data if encoding == "gzip" else b""
    return b"".join(pieces)
