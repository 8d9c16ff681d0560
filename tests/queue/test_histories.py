"""The queue beside a naive model, over histories that nobody thought of."""

import asyncio
import itertools
import random
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from example_counts import examples
from navarch._base.backoff import Backoff
from navarch._base.clock import ManualClock
from navarch.api.kind import Key
from navarch.errors import QueueClosedError
from navarch.queue import NORMAL, QueueOptions, Work, WorkQueue, priority_queue, queue

NAMESPACES = "xyz"
KEYS = [Key(namespace, str(number)) for namespace in NAMESPACES for number in range(3)]
AGEING = 2.0
OPTIONS = QueueOptions(ageing=AGEING, backoff=Backoff(initial=0.5, maximum=4, jitter=0))

keys = st.sampled_from(KEYS)
reasons = st.sampled_from(["", "changed", "listed", "asked"])
tokens = st.sampled_from([1, 2, 3])
priorities = st.sampled_from([-4, -1, 0, 2])
halves = st.integers(1, 12).map(lambda number: number / 2)


@dataclass
class Wish:
    """A key that the model holds to be wanted."""

    priority: int
    since: float
    rank: float
    """When it came to wait where it waits now; equal for those that became due together."""
    lasting: set[str] = field(default_factory=set)
    tokens: dict[int, str] = field(default_factory=dict)


@dataclass
class Later:
    due: float
    priority: int
    reasons: set[str]


def at_once(queue: WorkQueue[Key]) -> Work[Key]:
    """The next key, which must be there: waiting would need an event loop, and there is none."""
    with pytest.raises(StopIteration) as ended:
        queue.get().send(None)
    work = ended.value.value
    assert isinstance(work, Work)
    return work


class QueueMachine(RuleBasedStateMachine):
    """Every step is done to the queue and to plain dictionaries; each hand-out is judged by the promises."""

    def __init__(self) -> None:
        super().__init__()
        # Small enough that a short history also sorts out what was struck.
        self.slack = [mock.patch.object(module, "_SLACK", -1) for module in (priority_queue, queue)]
        for patch in self.slack:
            patch.start()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.queue: WorkQueue[Key] = WorkQueue("model", self.clock, random.Random(1), OPTIONS)
        self.moving = self.runner.get_loop().create_task(self.queue.run())
        self.runner.run(self.clock.settle())
        self.ranks = itertools.count(1)
        self.wanted: dict[Key, Wish] = {}
        self.working: dict[Key, int] = {}
        self.later: dict[Key, Later] = {}
        self.failures: dict[Key, int] = {}
        self.aged_left_out = 0
        self.passed: dict[tuple[int, str], int] = {}

    def teardown(self) -> None:
        try:
            self.everything_comes_out()
        finally:
            self.moving.cancel()
            self.runner.close()
            for patch in self.slack:
                patch.stop()

    def everything_comes_out(self) -> None:
        for key in list(self.working):
            self.finish(key)
        while self.waiting():
            self.finish(self.take().key)
        assert self.queue.depth == 0

    @rule(key=keys, reason=reasons, token=st.none() | tokens, priority=priorities)
    def add(self, key: Key, reason: str, token: int | None, priority: int) -> None:
        self.queue.add(key, reason=reason, token=token, priority=priority)
        self.wish(key, Wish(priority, self.clock.monotonic(), next(self.ranks)), reason, token)

    @rule(key=keys, seconds=halves, reason=reasons, priority=priorities)
    def add_after(self, key: Key, seconds: float, reason: str, priority: int) -> None:
        self.queue.add_after(key, seconds, reason=reason, priority=priority)
        self.wish_later(key, seconds, reason, priority)

    @rule(key=keys, token=tokens)
    def retract(self, key: Key, token: int) -> None:
        self.queue.retract(key, token)
        if (wish := self.wanted.get(key)) is not None:
            wish.tokens.pop(token, None)
            if not wish.lasting and not wish.tokens:
                del self.wanted[key]
        self.forget_turns()

    @precondition(lambda self: self.waiting())
    @rule()
    def get(self) -> None:
        self.take()

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: Any) -> None:
        self.finish(data.draw(st.sampled_from(list(self.working))))

    @rule(key=keys)
    def retry(self, key: Key) -> None:
        failed = self.failures.get(key, 0)
        delay = self.queue.retry(key, reason="failed")
        assert delay == min(0.5 * 2**failed, 4)
        self.failures[key] = failed + 1
        self.wish_later(key, delay, "failed", self.working.get(key, NORMAL))

    @rule(key=keys)
    def forget(self, key: Key) -> None:
        self.queue.forget(key)
        self.failures.pop(key, None)

    @rule(seconds=halves)
    def time_passes(self, seconds: float) -> None:
        self.runner.run(self.clock.advance(seconds))
        now, rank = self.clock.monotonic(), next(self.ranks)
        for key, later in sorted(self.later.items(), key=lambda item: item[1].due):
            if later.due <= now:
                del self.later[key]
                for reason in later.reasons:
                    self.wish(key, Wish(later.priority, later.due, rank + later.due / (now + 1)), reason)

    @invariant()
    def every_wanted_key_is_counted(self) -> None:
        assert self.queue.depth == len(self.wanted)

    def wish(self, key: Key, new: Wish, reason: str, token: int | None = None) -> None:
        wish = self.wanted.setdefault(key, new)
        if new.priority > wish.priority:
            wish.priority, wish.rank = new.priority, new.rank
        if token is None:
            wish.lasting.add(reason)
        else:
            wish.tokens[token] = reason
        self.forget_turns()

    def wish_later(self, key: Key, seconds: float, reason: str, priority: int) -> None:
        due = self.clock.monotonic() + seconds
        later = self.later.setdefault(key, Later(due, priority, set()))
        later.due = min(due, later.due)
        later.priority = max(priority, later.priority)
        later.reasons.add(reason)

    def waiting(self) -> dict[Key, Wish]:
        return {key: wish for key, wish in self.wanted.items() if key not in self.working}

    def take(self) -> Work[Key]:
        waiting = self.waiting()
        work = at_once(self.queue)
        assert work.key in waiting, "handed out what nobody wanted, or what is being worked on"
        wish = waiting[work.key]
        assert set(work.reasons) == (wish.lasting | set(wish.tokens.values())) - {""}
        assert work.waited == self.clock.monotonic() - wish.since
        assert (work.attempt, work.priority) == (self.failures.get(work.key, 0), wish.priority)
        self.judge_order(work.key, waiting)
        del self.wanted[work.key]
        self.later.pop(work.key, None)
        self.working[work.key] = wish.priority
        self.forget_turns()
        return work

    def finish(self, key: Key) -> None:
        self.queue.done(key)
        del self.working[key]
        if key in self.wanted:
            self.wanted[key].rank = next(self.ranks)

    def judge_order(self, taken: Key, waiting: dict[Key, Wish]) -> None:
        self.judge_priority(waiting[taken].priority, waiting)
        lane = {key: wish for key, wish in waiting.items() if wish.priority == waiting[taken].priority}
        earlier = [key for key in lane if key.namespace == taken.namespace and lane[key].rank < lane[taken].rank]
        assert not earlier, "keys of one namespace and priority come in their order"
        self.judge_turns(taken.namespace, waiting[taken].priority, {key.namespace for key in lane})

    def judge_priority(self, served: int, waiting: dict[Key, Wish]) -> None:
        highest = max(wish.priority for wish in waiting.values())
        aged = {wish.priority for wish in waiting.values() if self.has_grown_to(highest, wish, waiting)}
        assert served == highest or served in aged, "only who has waited long enough passes a higher priority"
        self.aged_left_out = self.aged_left_out + 1 if aged and served == highest else 0
        assert self.aged_left_out < 2, "every second one is of those who have waited so long"

    def has_grown_to(self, highest: int, wish: Wish, waiting: dict[Key, Wish]) -> bool:
        first = min((one for one in waiting.values() if one.priority == wish.priority), key=lambda one: one.rank)
        waited = self.clock.monotonic() - first.since
        return wish.priority < highest and wish.priority + waited / AGEING >= highest

    def judge_turns(self, served: str, priority: int, namespaces: set[str]) -> None:
        for namespace in namespaces - {served}:
            passed = self.passed[priority, namespace] = self.passed.get((priority, namespace), 0) + 1
            assert passed < len(NAMESPACES), "a namespace waits for one key of each other one at most"
        self.passed.pop((priority, served), None)

    def forget_turns(self) -> None:
        """Only a namespace that goes on waiting counts how often it is passed."""
        lines = {(wish.priority, key.namespace) for key, wish in self.waiting().items()}
        self.passed = {line: count for line, count in self.passed.items() if line in lines}


TestQueueHistories = QueueMachine.TestCase
TestQueueHistories.settings = examples(100, stateful_step_count=50)


@examples(30)
@given(st.integers(0, 2**32))
def test_workers_that_come_and_go_lose_nothing(seed: int) -> None:
    """Whoever is cancelled, waiting or working: each wish is followed by a hand-out, and no key is worked on twice."""
    asyncio.run(_Workshop(random.Random(seed)).history())


class _Workshop:
    """Workers under fire."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.clock = ManualClock()
        self.queue: WorkQueue[Key] = WorkQueue("workshop", self.clock, rng, OPTIONS)
        self.wished: set[Key] = set()
        self.busy: set[Key] = set()
        self.workers: list[asyncio.Task[None]] = []

    async def history(self) -> None:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            moving = group.create_task(self.queue.run())
            self.workers = [group.create_task(self.worker()) for _ in range(4)]
            for _ in range(60):
                await self.step(group)
            await self.clock.advance(1000)
            assert (self.wished, self.busy, self.queue.depth) == (set(), set(), 0)
            self.queue.close()
            await self.queue.drained()
            moving.cancel()

    async def step(self, group: asyncio.TaskGroup) -> None:
        for _ in range(self.rng.randrange(4)):
            self.wish(self.rng.choice(KEYS))
        if self.rng.random() < 0.5:
            place = self.rng.randrange(len(self.workers))
            self.workers[place].cancel()
            self.workers[place] = group.create_task(self.worker())
        if self.rng.random() < 0.5:
            await self.clock.advance(self.rng.random())

    def wish(self, key: Key) -> None:
        self.wished.add(key)
        if self.rng.random() < 0.7:
            self.queue.add(key, priority=self.rng.choice((-4, 0)))
        else:
            self.queue.add_after(key, self.rng.random())

    async def worker(self) -> None:
        while True:
            try:
                work = await self.queue.get()
            except QueueClosedError:
                return
            assert work.key not in self.busy, f"expected one worker on {work.key}, got two"
            self.wished.discard(work.key)
            self.busy.add(work.key)
            try:
                await self.clock.sleep(self.rng.random())
                self.end(work)
            finally:
                self.busy.discard(work.key)
                self.queue.done(work.key)

    def end(self, work: Work[Key]) -> None:
        if work.attempt < 3 and self.rng.random() < 0.3:
            self.queue.retry(work.key)
            self.wished.add(work.key)
        else:
            self.queue.forget(work.key)
