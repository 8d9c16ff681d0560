"""Lines out of a stream of chunks."""

from __future__ import annotations

from collections import deque

from navarch.client.transport import Response
from navarch.errors import ConnectionLostError

__all__ = ["Lines"]


class Lines:
    """The lines of a response's body as they come. A line may be spread over any number of chunks."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._chunks = response.chunks()
        self._ready: deque[bytes] = deque()
        self._begun: list[bytes] = []

    async def next(self) -> bytes | None:
        """The next line without its end; None when the stream has ended.

        Raises `ConnectionLostError` if it ended in the middle of a line.
        """
        while not self._ready:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                self._check_complete()
                return None
            self._take(chunk)
        return self._ready.popleft()

    async def close(self) -> None:
        """Lets go of the connection."""
        await self._response.close()

    def _take(self, chunk: bytes) -> None:
        """Parts of an unfinished line are joined once, when it ends: a line of 10 MB costs no more per byte than a short one."""
        first, *rest = chunk.split(b"\n")
        self._begun.append(first)
        for part in rest:
            self._ready.append(b"".join(self._begun))
            self._begun = [part]

    def _check_complete(self) -> None:
        if any(self._begun):
            raise ConnectionLostError("expected the end of a line, got the end of the stream")
