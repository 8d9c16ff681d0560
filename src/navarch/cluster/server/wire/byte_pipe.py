"""`BytePipe`: a bounded pipe of bytes from one task to another."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

_MOST: Final = 16
_MOST_BYTES: Final = 1024 * 1024


class BytePipe:
    """One direction of a connection. Few pieces are on it at a time, and few bytes: whoever is ahead waits."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._bytes = 0
        self._moved = asyncio.Event()
        self._is_closed = False

    async def put(self, piece: bytes) -> bool:
        """Adds a piece, waiting for room; False if the lane was closed, and the piece is dropped."""
        while (len(self._pieces) >= _MOST or self._bytes >= _MOST_BYTES) and not self._is_closed:
            await self._moved.wait()
        if not self._is_closed:
            self._pieces.append(piece)
            self._bytes += len(piece)
            self._move()
        return not self._is_closed

    async def get(self) -> bytes | None:
        """The next piece; None when the lane is closed and everything was taken."""
        while not self._pieces and not self._is_closed:
            await self._moved.wait()
        if not self._pieces:
            return None
        self._move()
        piece = self._pieces.popleft()
        self._bytes -= len(piece)
        return piece

    def close(self) -> None:
        """Nothing more is added; who waits goes on. May be called twice."""
        self._is_closed = True
        self._move()

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
