"""Pieces on their way from one task to another."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

__all__ = ["Lane"]

_MOST: Final = 16


class Lane:
    """One direction of a connection. Few pieces are on it at a time: whoever is ahead waits."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._moved = asyncio.Event()
        self._is_closed = False

    async def put(self, piece: bytes) -> bool:
        """Adds a piece, waiting for room; False if the lane was closed, and the piece is dropped."""
        while len(self._pieces) >= _MOST and not self._is_closed:
            await self._moved.wait()
        if not self._is_closed:
            self._pieces.append(piece)
            self._move()
        return not self._is_closed

    async def get(self) -> bytes | None:
        """The next piece; None when the lane is closed and everything was taken."""
        while not self._pieces and not self._is_closed:
            await self._moved.wait()
        if not self._pieces:
            return None
        self._move()
        return self._pieces.popleft()

    def close(self) -> None:
        """Nothing more is added; who waits goes on. May be called twice."""
        self._is_closed = True
        self._move()

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
