"""Bytes as lines, of whatever length."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

__all__ = ["lines_of"]


async def lines_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Each complete line that is not empty; what follows the last line end is dropped."""
    begun: list[bytes] = []
    async for chunk in chunks:
        if b"\n" not in chunk:
            begun.append(chunk)
            continue
        *lines, rest = b"".join((*begun, chunk)).split(b"\n")
        begun = [rest] if rest else []
        for line in lines:
            if line:
                yield line
