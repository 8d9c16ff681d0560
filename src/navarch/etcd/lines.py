"""Bytes as lines."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from navarch.errors import EtcdError

__all__ = ["lines_of"]


async def lines_of(chunks: AsyncIterable[bytes], max_bytes: int = 0) -> AsyncIterator[bytes]:
    """Each complete line that is not empty; what follows the last line end is dropped.

    Raises `EtcdError` where a line is longer than `max_bytes`; 0 takes any.
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
