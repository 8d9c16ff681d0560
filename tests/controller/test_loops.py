"""Objects that are reconciled over and over because of what their own reconciler writes."""

from __future__ import annotations

import logging
import sys
import tracemalloc
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from navarch._base.clock import ManualClock
from navarch.api import Key, Kind
from navarch.cache import Entry, entry_of
from navarch.controller.detectors import LoopDetector, LoopReport, OwnChange, log_loop
from navarch.controller.triggers import Version, Writer
from navarch.errors import InvalidValueError
from navarch.queue import Work

DEPLOYMENT = Kind("apps", "v1", "Deployment", plural="deployments")
POD = Kind("", "v1", "Pod", plural="pods")
SERVICE = Kind("", "v1", "Service", plural="services")
CACHE = Key("default", "cache")
STAMP = "spec.template.metadata.annotations.stamp"


def deployment(version: int, stamp: str, **fields: Any) -> Entry:
    metadata = {"namespace": "default", "name": "cache", "resourceVersion": str(version), "generation": version}
    template = {"metadata": {"annotations": {"stamp": stamp}}}
    return entry_of(msgspec.json.encode({"metadata": metadata, "spec": {"template": template, **fields}}))


def wanted(key: Key, *causes: Version) -> Work[Key]:
    """A key that is reconciled because of these changes."""
    reasons = tuple(f"{cause.kind.kind} {cause.key} changed" for cause in causes)
    return Work(key, reasons, waited=0.0, attempt=0, priority=0, tokens=causes)


@dataclass
class World:
    """A detector and its clock; `turn` is one reconcile, which may write.

    It comes because a Deployment has changed, which is the one that it writes.
    """

    limit: int = 60
    clock: ManualClock = field(default_factory=ManualClock)
    reports: list[LoopReport] = field(default_factory=list)
    version: int = 1

    def __post_init__(self) -> None:
        self.detector = LoopDetector(self.clock, self.limit, self.reports.append)

    def turn(self, *, writes: bool, key: Key = CACHE, controller: str = "memcached") -> None:
        self.version += 1
        self.detector.reconciled(controller, wanted(key, Version(DEPLOYMENT, CACHE, self.version)))
        if writes:
            old, new = deployment(self.version, f"secret-{self.version}"), deployment(self.version + 1, "secret")
            self.version += 1
            version = Version(DEPLOYMENT, new.key, new.version)
            self.detector.wrote(Writer(controller, key), version, old, new)

    async def turns(self, count: int, *, seconds: float, writes: bool, key: Key = CACHE) -> None:
        for _ in range(count):
            self.turn(writes=writes, key=key)
            await self.clock.advance(seconds / count)


async def test_a_key_that_keeps_itself_busy_is_reported() -> None:
    """With the count, and with the object and the field that it changed."""
    world = World()
    await world.turns(70, seconds=35, writes=True)
    (report,) = world.reports
    assert report.controller == "memcached"
    assert report.key == CACHE
    assert 60 < report.count <= 63
    assert report.seconds == pytest.approx(31, abs=1)
    assert report.own == report.observed
    assert report.changes == (OwnChange("Deployment", Key("default", "cache"), (STAMP,)),)
    assert report.reasons == ("Deployment default/cache changed",)


async def test_a_report_reads_as_one_sentence_with_the_remedy() -> None:
    """And without a value: it may be a secret."""
    world = World()
    await world.turns(62, seconds=31, writes=True)
    (report,) = world.reports
    text = str(report)
    assert text.startswith("memcached reconciled default/cache 62 times within 30 s, 31 of the last 31 times because")
    assert f"Deployment default/cache ({STAMP})" in text
    assert text.endswith("let what is written depend on the spec alone")
    assert "secret" not in text


@pytest.mark.parametrize("every", [2, 3, 1000])
async def test_a_key_that_others_keep_busy_is_not_reported(every: int) -> None:
    """It is reconciled as often, but writes nothing, or in no more than half of the reconciles."""
    world = World()
    for number in range(600):
        world.turn(writes=number % every == 1)
        await world.clock.advance(0.05)
    assert not world.reports


@pytest.mark.parametrize(
    "cause",
    [
        pytest.param(Version(POD, CACHE, 1_000), id="another object"),
        pytest.param(Version(DEPLOYMENT, CACHE, 1), id="a change from before the write"),
        pytest.param(None, id="the time that it asked for"),
    ],
)
async def test_work_in_progress_is_not_reported(cause: Version | None) -> None:
    """It writes in each reconcile, but that is not why the next comes."""
    world = World()
    for number in range(10, 600):
        world.detector.reconciled("memcached", wanted(CACHE, *filter(None, (cause,))))
        old, new = deployment(number, "old"), deployment(number + 1, "new")
        world.detector.wrote(Writer("memcached", CACHE), Version(DEPLOYMENT, CACHE, new.version), old, new)
        await world.clock.advance(0.05)
    assert not world.reports


async def test_object_that_goes_again_is_a_loop_too() -> None:
    """What was made is deleted by somebody, and made again."""
    world = World()
    for number in range(1, 70):
        world.detector.reconciled("memcached", wanted(CACHE, Version(DEPLOYMENT, CACHE, number).end))
        made = deployment(number + 1, "")
        world.detector.wrote(Writer("memcached", CACHE), Version(DEPLOYMENT, CACHE, made.version), None, made)
    (report,) = world.reports
    assert report.changes == (OwnChange("Deployment", CACHE, (), created=True),)


async def test_a_key_within_the_limit_is_not_reported() -> None:
    """Minute after minute, whatever it writes."""
    world = World()
    await world.turns(600, seconds=610, writes=True)
    assert not world.reports


async def test_a_loop_is_reported_once_a_minute() -> None:
    """As long as it lasts, and never twice within a minute."""
    world, times = World(), list[float]()
    world.detector = LoopDetector(world.clock, world.limit, lambda _: times.append(world.clock.monotonic()))
    await world.turns(3000, seconds=300, writes=True)
    assert len(times) == 5
    assert all(later - earlier >= 60 for earlier, later in pairwise(times))


async def test_keys_and_controllers_are_told_apart() -> None:
    """What one writes is not held against another."""
    world = World()
    for _ in range(100):
        world.turn(writes=True, controller="memcached")
        world.turn(writes=False, controller="backup")
        world.turn(writes=False, key=Key("other", "cache"))
    assert [(report.controller, report.key) for report in world.reports] == [("memcached", CACHE)]


async def test_a_loop_that_ends_is_forgotten() -> None:
    """The next minute begins from nothing."""
    world = World()
    await world.turns(61, seconds=30, writes=True)
    await world.clock.advance(60)
    await world.turns(50, seconds=30, writes=True)
    assert not world.reports


async def test_all_objects_that_led_to_the_next_reconcile_are_named() -> None:
    """Each once, and no other; one that was created has no fields to compare."""
    world = World()
    for number in range(1, 70):
        causes = (Version(kind, Key("default", f"cache-{number - 1}"), number) for kind in (DEPLOYMENT, POD))
        world.detector.reconciled("memcached", wanted(CACHE, *causes))
        for kind in (DEPLOYMENT, POD, POD, SERVICE):
            written = Version(kind, Key("default", f"cache-{number}"), number)
            world.detector.wrote(Writer("memcached", CACHE), written, None, deployment(number, ""))
    (report,) = world.reports
    assert [str(change).partition(" ")[0] for change in report.changes] == ["Deployment", "Pod"]
    assert str(report.changes[1]).endswith("(it was created)")


async def test_a_large_change_is_named_by_its_first_fields() -> None:
    """More than a few say nothing new."""
    world = World()
    old, new = deployment(1, "", **{f"f{n}": 1 for n in range(9)}), deployment(2, "", **{f"f{n}": 2 for n in range(9)})
    for _ in range(70):
        world.detector.reconciled("memcached", wanted(CACHE, Version(DEPLOYMENT, CACHE, 2)))
        world.detector.wrote(Writer("memcached", CACHE), Version(DEPLOYMENT, CACHE, 2), old, new)
    assert world.reports[0].changes[0].paths == ("spec.f0", "spec.f1", "spec.f2", "spec.f3", "spec.f4")


def test_contents_are_looked_at_only_when_reporting() -> None:
    """Bytes that are no JSON go unnoticed until then."""
    world = World()
    broken = msgspec.structs.replace(deployment(1, ""), data=b"no JSON")
    for _ in range(60):
        world.detector.reconciled("memcached", wanted(CACHE, Version(DEPLOYMENT, CACHE, 1)))
        world.detector.wrote(Writer("memcached", CACHE), Version(DEPLOYMENT, CACHE, 1), broken, broken)
    assert not world.reports


async def test_idle_keys_cost_nothing_after_a_minute() -> None:
    """Of a hundred thousand a few megabytes are kept for a minute, and nothing longer."""
    world = World()
    keys = [Key("default", f"cache-{number}") for number in range(100_000)]
    tracemalloc.start()
    try:
        for key in keys:
            world.turn(writes=False, key=key)
        busy = tracemalloc.get_traced_memory()[0]
        await world.clock.advance(60)
        world.turn(writes=False)
        idle = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert busy < 12_000_000
    assert idle < 100_000


async def test_keys_that_write_once_in_a_while_keep_no_objects() -> None:
    """What was written is not held on to."""
    world = World()
    old, new = deployment(1, ""), deployment(2, "")
    references = sys.getrefcount(old), sys.getrefcount(new)
    for _ in range(70):
        world.detector.reconciled("memcached", wanted(CACHE, Version(DEPLOYMENT, CACHE, 2)))
        world.detector.wrote(Writer("memcached", CACHE), Version(DEPLOYMENT, CACHE, 2), old, new)
    assert (sys.getrefcount(old), sys.getrefcount(new)) == references


def test_a_limit_that_no_key_keeps_is_refused() -> None:
    """Every reconcile would be a loop."""
    with pytest.raises(InvalidValueError, match="at least 2 reconciles a minute, got 1"):
        World(limit=1)


async def test_log_has_the_object_and_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    """As fields, beside the sentence."""
    world = World()
    await world.turns(70, seconds=35, writes=True)
    with caplog.at_level(logging.WARNING):
        log_loop(world.reports[0])
    (record,) = caplog.records
    assert vars(record)["event"] == str(world.reports[0])
    fields = vars(record)["fields"]
    assert (fields["controller"], fields["object"]) == ("memcached", "default/cache")
    assert fields["reason"] == "Deployment default/cache changed"
