"""Which key is next: priorities that grow, namespaces in turns, first come first served."""

import random

import pytest

from navarch._base.clock import ManualClock
from navarch.api.kind import Key
from navarch.queue import LOW, NORMAL, QueueOptions, WorkQueue
from navarch.queue.priority_queue import PriorityLevel, QueueItem

# A key that does not come would be waited for; no test here needs more than a second.
pytestmark = pytest.mark.timeout(60)


def queue_with(clock: ManualClock, ageing: float = 1.0) -> WorkQueue[Key]:
    return WorkQueue("test", clock, random.Random(1), QueueOptions(ageing=ageing))


async def take(queue: WorkQueue[Key], count: int) -> list[str]:
    return [(await queue.get()).key.name for _ in range(count)]


async def test_keys_of_a_namespace_come_in_their_order() -> None:
    """First come, first served; adding again does not change the place."""
    queue = queue_with(ManualClock())
    for name in "abcab":
        queue.add(Key("x", name))
    assert await take(queue, 3) == ["a", "b", "c"]


async def test_namespaces_take_turns() -> None:
    """One that comes late and has little is not held up by one that has much."""
    queue = queue_with(ManualClock())
    for number in range(10_000):
        queue.add(Key("busy", f"b{number}"))
    assert await take(queue, 2) == ["b0", "b1"]
    for name in ("q0", "q1"):
        queue.add(Key("quiet", name))
    assert await take(queue, 5) == ["b2", "q0", "b3", "q1", "b4"]


async def test_keys_without_a_namespace_share_one_turn() -> None:
    """Any hashable key will do."""
    queue: WorkQueue[int] = WorkQueue("test", ManualClock(), random.Random(1))
    for key in (3, 1, 2):
        queue.add(key)
    assert [(await queue.get()).key for _ in range(3)] == [3, 1, 2]


async def test_a_struck_key_does_not_cost_its_namespace_the_turn() -> None:
    """The turn goes to the next key of that namespace, or to the next namespace if it has none."""
    queue = queue_with(ManualClock())
    for namespace in "xyz":
        queue.add(Key(namespace, f"{namespace}0"), token=1)
        queue.add(Key(namespace, f"{namespace}1"))
    queue.retract(Key("x", "x0"), 1)
    queue.retract(Key("y", "y0"), 1)
    queue.add(Key("y", "y1"), priority=1)
    assert await take(queue, 4) == ["y1", "x1", "z0", "z1"]


async def test_the_higher_priority_comes_first() -> None:
    """New normal keys pass the keys of an initial list."""
    queue = queue_with(ManualClock())
    for name, priority in (("a", LOW), ("b", LOW), ("c", NORMAL), ("d", 7), ("e", NORMAL)):
        queue.add(Key("x", name), priority=priority)
    assert await take(queue, 5) == ["d", "c", "e", "a", "b"]


async def test_a_waiting_key_keeps_the_highest_priority() -> None:
    """A later add can raise it, and cannot lower it; also while it is held back."""
    queue = queue_with(ManualClock())
    queue.add(Key("x", "a"), priority=LOW)
    queue.add(Key("x", "b"), priority=LOW)
    queue.add(Key("x", "b"), priority=NORMAL)
    queue.add(Key("x", "b"), priority=LOW)
    work = await queue.get()
    assert (work.key.name, work.priority) == ("b", NORMAL)
    queue.add(work.key, priority=LOW)
    queue.add(work.key, priority=NORMAL)
    queue.done(work.key)
    assert await take(queue, 2) == ["b", "a"]


async def test_an_aged_key_is_served_every_second_time() -> None:
    """From the moment on at which its priority has grown to that of the others; not before."""
    clock = ManualClock()
    queue = queue_with(clock, ageing=0.5)
    for number in range(3):
        queue.add(Key("x", f"low{number}"), priority=LOW)
    for number in range(20):
        queue.add(Key("x", f"new{number}"))
    await clock.advance(49)
    assert await take(queue, 4) == ["new0", "new1", "new2", "new3"]
    await clock.advance(1)
    assert await take(queue, 8) == ["low0", "new4", "low1", "new5", "low2", "new6", "new7", "new8"]


async def test_of_several_aged_priorities_the_most_grown_is_served() -> None:
    """None of them starves because of another."""
    clock = ManualClock()
    queue = queue_with(clock)
    queue.add(Key("x", "older"), priority=-20)
    await clock.advance(15)
    queue.add(Key("x", "younger"), priority=-10)
    await clock.advance(15)
    for number in range(9):
        queue.add(Key("x", f"new{number}"))
    assert await take(queue, 4) == ["older", "new0", "younger", "new1"]


@pytest.mark.parametrize("ageing", [0, -1, float("nan")])
def test_an_ageing_that_makes_no_sense_is_refused(ageing: float) -> None:
    """Time that is worth nothing, or less."""
    with pytest.raises(ValueError, match="expected an ageing of more than 0 seconds"):
        QueueOptions(ageing=ageing)


def test_removed_keys_are_not_kept() -> None:
    """Adding and retracting keys repeatedly takes no memory, though one key waits all the time."""
    level: PriorityLevel[int] = PriorityLevel(0)
    first = QueueItem(-1, 0, 0.0)
    level.put(first)
    for key in range(10_000):
        item = QueueItem(key, 0, 0.0)
        level.put(item)
        level.remove(item)
    assert sum(map(len, level._lines.values())) < 200
    assert len(level._arrivals) < 200
    assert level.take() is first


@pytest.mark.parametrize("namespaces", [1, 7])
async def test_a_flood_of_normal_keys_starves_nobody(namespaces: int) -> None:
    """Whatever comes meanwhile, a list of low keys is done when it has aged and each had its second turn."""
    clock, takes_per_second = ManualClock(), 8
    queue = queue_with(clock)
    listed = {Key(f"n{number % namespaces}", f"low{number}") for number in range(50)}
    for key in listed:
        queue.add(key, priority=LOW)
    for number in range(100 * takes_per_second + 2 * len(listed)):
        for copy in range(2):
            queue.add(Key(f"n{number % 3}", f"new{number}-{copy}"))
        listed.discard((await queue.get()).key)
        await clock.advance(1 / takes_per_second)
    assert not listed


async def test_turns_continue_when_removed_keys_are_compacted() -> None:
    """Also if a namespace has none left, and if another is next than the first one by name."""
    queue = queue_with(ManualClock())
    for name in "abc":
        for namespace in "xyz":
            queue.add(Key(namespace, f"{namespace}-{name}"))
    for number in range(100):
        queue.add(Key("w", f"{number}"), token=1)
    assert await take(queue, 2) == ["x-a", "y-a"]
    for number in range(100):
        queue.retract(Key("w", f"{number}"), 1)
    assert await take(queue, 7) == ["z-a", "x-b", "y-b", "z-b", "x-c", "y-c", "z-c"]
    assert queue.depth == 0
