"""The logs of a container, read whole or followed line by line."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Self

from navarch.api import times
from navarch.client.rest_client import RestClient, query_of
from navarch.client.subresources import PODS
from navarch.client.transport import Request, Response

_LONGEST_LINE = 2**20


class LogLines:
    """The lines of a log as they are written, as text without the line end; bytes that are not UTF-8 are replaced.

    Ends when the container does; raises `ConnectionLostError` if the connection breaks first. Lines that nobody takes
    stay with the server. A line of more than 1 MiB comes in pieces.
    """

    def __init__(self, response: Response) -> None:
        self._chunks = response.chunks()
        self._ready: deque[bytes] = deque()
        self._begun: list[bytes] = []
        self._begun_size = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while not self._ready:
            chunk = await anext(self._chunks, None)
            if chunk is not None:
                self._take(chunk)
            elif self._begun_size:
                self._finish_line()
            else:
                raise StopAsyncIteration
        return self._ready.popleft().decode(errors="replace")

    def _take(self, chunk: bytes) -> None:
        first, *rest = chunk.split(b"\n")
        self._begin(first)
        for part in rest:
            self._finish_line()
            self._begin(part)
        if self._begun_size >= _LONGEST_LINE:
            self._finish_line()

    def _begin(self, part: bytes) -> None:
        self._begun.append(part)
        self._begun_size += len(part)

    def _finish_line(self) -> None:
        self._ready.append(b"".join(self._begun))
        self._begun, self._begun_size = [], 0


class Logs(RestClient):
    """logs and follow_logs."""

    async def logs(
        self,
        name: str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        previous: bool = False,
        since_seconds: int | None = None,
        since_time: datetime | None = None,
        tail: int | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> str:
        """What a container has written so far, as text; bytes that are not UTF-8 are replaced.

        `previous` asks for the container before the last restart, `tail` for that many lines from the end. Raises
        `BadRequest` if the container has not started yet, or if there are several and none is named.
        """
        query = query_of(
            container=container,
            previous=previous,
            sinceSeconds=since_seconds,
            sinceTime=since_time and times.format_time(since_time),
            tailLines=tail,
            timestamps=timestamps,
            limitBytes=limit_bytes,
        )
        request = self._log_request(name, namespace, query)
        answer = await self._caller.call(request, self._what("logs of", PODS, namespace, name))
        return answer.body.decode(errors="replace")

    @asynccontextmanager
    async def follow_logs(
        self,
        name: str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        since_seconds: int | None = None,
        since_time: datetime | None = None,
        tail: int | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[LogLines]:
        """What a container has written and goes on to write, line by line until it ends.

        Use it as `async with client.follow_logs("web") as lines: async for line in lines`. The client's time limit
        holds for the opening alone. Raises like `logs`.
        """
        query = query_of(
            container=container,
            follow=True,
            sinceSeconds=since_seconds,
            sinceTime=since_time and times.format_time(since_time),
            tailLines=tail,
            timestamps=timestamps,
            limitBytes=limit_bytes,
        )
        request = self._log_request(name, namespace, query, long_lived=True)
        response = await self._caller.open(request, self._what("logs of", PODS, namespace, name))
        try:
            yield LogLines(response)
        finally:
            await response.close()

    def _log_request(
        self, name: str, namespace: str | None, query: Mapping[str, str], *, long_lived: bool = False
    ) -> Request:
        return Request(
            method="GET",
            path=self._path(PODS, namespace, name, "log"),
            query=query,
            headers={"Accept": "application/json, */*"},
            timeout=self.options.timeout,
            long_lived=long_lived,
        )
