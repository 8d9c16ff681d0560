"""The scheduling queue returns pods by priority, and retries unschedulable pods."""

from __future__ import annotations

import asyncio

from cluster.controllers.scheduler_objects import pod
from navarch._base.clock import ManualClock
from navarch.cluster.controllers.pod_info import PodInfo
from navarch.cluster.controllers.scheduling.scheduling_queue import WaitingPods


class Line:
    """A queue, and what was handed out."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.waiting = WaitingPods(self.clock)

    async def next(self, seconds: float = 0.0) -> str:
        """The name of the next pod, within so many seconds; empty if there is none."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.waiting.next())
            await self.clock.advance(seconds)
            task.cancel()
        return "" if task.cancelled() else task.result().key.name


def named(name: str, priority: int = 0, cpu: str = "") -> PodInfo:
    return pod(name, priority=priority, cpu=cpu)


async def test_pods_come_by_priority_then_by_age() -> None:
    """The more important first, and of the same importance who came first."""
    line = Line()
    for each in (named("first"), named("second"), named("vip", 10)):
        line.waiting.put(each)
    assert [await line.next() for _ in range(4)] == ["vip", "first", "second", ""]


async def test_pod_that_nobody_took_waits_for_a_change() -> None:
    """And then for its delay, which doubles."""
    line, first = Line(), named("first")
    line.waiting.put(first)
    assert await line.next() == "first"
    line.waiting.put_aside(first)
    assert await line.next(200) == ""
    line.waiting.something_changed()
    assert await line.next() == "first"
    line.waiting.put_aside(first)
    line.waiting.something_changed()
    assert await line.next(1.5) == ""
    assert await line.next(1) == "first"


async def test_pod_comes_again_after_minutes_in_any_case() -> None:
    """Something may have changed that nobody told of."""
    line, first = Line(), named("first")
    line.waiting.put(first)
    await line.next()
    line.waiting.put_aside(first)
    assert await line.next(299) == ""
    assert await line.next(2) == "first"


async def test_pod_that_changes_what_it_wants_comes_again() -> None:
    """A new version alone is no reason."""
    line = Line()
    line.waiting.put(named("first", cpu="2"))
    await line.next()
    line.waiting.put_aside(named("first", cpu="2"))
    line.waiting.put(named("first", cpu="2"))
    assert await line.next(5) == ""
    line.waiting.put(named("first", cpu="1"))
    assert await line.next(5) == "first"


async def test_pod_that_is_gone_is_not_handed_out() -> None:
    """Wherever it waited."""
    line, first, second = Line(), named("first"), named("second")
    line.waiting.put(first)
    line.waiting.drop(first.uid)
    assert await line.next() == ""
    line.waiting.put(second)
    await line.next()
    line.waiting.put_aside(second)
    line.waiting.drop(second.uid)
    line.waiting.something_changed()
    assert await line.next(400) == ""
    assert len(line.waiting) == 0


async def test_pod_whose_binding_failed_comes_again_soon() -> None:
    """Whatever changes or not."""
    line, first = Line(), named("first")
    line.waiting.put(first)
    await line.next()
    line.waiting.put_back(first)
    assert await line.next(1.5) == "first"


async def test_pods_that_nobody_took_come_at_once_when_a_node_does() -> None:
    """Whether they waited for a change or for their delay to pass; whoever is handed out is not handed out twice."""
    line, first, second = Line(), named("first"), named("second")
    for each in (first, second, named("under way")):
        line.waiting.put(each)
    for _ in range(3):
        await line.next()
    line.waiting.put_aside(first)
    line.waiting.something_changed()
    line.waiting.put_aside(second)
    line.waiting.node_changed()
    assert [await line.next() for _ in range(3)] == ["first", "second", ""]
