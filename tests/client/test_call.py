"""What is tried again, when, and for how long."""

import asyncio
import contextlib
from typing import Any

import pytest

from navarch import errors
from navarch._base.clock import ManualClock
from navarch.api import Dynamic, Kind
from navarch.client import Client, MergePatch, RetryPolicy
from scripted import LeapingClock, Scripted, answer, config_map, refusal, scripted

KIND = Kind("", "v1", "ConfigMap", plural="configmaps")
FOUND = answer(config_map())
KINDS = answer(
    {"kind": "APIResourceList", "groupVersion": "v1",
     "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["get"]}]}
)  # fmt: skip
LOST = errors.ConnectionLostError("lost")
REFUSED = errors.ConnectError("nobody there")
LATE = errors.DeadlineError("late")


def put_off(code: int, reason: str = "", after: int = 3) -> Scripted:
    return refusal(code, reason, retryAfterSeconds=after)


async def get(client: Client) -> Any:
    return await client.get(KIND, "a")


async def create(client: Client) -> Any:
    return await client.create(Dynamic(config_map()))


async def apply(client: Client) -> Any:
    return await client.apply(Dynamic(config_map()))


async def replace(client: Client) -> Any:
    return await client.replace(Dynamic(config_map()))


async def patch(client: Client) -> Any:
    return await client.patch(KIND, "a", MergePatch({}))


async def delete(client: Client) -> Any:
    return await client.delete(KIND, "a")


READS = [get, apply]
WRITES = [create, replace, patch, delete]


async def attempts(verb: Any, fault: Scripted | BaseException, **options: Any) -> int:
    """How often the verb asks when the server fails once and would then answer; discovery does not count."""
    client, transport = scripted(KINDS, clock=LeapingClock(), **options)
    await client.discovery.resources("v1")
    transport.script = [fault, FOUND]
    transport.requests.clear()
    with contextlib.suppress(errors.NavarchError):
        await verb(client)
    return len(transport.requests)


@pytest.mark.parametrize("verb", [*READS, *WRITES])
@pytest.mark.parametrize(
    "fault", [REFUSED, put_off(429), put_off(503), put_off(500)], ids=["refused", "429", "503", "500"]
)
async def test_what_was_not_begun_is_tried_again_by_every_verb(verb: Any, fault: Any) -> None:
    """A refused connection, and a server that asks to come again."""
    assert await attempts(verb, fault) == 2


@pytest.mark.parametrize("fault", [LOST, refusal(502), refusal(503), refusal(504), put_off(500, "ServerTimeout")])
@pytest.mark.parametrize("verb", READS)
async def test_what_can_be_done_twice_is_tried_again(verb: Any, fault: Any) -> None:
    """Reads and applies, after a connection that broke off or a gateway's error."""
    assert await attempts(verb, fault) == 2


@pytest.mark.parametrize(
    "fault",
    [
        LOST,
        LATE,
        refusal(500),
        refusal(502),
        refusal(503),
        refusal(504),
        put_off(500, "ServerTimeout"),
        put_off(504, "Timeout"),
    ],
)
@pytest.mark.parametrize("verb", WRITES)
async def test_a_write_whose_fate_is_unknown_is_never_repeated(verb: Any, fault: Any) -> None:
    """It may have been carried out: that is for the caller to find out."""
    assert await attempts(verb, fault) == 1


@pytest.mark.parametrize(
    "fault", [LATE, refusal(400), refusal(403), refusal(404), refusal(409), refusal(422), refusal(500), Scripted(302)]
)
@pytest.mark.parametrize("verb", READS)
async def test_what_waiting_does_not_mend_is_not_tried_again(verb: Any, fault: Any) -> None:
    """Refusals, redirects, internal errors (an apply with an unknown field is one), and limits that have passed."""
    assert await attempts(verb, fault) == 1


async def test_retry_after_is_waited_for() -> None:
    """Not less than the server asks for, and only a little more."""
    client, transport = scripted(put_off(429, after=7), FOUND, clock=(clock := LeapingClock()))
    await client.get(KIND, "a")
    assert len(transport.requests) == 2
    assert 7 <= sum(clock.slept) < 7.2


@pytest.mark.parametrize(
    ("header", "seconds"), [("5", 5), ("²", 0), ("-5", 0), ("Wed, 21 Oct 2030 07:28:00 GMT", 0), ("1e9", 0)]
)
async def test_retry_after_header_counts_whole_seconds(header: str, seconds: int) -> None:
    """What is no number is as good as none."""
    busy = answer({"kind": "Status", "code": 429}, 429, Retry_After=header)
    client, _ = scripted(busy, FOUND, clock=(clock := LeapingClock()))
    await client.get(KIND, "a")
    assert seconds <= sum(clock.slept) < seconds + 0.2


async def test_quiet_that_outlasts_the_call_is_told_at_once() -> None:
    """Nobody waits for hours, and the error says for how long they would."""
    client, transport = scripted(put_off(429, after=7200), clock=(clock := LeapingClock()))
    with pytest.raises(errors.TooManyRequests, match="the server asks for 7200 s of quiet"):
        await client.get(KIND, "a")
    assert (len(transport.requests), clock.slept) == (1, [])


async def test_nothing_is_sent_while_the_server_wants_quiet() -> None:
    """With time standing still, the second request does not come; one moment later it does."""
    clock = ManualClock()
    client, transport = scripted(put_off(503, after=4), FOUND, clock=clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(get(client))
        await clock.until_sleeping()
        await clock.advance(3.9)
        assert len(transport.requests) == 1
        await clock.advance(0.3)
        assert len(transport.requests) == 2


async def test_attempts_have_an_end() -> None:
    """The last failure is what is raised."""
    client, transport = scripted(*[REFUSED] * 3, retry=RetryPolicy(attempts=3))
    with pytest.raises(errors.ConnectError):
        await client.get(KIND, "a")
    assert len(transport.requests) == 3


async def test_waits_grow() -> None:
    """Each is longer than the one before; jitter does not undo that."""
    client, _ = scripted(*[REFUSED] * 8, clock=(clock := LeapingClock()))
    with pytest.raises(errors.ConnectError):
        await client.get(KIND, "a")
    assert len(clock.slept) == 7
    assert clock.slept == sorted(clock.slept)


async def test_deadline_covers_all_attempts() -> None:
    """No wait begins that ends after the limit, and each attempt gets only what is left."""
    client, transport = scripted(*[put_off(503, after=4)] * 9, timeout=10.0, clock=(clock := LeapingClock()))
    with pytest.raises(errors.Unavailable):
        await client.get(KIND, "a")
    assert clock.monotonic() < 10
    given = [request.timeout or 0 for request in transport.requests]
    assert given[0] == 10.0
    assert given == sorted(given, reverse=True)
    assert len(given) == 3


async def test_server_warnings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """However often they come, through whichever twin of the client; unescaped."""
    said = Scripted(200, FOUND.chunks, said=[r'299 - "use \"apps/v1\" \\ instead"', "odd"])
    client, _ = scripted(said, said, said)
    await client.get(KIND, "a")
    await client.get(KIND, "a")
    await client.using(manager="x").get(KIND, "a")
    assert [record.getMessage() for record in caplog.records] == [
        'API server: use "apps/v1" \\ instead',
        "API server: odd",
    ]


async def test_every_answer_is_closed() -> None:
    """Good ones, bad ones and those that break off."""
    script = [Scripted(200, [LOST]), refusal(503), Scripted(503, [LOST]), answer(config_map())]
    client, _ = scripted(*script)
    await client.get(KIND, "a")
    assert all(answer.closed for answer in script)
