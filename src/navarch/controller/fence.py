"""`Fence`: keeps a process that no longer leads from writing.

A Lease alone cannot: a process that was paused still believes that it leads when it resumes. So every write checks the
clock first, and no write may take longer than the Lease itself.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

from navarch._base.clock import Clock
from navarch.client import Request, Response, Transport, WebSocket
from navarch.client.transport import WrappedTransport
from navarch.errors import DeadlineError, NotLeaderError

__all__ = ["Fence", "FencedTransport"]

T = TypeVar("T")

_READS = {"GET", "HEAD"}


class Fence:
    """The time until which this process may begin a write, and the time by which a write must have ended. Closed at first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.deadline = -math.inf
        """The moment, by `Clock.monotonic`, after which no write may begin."""
        self.lease_ends = -math.inf
        """The moment from which somebody else may lead."""

    def open(self, *, deadline: float, lease_ends: float) -> None:
        """Lets writes begin until `deadline` and last until `lease_ends`."""
        self.deadline, self.lease_ends = deadline, lease_ends

    def close(self) -> None:
        """Lets no further write begin."""
        self.deadline = self.lease_ends = -math.inf

    def remaining(self) -> float:
        """Returns the seconds in which a write may begin; 0 if none may."""
        return max(0.0, self.deadline - self._clock.monotonic())

    def lease_remaining(self) -> float:
        """Returns the seconds until another process may lead; 0 if one may now."""
        return max(0.0, self.lease_ends - self._clock.monotonic())


class FencedTransport(WrappedTransport):
    """A transport that sends writes only while the fence is open; reads always pass.

    Everything but GET and HEAD is a write, and so is each WebSocket and what is sent on it: a command in a pod can do
    anything. A write that comes too late raises `NotLeaderError` and is not sent; one that is sent has until the end
    of the lease, then `DeadlineError` is raised. Closing it closes the transport within.
    """

    def __init__(self, transport: Transport, fence: Fence) -> None:
        super().__init__(transport)
        self._fence = fence

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        if request.method in _READS:
            return await self._transport.send(request)
        request = _cut(request, self._fence)
        return await _in_time(request, self._transport.send(request))

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """See `Transport.connect`."""
        request = _cut(request, self._fence)
        answer = await _in_time(request, self._transport.connect(request, protocols))
        return _FencedWebSocket(answer, request, self._fence) if isinstance(answer, WebSocket) else answer


class _FencedWebSocket:
    def __init__(self, opened: WebSocket, request: Request, fence: Fence) -> None:
        self._opened = opened
        self._request = request
        self._fence = fence
        self.receive = opened.receive
        self.close = opened.close

    @property
    def protocol(self) -> str:
        return self._opened.protocol

    async def send(self, data: bytes) -> None:
        _refuse_if_closed(self._fence, self._request)
        await self._opened.send(data)


def _cut(request: Request, fence: Fence) -> Request:
    """Returns the request with a time limit that ends before the Lease does; raises `NotLeaderError` if it may not begin."""
    _refuse_if_closed(fence, request)
    left = fence.lease_remaining()
    return replace(request, timeout=left if request.timeout is None else min(request.timeout, left))


def _refuse_if_closed(fence: Fence, request: Request) -> None:
    if fence.remaining() <= 0:
        raise NotLeaderError(
            f"{request.method} {request.path}: expected this process to lead, but its time as the leader is over or has "
            f"not come; nothing was sent, leave it to whoever leads"
        )


async def _in_time(request: Request, answer: Awaitable[T]) -> T:
    """The transport keeps the limit for the exchange alone; waiting for a credential, or a second try, may come on top."""
    try:
        async with asyncio.timeout(request.timeout) as limit:
            return await answer
    except TimeoutError as error:
        if not limit.expired() or isinstance(error, DeadlineError):
            raise
        raise DeadlineError(
            f"{request.method} {request.path}: expected an answer within {request.timeout or 0:g} s, before the lease ends"
        ) from None
