"""Writes pass only while this process leads, and end before somebody else may."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from navarch._base.clock import ManualClock
from navarch.client import Client, MergePatch, Options, Request, Response, WebSocket
from navarch.controller.fence import Fence, FencedTransport
from navarch.errors import ConnectionLostError, DeadlineError, NotLeaderError
from navarch.k8s.core.v1 import ConfigMap
from scripted import Scripted, ScriptedTransport, answer, config_map

WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Pipe:
    """A WebSocket that keeps what is sent."""

    protocol = "v5.channel.k8s.io"

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False

    async def send(self, data: bytes) -> None:
        self.sent.append(data)

    async def receive(self) -> bytes | None:
        return b"hello"

    async def close(self) -> None:
        self.closed = True


class Line(ScriptedTransport):
    def __init__(self, *script: Scripted | BaseException) -> None:
        super().__init__(*script)
        self.pipe = Pipe()

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        self.requests.append(request)
        return self.pipe


class Gate:
    """A fenced transport over a script, with the deadline 10 s and the end of the lease 15 s from now."""

    def __init__(self, *script: Scripted | BaseException) -> None:
        self.clock = ManualClock()
        self.fence = Fence(self.clock)
        self.line = Line(*script)
        self.transport = FencedTransport(self.line, self.fence)

    def open(self) -> None:
        now = self.clock.monotonic()
        self.fence.open(deadline=now + 10, lease_ends=now + 15)

    def client(self, **options: Any) -> Client:
        return Client(self.transport, Options(**options), clock=self.clock)


def request(method: str, timeout: float | None = 30.0) -> Request:
    return Request(method=method, path="/api/v1/pods", timeout=timeout)


def found() -> Scripted:
    return answer(config_map())


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_reads_always_pass_as_they_are(method: str) -> None:
    """A standby keeps its caches warm."""
    gate = Gate(found())
    await gate.transport.send(request(method))
    assert gate.line.requests == [request(method)]


@pytest.mark.parametrize("method", WRITES)
async def test_writes_are_refused_before_and_after_leadership(method: str) -> None:
    """Nothing is sent; the error says what to do."""
    gate = Gate(found())
    with pytest.raises(NotLeaderError, match=f"{method} /api/v1/pods: expected this process to lead"):
        await gate.transport.send(request(method))
    gate.open()
    await gate.transport.send(request(method))
    gate.open()
    await gate.clock.advance(10)
    assert gate.fence.remaining() == 0
    with pytest.raises(NotLeaderError):
        await gate.transport.send(request(method))
    assert len(gate.line.requests) == 1


async def test_closing_the_fence_holds_at_once() -> None:
    """However much time was left."""
    gate = Gate()
    gate.open()
    gate.fence.close()
    with pytest.raises(NotLeaderError):
        await gate.transport.send(request("PUT"))


@pytest.mark.parametrize(("asked", "given"), [(30.0, 6.0), (None, 6.0), (2.0, 2.0)])
async def test_time_limit_of_a_write_ends_with_the_lease(asked: float | None, given: float) -> None:
    """A write that begins just before the deadline has until the end of the lease, not longer."""
    gate = Gate(found())
    gate.open()
    await gate.clock.advance(9)
    await gate.transport.send(request("PUT", asked))
    assert gate.line.requests[0].timeout == given


async def test_write_that_the_transport_itself_holds_up_ends_in_time() -> None:
    """A credential may take long to be had; the exchange has not begun then, and its own limit neither."""

    class Slow(Line):
        async def send(self, request: Request) -> Response:
            await asyncio.Event().wait()
            raise AssertionError

    clock = ManualClock()
    fence = Fence(clock)
    fence.open(deadline=0.02, lease_ends=0.02)
    with pytest.raises(DeadlineError, match="before the lease ends"):
        await FencedTransport(Slow(), fence).send(request("PUT"))


async def test_time_limits_of_the_transport_come_through_as_they_are() -> None:
    """Its own error names the server."""
    gate = Gate(DeadlineError("no answer from https://there"))
    gate.open()
    with pytest.raises(DeadlineError, match="https://there"):
        await gate.transport.send(request("PUT"))


async def test_websockets_are_writes() -> None:
    """A command in a pod can do anything: neither is one begun, nor is anything sent to one that runs."""
    gate = Gate()
    with pytest.raises(NotLeaderError):
        await gate.transport.connect(request("GET"), ["v5"])
    gate.open()
    opened = await gate.transport.connect(request("GET"), ["v5"])
    assert isinstance(opened, WebSocket)
    assert gate.line.requests[0].timeout == 15
    await opened.send(b"one")
    await gate.clock.advance(10)
    with pytest.raises(NotLeaderError):
        await opened.send(b"two")
    assert await opened.receive() == b"hello"
    await opened.close()
    assert gate.line.pipe.sent == [b"one"]
    assert gate.line.pipe.closed
    assert opened.protocol == "v5.channel.k8s.io"


async def test_client_does_not_try_again_what_was_refused() -> None:
    """Neither at first nor after a failure during which leadership was lost."""
    gate = Gate()
    client = gate.client()
    for write in (client.patch(ConfigMap, "a", MergePatch({})), client.apply(ConfigMap(name="a"))):
        with pytest.raises(NotLeaderError):
            await write
    assert gate.line.requests == []
    assert gate.clock.monotonic() == 0


async def test_second_attempt_needs_leadership_too() -> None:
    """An apply may be sent twice, but not after the deadline."""
    gate = Gate(ConnectionLostError("lost"))
    gate.fence.open(deadline=0.01, lease_ends=5)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_refused(gate.client().apply(ConfigMap(name="a"))))
        await gate.clock.advance(1)
    assert isinstance(task.result(), NotLeaderError)
    assert len(gate.line.requests) == 1


async def _refused(call: Any) -> NotLeaderError:
    with pytest.raises(NotLeaderError) as caught:
        await call
    return caught.value
