"""The tools of this suite do what they say: a fault that does not strike would prove nothing."""

import asyncio
from typing import Any

import pytest

from chaos.faults import (
    Answered,
    AnswerLost,
    CutInMidObject,
    Delayed,
    Fault,
    FaultyTransport,
    Garbled,
    GoneEvent,
    Refused,
    Stalled,
    lists,
    watches,
)
from gadgets import Gadget
from model_server import ModelServer
from navarch.client import Client, Options, RetryPolicy, WatchOptions
from navarch.errors import (
    BadAnswerError,
    ConnectError,
    ConnectionLostError,
    Forbidden,
    Gone,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from scripted import LeapingClock


def faulty_client(attempts: int = 1) -> tuple[Client, FaultyTransport, ModelServer, LeapingClock]:
    """A client of a model server by way of faults; it tries once unless told otherwise."""
    clock = LeapingClock()
    server = ModelServer(Gadget, clock=clock)
    transport = FaultyTransport(server, clock)
    return Client(transport, Options(retry=RetryPolicy(attempts=attempts)), clock=clock), transport, server, clock


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (410, Gone),
        (429, TooManyRequests),
        (500, ServerError),
        (503, ServerError),
        (403, Forbidden),
        (401, Unauthorized),
    ],
)
async def test_answer_strikes_as_often_as_told(code: int, error: type[Exception]) -> None:
    """And only what it was meant for."""
    client, transport, server, _ = faulty_client()
    rule = transport.inject(Answered(code), on=lists, times=2)
    await client.create(Gadget(name="a"))
    for _ in range(2):
        with pytest.raises(error):
            await client.list(Gadget)
    assert len(await client.list(Gadget)) == 1
    assert (rule.struck, len(server.requests), len(transport.requests)) == (2, 2, 4)


async def test_retry_after_is_heeded() -> None:
    """The header reaches the client."""
    client, transport, _, clock = faulty_client(attempts=3)
    transport.inject(Answered(429, retry_after=7), times=1)
    await client.list(Gadget)
    assert clock.monotonic() >= 7


async def test_refused_request_was_never_sent_and_a_lost_answer_was() -> None:
    """Only one of the two has made something."""
    client, transport, server, _ = faulty_client()
    transport.inject(Refused(), times=None)
    with pytest.raises(ConnectError):
        await client.create(Gadget(name="a"))
    transport.heal()
    with pytest.raises(NotFound):
        await client.get(Gadget, "a")
    transport.inject(AnswerLost())
    with pytest.raises(ConnectionLostError):
        await client.create(Gadget(name="a"))
    assert len(server.objects(Gadget)) == 1


async def test_delays_go_by_the_clock() -> None:
    """Before the request and after the answer."""
    client, transport, _, clock = faulty_client()
    transport.inject(Delayed(request=2.0, answer=3.0))
    await client.list(Gadget)
    assert clock.slept == [2.0, 3.0]


@pytest.mark.parametrize(
    ("fault", "error"),
    [(GoneEvent(), Gone), (Garbled(), BadAnswerError)],
)
async def test_stream_that_ends_badly_ends_the_watch(fault: Fault, error: type[Exception]) -> None:
    """Even one that was open before the fault was injected."""
    client, transport, _, _ = faulty_client()
    async with client.watch(Gadget) as watch:
        transport.inject(fault, on=watches)
        await client.create(Gadget(name="a"))
        with pytest.raises(error):
            await anext(watch)


@pytest.mark.parametrize("fault", [CutInMidObject(), CutInMidObject(silent=True), Stalled()])
async def test_stream_that_breaks_is_resumed(fault: Fault) -> None:
    """The event that the fault swallowed comes again, once."""
    client, transport, server, clock = faulty_client()
    async with client.watch(Gadget, options=WatchOptions(timeout_seconds=5)) as watch, asyncio.timeout(30):
        rule = transport.inject(fault, on=watches)
        seen: list[Any] = []
        for name in ("a", "b"):
            await client.create(Gadget(name=name))
            seen.append((await anext(watch)).object.name)
        assert seen == ["a", "b"]
        assert rule.struck == 1
        assert len([request for request in server.requests if watches(request)]) == 2
        assert not isinstance(fault, Stalled) or 15.0 in clock.slept


async def test_stream_takes_its_time() -> None:
    """Each line waits for the clock."""
    client, transport, _, clock = faulty_client()
    async with client.watch(Gadget) as watch:
        transport.pace = 2.0
        for name in ("a", "b"):
            await client.create(Gadget(name=name))
            assert (await anext(watch)).object.name == name
    assert clock.slept == [2.0, 2.0]
