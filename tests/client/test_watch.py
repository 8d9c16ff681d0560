"""One stream of changes over many connections, played from a script."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch import errors
from navarch.api import Kind
from navarch.client import MetadataOnly, Watch, WatchOptions
from scripted import LeapingClock, Scripted, ScriptedTransport, answer, config_map, event, page, refusal, scripted

KIND = Kind("", "v1", "ConfigMap", plural="configmaps")
LOST = errors.ConnectionLostError("lost")
INITIAL_END = {"annotations": {"k8s.io/initial-events-end": "true"}}


def added(version: int) -> bytes:
    return event("ADDED", config_map(f"c{version}", version))


def bookmark(version: int, **metadata: Any) -> bytes:
    return event("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": str(version), **metadata}})


def stream(*chunks: bytes | BaseException) -> Scripted:
    """A connection that brings this and then stays silent for ever, as far as the test is concerned."""
    return Scripted(200, chunks)


async def names(watch: Watch[Any], count: int) -> list[str]:
    return [(await anext(watch)).object.name for _ in range(count)]


def resumed_at(transport: ScriptedTransport) -> list[str]:
    return [str(sent.query["resourceVersion"]) for sent in transport.requests if sent.query.get("watch")]


async def test_watch_resumes_at_the_last_revision_it_saw() -> None:
    """Over clean ends, broken ends and bookmarks, every event comes once and in order."""
    client, transport = scripted(
        stream(added(2), added(3)), stream(added(4), LOST), stream(bookmark(9), LOST), stream(added(10))
    )
    assert await names(client.watch(KIND, resource_version="1"), 4) == ["c2", "c3", "c4", "c10"]
    assert resumed_at(transport) == ["1", "3", "4", "9"]


async def test_event_that_was_cut_in_the_middle_comes_once_and_whole() -> None:
    """Whether the connection breaks or ends in good order, what was half there is asked for again."""
    for ending in ([LOST], []):
        client, transport = scripted(stream(added(2), added(3)[:20], *ending), stream(added(3)))
        assert await names(client.watch(KIND, resource_version="1"), 2) == ["c2", "c3"]
        assert resumed_at(transport) == ["1", "2"]


@given(st.data())
def test_events_come_through_whatever_the_chunks_and_breaks(data: st.DataObject) -> None:
    """Cut anywhere, into any chunks, with any number of broken connections: nothing lost, nothing twice."""
    total = data.draw(st.integers(1, 8))
    script: list[Scripted] = []
    seen = 0
    while seen < total:
        whole = b"".join(added(version) for version in range(seen + 1, total + 1))
        cut = data.draw(st.integers(0, len(whole)) if len(script) < 6 else st.just(len(whole)))
        places = sorted(data.draw(st.lists(st.integers(0, cut), max_size=5)))
        chunks = [whole[start:end] for start, end in zip([0, *places], [*places, cut], strict=True)]
        script.append(stream(*chunks, LOST))
        seen += whole[:cut].count(b"\n")
    client, transport = scripted(*script)
    watch = client.watch(KIND, resource_version="0")
    assert asyncio.run(names(watch, total)) == [f"c{version}" for version in range(1, total + 1)]
    assert not transport.script


async def test_watch_from_now_begins_when_it_is_entered() -> None:
    """The revision is that of the list at that moment, so that no later change is missed."""
    client, transport = scripted(page(config_map(), version=41), stream(added(42)))
    async with client.watch(KIND) as watch:
        assert [sent.query.get("limit") for sent in transport.requests] == ["1", None]
        assert await names(watch, 1) == ["c42"]
    assert resumed_at(transport) == ["41"]


async def test_initial_events_are_asked_for_and_end_with_their_bookmark() -> None:
    """They have all the time they need; after them the watch goes on at their revision, over connections as usual."""
    client, transport = scripted(stream(added(3), added(1), bookmark(7, **INITIAL_END)), stream(added(8)))
    options = WatchOptions(initial=True, bookmarks=True)
    watch = client.watch(KIND, options=options)
    assert [(await anext(watch)).type for _ in range(4)] == ["ADDED", "ADDED", "BOOKMARK", "ADDED"]
    first, second = transport.requests
    assert first.query["sendInitialEvents"] == "true"
    assert first.query["resourceVersionMatch"] == "NotOlderThan"
    assert "sendInitialEvents" not in second.query
    assert (first.query["timeoutSeconds"], second.query["timeoutSeconds"]) == ("3600", "30")
    assert resumed_at(transport) == ["", "7"]


async def test_initial_events_that_break_off_are_an_error() -> None:
    """They cannot be resumed: their revisions are not in order."""
    client, _ = scripted(stream(added(3), LOST))
    watch = client.watch(KIND, options=WatchOptions(initial=True))
    await anext(watch)
    with pytest.raises(errors.ConnectionLostError):
        await anext(watch)


@pytest.mark.parametrize(
    "ending",
    [
        stream(event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})),
        refusal(410, "Expired", "too old"),
    ],
)
async def test_revision_that_is_gone_ends_the_watch(ending: Scripted) -> None:
    """As an event and as an answer."""
    client, _ = scripted(ending)
    with pytest.raises(errors.Gone, match="too old"):
        await anext(client.watch(KIND, resource_version="1"))


@pytest.mark.parametrize(
    ("code", "expected"), [(401, errors.Unauthorized), (403, errors.Forbidden), (404, errors.NotFound)]
)
async def test_refusal_ends_the_watch(code: int, expected: type[Exception]) -> None:
    """Also after it has run for a while."""
    client, _ = scripted(stream(added(2), LOST), refusal(code))
    watch = client.watch(KIND, resource_version="1")
    await anext(watch)
    with pytest.raises(expected):
        await anext(watch)


async def test_server_that_is_away_is_waited_for_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    """Longer each time, well beyond the retries of one call."""
    away: list[Any] = [errors.ConnectError("nobody there")] * 40
    client, _ = scripted(stream(added(2), LOST), *away, stream(added(3)), clock=(clock := LeapingClock()))
    assert await names(client.watch(KIND, resource_version="1"), 2) == ["c2", "c3"]
    assert clock.monotonic() > 40
    assert "nobody there" in caplog.text
    assert "the watch goes on in" in caplog.text


async def test_watch_that_cannot_begin_says_so() -> None:
    """A first connection that cannot be had is an error, not a silence."""
    client, _ = scripted(*[errors.ConnectError("nobody there")] * 8)
    with pytest.raises(errors.ConnectError, match="nobody there"):
        async with client.watch(KIND, resource_version="1"):
            pass


async def test_streams_that_end_at_once_are_not_asked_for_in_a_hurry() -> None:
    """The waits between them grow."""
    client, _ = scripted(*[stream()] * 10, stream(added(2)), clock=(clock := LeapingClock()))
    assert await names(client.watch(KIND, resource_version="1"), 1) == ["c2"]
    assert len(clock.slept) == 10
    assert clock.slept[-1] > 10 * clock.slept[0]


async def test_event_makes_the_waits_short_again() -> None:
    """A watch that works is not punished for what was long ago."""
    broken = [stream(added(version), LOST) for version in range(2, 12)]
    client, _ = scripted(*broken, stream(added(12)), clock=(clock := LeapingClock()))
    await names(client.watch(KIND, resource_version="1"), 11)
    assert len(clock.slept) == 10
    assert max(clock.slept) <= 0.1


async def test_errors_as_events_are_not_retried_in_a_hurry() -> None:
    """A line that says no is no progress."""
    fault = stream(event("ERROR", {"kind": "Status", "code": 500, "message": "no"}))
    client, _ = scripted(*[fault] * 10, stream(added(2)), clock=(clock := LeapingClock()))
    assert await names(client.watch(KIND, resource_version="1"), 1) == ["c2"]
    assert clock.slept[-1] > 10 * clock.slept[0]


@pytest.mark.parametrize("hours", [2, 10**300])
async def test_watch_does_not_sleep_for_hours(hours: int) -> None:
    """Whatever a server, or a proxy in maintenance, asks for: it may be back in a minute."""
    put_off = answer({"kind": "Status", "code": 503}, 503, **{"Retry-After": str(hours * 3600)})
    client, _ = scripted(stream(added(2), LOST), put_off, stream(added(3)), clock=(clock := LeapingClock()))
    assert await names(client.watch(KIND, resource_version="1"), 2) == ["c2", "c3"]
    assert 0 < max(clock.slept) <= 60


def test_watch_without_time_is_refused() -> None:
    """Each connection would end as soon as it has begun."""
    with pytest.raises(errors.InvalidValueError, match="1 or more, got 0"):
        WatchOptions(timeout_seconds=0)


@pytest.mark.parametrize("line", [b"<html>\n", b"{}\n", b"[]\n", b'{"type":"ADDED"}\n', b"\n", b'{"object":{}}\n'])
async def test_line_that_is_no_event_is_an_error(line: bytes) -> None:
    """Of a server, or a proxy, that does not speak Kubernetes."""
    client, _ = scripted(stream(line))
    with pytest.raises((errors.BadAnswerError, errors.DecodeError)):
        await anext(client.watch(KIND, resource_version="1"))


async def test_object_that_does_not_fit_fails_once() -> None:
    """Where it is looked at; the watch goes on behind it."""
    broken = event("ADDED", {"kind": "Pod", "metadata": {"name": "p", "resourceVersion": "2"}})
    client, transport = scripted(stream(broken, LOST), stream(added(3)))
    watch = client.watch(KIND, resource_version="1")
    event_of_it = await anext(watch)
    with pytest.raises(errors.DecodeError):
        _ = event_of_it.object
    assert await names(watch, 1) == ["c3"]
    assert resumed_at(transport) == ["1", "2"]


async def test_bookmarks_are_kept_back_unless_wanted() -> None:
    """They move the revision either way."""
    client, _ = scripted(stream(bookmark(5), added(6)))
    watch = client.watch(KIND, resource_version="1")
    assert (await anext(watch)).type == "ADDED"
    client, _ = scripted(stream(bookmark(5)))
    watch = client.watch(KIND, resource_version="1", options=WatchOptions(bookmarks=True))
    assert (await anext(watch)).type == "BOOKMARK"
    assert watch.resource_version == "5"


async def test_watch_asks_for_its_own_connection_and_limits() -> None:
    """A long-lived request, whose silence is bounded by what the server was asked for and a little more."""
    client, transport = scripted(stream(added(2)))
    await anext(client.watch(KIND, resource_version="1", labels="a=b", options=WatchOptions(timeout_seconds=20)))
    [sent] = transport.requests
    assert sent.long_lived
    assert sent.idle_timeout == 30.0
    assert sent.query["timeoutSeconds"] == "20"
    assert sent.query["labelSelector"] == "a=b"
    assert sent.query["allowWatchBookmarks"] == "true"


async def test_metadata_only_watch_asks_for_lists_and_objects_in_their_own_forms() -> None:
    """The server refuses the form of an object for a list."""
    client, transport = scripted(page(version=1), stream(bookmark(2)))
    async with client.watch(MetadataOnly(KIND)):
        pass
    forms = [sent.headers["Accept"] for sent in transport.requests]
    assert "as=PartialObjectMetadataList;" in forms[0]
    assert "as=PartialObjectMetadata;" in forms[1]


async def test_leaving_a_watch_lets_go_of_its_connection() -> None:
    """Also one that was replaced by another."""
    script = [stream(added(2), LOST), stream(added(3))]
    client, _ = scripted(*script)
    async with client.watch(KIND, resource_version="1") as watch:
        await names(watch, 2)
        assert [connection.closed for connection in script] == [True, False]
    assert script[1].closed
