"""Events are written in the background, once each, and harm nobody."""

import asyncio
import logging
import random
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from model_server import ModelServer
from navarch._base.clock import ManualClock
from navarch.api import Dynamic
from navarch.client import Client, Request, Response
from navarch.controller.events import Recorder, RecorderOptions
from navarch.errors import ConnectError, ConnectionLostError, InvalidValueError, TransportError
from navarch.k8s.core.v1 import ConfigMap, Namespace
from navarch.k8s.events.v1 import Event
from scripted import Scripted, _Answer, refusal


def config(name: str = "web", namespace: str = "shop") -> ConfigMap:
    found = ConfigMap(name=name, namespace=namespace)
    found.metadata.uid = f"uid-of-{name}"
    return found


class Line(ModelServer):
    """The model server at the end of a line that can be disturbed: what is in `next` comes instead of an answer."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(Event, clock=clock)
        self.next: list[Scripted | TransportError | None] = []
        self.down = False
        self.keeps = False
        """Whether a request that is answered with an error was carried out all the same."""

    async def send(self, request: Request) -> Response:
        if self.down:
            raise ConnectError("nobody there")
        disturbance = self.next.pop(0) if self.next else None
        if disturbance is None or self.keeps:
            answer = await super().send(request)
        if disturbance is None:
            return answer
        if isinstance(disturbance, TransportError):
            raise disturbance
        return _Answer(disturbance)

    @property
    def events(self) -> list[dict[str, Any]]:
        return list(self.objects(Event).values())

    @property
    def writes(self) -> list[str]:
        return [request.method for request in self.requests]


class Desk:
    """A recorder that runs, with its server and its clock."""

    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock()
        self.line = Line(self.clock)
        client = Client(self.line, clock=self.clock, rng=random.Random(2))
        self.recorder = Recorder(
            client, "shop-operator", "host-1", self.clock, random.Random(1), options=RecorderOptions(**options)
        )

    def series(self) -> list[int | None]:
        return [event.get("series", {}).get("count") for event in self.line.events]


@asynccontextmanager
async def desk(**options: Any) -> AsyncIterator[Desk]:
    async with asyncio.TaskGroup() as group:
        made = Desk(**options)
        running = group.create_task(made.recorder.run())
        await made.clock.settle()
        yield made
        running.cancel()
        await made.clock.advance(10)


async def test_event_has_what_the_server_asks_for_and_people_look_for() -> None:
    """In the namespace of its object, under a name of its own."""
    async with desk() as here:
        here.recorder.record(config(), "Scaled", "to 3", action="Scale", related=config("db"))
        await here.clock.settle()
        (event,) = here.line.events
        assert event["metadata"]["namespace"] == "shop"
        assert event["metadata"]["name"].startswith("web.")
        kept = {field: value for field, value in event.items() if field not in {"metadata", "apiVersion", "kind"}}
        assert kept == {
            "type": "Normal",
            "reason": "Scaled",
            "action": "Scale",
            "note": "to 3",
            "eventTime": "2030-01-01T00:00:00.000000Z",
            "regarding": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "namespace": "shop",
                "name": "web",
                "uid": "uid-of-web",
            },
            "related": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "db", "uid": "uid-of-db"},
            "reportingController": "shop-operator",
            "reportingInstance": "host-1",
        }


async def test_same_event_again_becomes_a_series() -> None:
    """One Event that counts, not three."""
    async with desk() as here:
        for _ in range(3):
            here.recorder.record(config(), "Failed", "no disk", type="Warning")
            await here.clock.advance(20)
        (event,) = here.line.events
        assert event["series"] == {"count": 3, "lastObservedTime": "2030-01-01T00:00:40.000000Z"}
        assert here.line.writes == ["POST", "PATCH", "PATCH"]


async def test_another_note_reason_type_action_or_object_is_another_event() -> None:
    """Only what is the same in all of them is the same."""
    async with desk() as here:
        record = here.recorder.record
        record(config(), "Failed", "no disk")
        record(config(), "Failed", "no memory")
        record(config(), "Broken", "no disk")
        record(config(), "Failed", "no disk", type="Warning")
        record(config(), "Failed", "no disk", action="Mount")
        record(config("db"), "Failed", "no disk")
        record(config(), "Failed", "no disk", related=config("db"))
        await here.clock.settle()
        assert len(here.line.events) == 7


async def test_flood_of_one_event_is_written_every_few_seconds_with_its_count() -> None:
    """A thousand times in 25 seconds are four requests."""
    async with desk() as here:
        for _ in range(1000):
            here.recorder.record(config(), "Failed", "no disk")
            await here.clock.advance(0.025)
        await here.clock.advance(10)
        assert here.series() == [1000]
        assert here.line.writes == ["POST", "PATCH", "PATCH", "PATCH"]


async def test_series_ends_after_six_minutes_of_silence() -> None:
    """What happens then is a new Event."""
    async with desk() as here:
        here.recorder.record(config(), "Failed", "no disk")
        await here.clock.advance(350)
        here.recorder.record(config(), "Failed", "no disk")
        await here.clock.advance(361)
        here.recorder.record(config(), "Failed", "no disk")
        await here.clock.settle()
        assert here.series() == [2, None]


async def test_event_that_has_expired_is_made_anew_with_its_count() -> None:
    """Servers keep events for an hour; a series may last longer."""
    async with desk() as here:
        here.recorder.record(config(), "Failed", "no disk")
        await here.clock.advance(20)
        await here.line.client().delete(Event, here.line.events[0]["metadata"]["name"], namespace="shop")
        here.recorder.record(config(), "Failed", "no disk")
        await here.clock.settle()
        assert here.series() == [2]


async def test_lost_answer_does_not_make_a_second_event() -> None:
    """The name is chosen before the first attempt."""
    async with desk() as here:
        here.line.keeps = True
        here.line.next = [ConnectionLostError("lost")]
        here.recorder.record(config(), "Failed", "no disk")
        await here.clock.advance(5)
        assert here.series() == [None]
        assert here.line.writes == ["POST", "POST"]


async def test_events_wait_while_the_server_is_away(caplog: pytest.LogCaptureFixture) -> None:
    """They come in order when it is back, and the trouble is told once."""
    async with desk() as here:
        here.line.down = True
        for number in range(3):
            here.recorder.record(config(), "Step", f"{number}")
        await here.clock.advance(120)
        assert here.line.events == []
        here.line.down = False
        await here.clock.advance(60)
        assert sorted(event["note"] for event in here.line.events) == ["0", "1", "2"]
        assert [record.levelname for record in caplog.records if record.name == "navarch.controller"] == ["WARNING"]


async def test_event_that_cannot_be_sent_for_minutes_is_dropped() -> None:
    """An outage must not bring back the news of last week."""
    async with desk() as here:
        here.line.down = True
        here.recorder.record(config(), "Failed", "no disk")
        await here.clock.advance(400)
        here.line.down = False
        await here.clock.advance(60)
        assert here.line.events == []
        assert here.recorder.dropped == 1


async def test_more_events_than_there_is_room_for_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The first ones say how it began; the rest is told once."""
    async with desk(capacity=5) as here:
        here.line.down = True
        await here.clock.settle()
        for number in range(20):
            here.recorder.record(config(), "Step", f"{number}")
        assert here.recorder.dropped == 15
        assert sum("5 wait already" in record.getMessage() for record in caplog.records) == 1
        here.line.down = False
        await here.clock.advance(60)
        assert sorted(event["note"] for event in here.line.events) == ["0", "1", "2", "3", "4"]


async def test_written_series_makes_room_for_new_events() -> None:
    """Room is for what waits; what was written can end early."""
    async with desk(capacity=5) as here:
        for number in range(20):
            here.recorder.record(config(), "Step", f"{number}")
            await here.clock.settle()
        assert len(here.line.events) == 20
        assert here.recorder.dropped == 0


async def test_forbidden_is_told_once_and_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """A missing right is no reason to stop, nor to fill the log."""
    async with desk() as here:
        here.line.next = [refusal(403, "Forbidden", "may not create events") for _ in range(3)]
        for number in range(4):
            here.recorder.record(config(), "Step", f"{number}")
        await here.clock.settle()
        assert [event["note"] for event in here.line.events] == ["3"]
        told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(told) == 1
        assert "may not create events" in told[0]


@pytest.mark.parametrize(
    "answer",
    [
        refusal(403, "Forbidden", "is being terminated", causes=[{"reason": "NamespaceTerminating", "message": "so"}]),
        refusal(404, "NotFound", 'namespaces "shop" not found'),
    ],
)
async def test_namespace_that_is_going_away_is_no_trouble(answer: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    """Its events go with it, without a word."""
    async with desk() as here:
        here.line.next = [answer]
        here.recorder.record(config(), "Gone", "bye")
        here.recorder.record(config("db", "other"), "Here", "hello")
        await here.clock.settle()
        assert [event["reason"] for event in here.line.events] == ["Here"]
        assert caplog.records == []


async def test_event_that_the_server_refuses_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """It is told and dropped."""
    async with desk() as here:
        here.line.next = [refusal(422, "Invalid", "no such thing")]
        here.recorder.record(config(), "Bad", "one")
        here.recorder.record(config(), "Good", "one")
        await here.clock.settle()
        assert [event["reason"] for event in here.line.events] == ["Good"]
        assert "no such thing" in caplog.text


async def test_what_is_left_is_sent_when_the_recorder_is_stopped() -> None:
    """Also the count of a flood that would have had to wait."""
    async with desk() as here:
        for _ in range(7):
            here.recorder.record(config(), "Failed", "no disk")
            await here.clock.settle()
        assert here.series() == [None]
    assert here.series() == [7]


async def test_stop_does_not_wait_for_a_server_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    """It says how many are lost."""
    async with desk() as here:
        here.line.down = True
        here.recorder.record(config(), "Failed", "no disk")
    assert here.clock.monotonic() <= 10
    assert "1 could not be sent in time" in caplog.text


async def test_events_may_be_recorded_from_other_threads() -> None:
    """Reconcilers that are plain functions run in threads."""
    async with desk() as here:

        def work() -> None:
            for number in range(50):
                here.recorder.record(config(), "Step", f"{number}")
                here.recorder.record(config(), "Again", "the same")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        await here.clock.advance(20)
        counts = {event["note"]: event["series"]["count"] for event in here.line.events}
        assert counts == {"the same": 200, **{f"{number}": 4 for number in range(50)}}


async def test_events_about_cluster_scoped_objects_go_to_the_default_namespace() -> None:
    """There is no better place; kubectl looks there too."""
    async with desk() as here:
        here.recorder.record(Namespace(name="shop"), "Seen", "it is there")
        await here.clock.settle()
        (event,) = here.line.events
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["regarding"]


async def test_object_without_a_class_can_be_spoken_of() -> None:
    """And looking at it does not change it."""
    widget = Dynamic({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "1"}})
    async with desk() as here:
        here.recorder.record(widget, "Seen", "it is there")
        await here.clock.settle()
        (event,) = here.line.events
        assert event["regarding"] == {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "1"}


@pytest.mark.parametrize("name", ["x" * 253, "system:node", "UPPER_case", ":", "a." * 126 + "a"])
async def test_name_of_an_event_is_one_that_the_server_takes(name: str) -> None:
    """Whatever the object is called."""
    from navarch.api.names import DNS_SUBDOMAIN

    async with desk() as here:
        here.recorder.record(config(name), "Seen", "it is there")
        await here.clock.settle()
        (event,) = here.line.events
        assert DNS_SUBDOMAIN.allows(event["metadata"]["name"])


@pytest.mark.parametrize(
    ("note", "bytes_kept"), [("short", 5), ("x" * 2000, 1024), ("é" * 600, 1024), ("€" * 600, 1023), ("\ud800" * 3, 3)]
)
async def test_long_note_is_cut_at_a_character(note: str, bytes_kept: int) -> None:
    """The server counts bytes and refuses more than 1024."""
    async with desk() as here:
        here.recorder.record(config(), "Seen", note)
        await here.clock.settle()
        (event,) = here.line.events
        assert len(event["note"].encode()) == bytes_kept


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"reason": ""}, "the reason of an event to be 1 to 128 bytes"),
        ({"reason": "é" * 65}, "the reason of an event to be 1 to 128 bytes"),
        ({"action": "x" * 129}, "the action of an event to be 1 to 128 bytes"),
        ({"type": "Error"}, "type Normal or Warning, got 'Error'"),
        ({"regarding": ConfigMap()}, "an object with apiVersion, kind and name"),
        ({"related": Dynamic({})}, "an object with apiVersion, kind and name"),
    ],
)
def test_what_no_server_would_take_is_refused_at_once(given: dict[str, Any], complaint: str) -> None:
    """With the remedy, where the mistake was made."""
    recorder = Desk().recorder
    fields = {"regarding": config(), "reason": "Seen", "note": "it is there", **given}
    with pytest.raises(InvalidValueError, match=complaint):
        recorder.record(**fields)


@pytest.mark.parametrize(
    ("component", "instance"), [("my operator", "host"), ("operator", ""), ("operator", "x" * 200)]
)
def test_reporter_that_no_server_would_take_is_refused(component: str, instance: str) -> None:
    """Before the first event is lost to it."""
    clock = ManualClock()
    with pytest.raises(InvalidValueError):
        Recorder(Line(clock).client(), component, instance, clock, random.Random(1))
