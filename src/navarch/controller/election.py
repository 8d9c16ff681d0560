"""Who of several replicas does the work: an election by Lease.

    election = Election(client, ElectionOptions(name="memcached-operator"), clock, rng)
    fenced = Client(FencedTransport(transport, election.fence), options)

    async with asyncio.TaskGroup() as group:
        group.create_task(election.run())
        group.create_task(election.lead(work))   # work writes through `fenced`

What is promised: at any moment at most one process may begin a write. It counts from when it *sent* its last successful
renewal, the others count from when they *saw* it, which is later, and they wait longer than it dares to write
(`lease_seconds` against `renew_deadline`). No time of day is compared. The promise ends where somebody deletes the Lease:
whoever starts at that moment cannot know that there was one.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock
from navarch._base.tasks import unless, within
from navarch.client import Client
from navarch.controller.fence import Fence
from navarch.controller.lease import LeaseLock
from navarch.errors import Forbidden, InvalidValueError, NavarchError, NotFound
from navarch.k8s.coordination.v1 import Lease

__all__ = ["Election", "ElectionOptions", "Work"]

_log = logging.getLogger("navarch.controller")

Work = Callable[[], Coroutine[Any, Any, object]]
"""What only the leader does; each call is one term."""

# A sleep may end a rounding error before its time; without this little more, the loop would turn on the spot.
_TICK = 0.001
_QUICK_TRIES = 3
_WATCH_PAUSE = Backoff(initial=1.0, maximum=15.0)
_FORBIDDEN_PAUSE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionOptions:
    """Which Lease decides who leads, and its times, in seconds.

    The leader renews every `retry_seconds`. If it cannot for `renew_deadline`, it stops; after `lease_seconds` without a
    renewal somebody else takes over (a Lease has whole seconds: the others round up). All replicas must
    have the same times and different identities: by default the host's name and a random number. `namespace` defaults to
    the client's. `stop_seconds` is how long the leader's work may take to end, and how long giving the Lease back may take.
    """

    name: str
    namespace: str | None = None
    identity: str | None = None
    lease_seconds: float = 15.0
    renew_deadline: float = 10.0
    retry_seconds: float = 2.0
    release_on_stop: bool = True
    stop_seconds: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < 2 * self.retry_seconds <= self.renew_deadline < self.lease_seconds:
            raise InvalidValueError(
                f"expected 0 < 2 * retry_seconds <= renew_deadline < lease_seconds, got {self.retry_seconds:g}, "
                f"{self.renew_deadline:g} and {self.lease_seconds:g}; the defaults are 2, 10 and 15"
            )


class Election:
    """One candidate. `client` must not be fenced by this election: it carries the requests that keep the fence open."""

    def __init__(self, client: Client, options: ElectionOptions, clock: Clock, rng: random.Random) -> None:
        self.options = options
        self.identity = options.identity or f"{socket.gethostname()}_{rng.getrandbits(64):016x}"
        self.fence = Fence(clock)
        """For a `FencedTransport`: open as long as this process may write."""
        self._client = client
        self._clock = clock
        self._rng = rng
        self.namespace = options.namespace or client.options.namespace
        """Where the Lease is."""
        self._lock = LeaseLock(
            client,
            clock,
            name=options.name,
            namespace=self.namespace,
            identity=self.identity,
            lease_seconds=options.lease_seconds,
        )
        self._won, self._over, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._news = asyncio.Event()
        self._led = 0
        self.trouble = ""
        """Why the Lease cannot be reached; empty while it can."""
        self._last_holder = ""
        self._over.set()
        self._idle.set()

    @property
    def leading(self) -> bool:
        """Whether this process may begin a write right now."""
        return self.fence.remaining() > 0

    @property
    def deadline(self) -> float:
        """The moment, by `Clock.monotonic`, after which this process must not begin a write; -inf if it must not now."""
        return self.fence.deadline

    @property
    def holder(self) -> str:
        """The identity that held the Lease when it was last seen; empty if none did."""
        return self._lock.holder

    async def is_led(self) -> bool:
        """Reads the Lease and returns whether another process holds it. Raises `NavarchError`."""
        await self._lock.read()
        return self._lock.seconds_until_free() > 0

    async def wait_until_leading(self) -> None:
        """Returns once this process leads; at once if it does."""
        await self._won.wait()

    async def lead(self, work: Work) -> None:
        """Runs `work()` whenever this process leads and cancels it when it no longer does; for ever.

        A term that has returned is over until leadership is won anew; what a term raises is raised. There are never two
        terms at once: a process whose work does not end after it was cancelled does not stand for election again.
        """
        while True:
            await self._won.wait()
            self._enter()
            try:
                await unless(self._over.wait(), self._term(work))
            finally:
                self._leave()

    async def run(self) -> None:
        """Competes for the Lease and renews it, until it is cancelled. Whatever the API server says, it goes on.

        When it is cancelled, led work is cancelled and waited for, and the Lease is given back; both within
        `stop_seconds`. If the work does not end by then, the Lease is kept until its time is over.
        """
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                while True:
                    await self._stand()
                    await self._serve()
        finally:
            await self._resign()

    async def _stand(self) -> None:
        """Competes until this process holds the Lease."""
        await self._until_idle()
        is_known = False
        while not await self._attempt(self._take(is_known=is_known), self.options.renew_deadline / 2):
            self._tell_holder()
            is_known = await self._hears_within(self._candidate_pause())
        self._begin()

    async def _serve(self) -> None:
        """Renews until the deadline passes, or another process holds the Lease."""
        while self._may_serve():
            await self._hears_within(min(self._leader_pause(), self.fence.remaining() + _TICK))
            if self._may_serve():
                await self._attempt(self._hold(), min(self.options.renew_deadline / 2, self.fence.remaining()))
        self._lose()

    def _may_serve(self) -> bool:
        return self.leading and self._lock.is_ours

    async def _take(self, *, is_known: bool) -> bool:
        """Tries to acquire the Lease and returns whether it did; reads the Lease first unless the watch has just sent it."""
        if not is_known:
            await self._lock.read()
        return await self._hold()

    async def _hold(self) -> bool:
        """Writes the Lease and returns whether this process holds it; after a conflict the stored Lease decides."""
        for _ in range(_QUICK_TRIES):
            if self._lock.seconds_until_free() > 0:
                return False
            sent = self._clock.monotonic()
            if await self._lock.hold():
                self.fence.open(
                    deadline=sent + self.options.renew_deadline, lease_ends=sent + self.options.lease_seconds
                )
                return self.leading
        return False

    async def _attempt(self, attempt: Coroutine[Any, Any, bool], seconds: float) -> bool:
        try:
            done = await within(self._clock, seconds, attempt)
        except (NavarchError, TimeoutError) as error:
            self._report(error)
            return False
        self.trouble = ""
        return done

    async def _follow(self) -> None:
        """Watches the Lease, so that a release or a deletion is noticed at once; without the watch it is polled."""
        delays, level = BackoffDelays(_WATCH_PAUSE, self._rng), logging.WARNING
        while True:
            try:
                await self._watch(delays)
            except Forbidden as error:
                _log.log(level, "%s: %s; the Lease is read every few seconds instead", self._where, error)
                level = logging.DEBUG
                await self._clock.sleep(_FORBIDDEN_PAUSE)
            except NavarchError as error:
                _log.debug("%s: %s", self._where, error)
                await self._clock.sleep(delays.next_delay())

    async def _watch(self, delays: BackoffDelays) -> None:
        chosen = {"metadata.name": self.options.name}
        async with self._client.watch(Lease, namespace=self.namespace, fields=chosen) as changes:
            async for change in changes:
                delays.reset()
                self._lock.heard(change)
                if self._lock.is_gone or not self._lock.is_ours:
                    self._news.set()

    async def _hears_within(self, seconds: float) -> bool:
        """Returns whether the watch has sent a relevant change before the time was up."""
        try:
            await within(self._clock, seconds, self._news.wait())
        except TimeoutError:
            return False
        finally:
            self._news.clear()
        return True

    def _leader_pause(self) -> float:
        """Returns the delay to the next renewal: even, and with jitter after a failure."""
        return self.options.retry_seconds * (0.8 + 0.4 * self._rng.random() if self.trouble else 1.0)

    def _candidate_pause(self) -> float:
        """Returns a longer delay than the leader's, so that nothing is polled while the watch shows renewals."""
        pause = self.options.retry_seconds * (1.2 + 0.6 * self._rng.random())
        until_free = self._lock.seconds_until_free()
        return min(pause, until_free + _TICK) if until_free else pause

    def _begin(self) -> None:
        _log.info("%s: %s leads", self._where, self.identity)
        self._last_holder = self.identity
        self._over.clear()
        self._won.set()

    def _end(self) -> None:
        """Cancels led work; its last writes still pass the fence while that is open."""
        self._won.clear()
        self._over.set()

    def _lose(self) -> None:
        why = (
            "it could not be renewed in time" if self._lock.is_ours else f"{self._lock.holder or 'nobody'} holds it now"
        )
        _log.warning("%s: %s no longer leads: %s", self._where, self.identity, why)
        self.fence.close()
        self._end()

    async def _resign(self) -> None:
        self._end()
        try:
            await within(self._clock, self.options.stop_seconds, self._idle.wait())
        except TimeoutError:
            _log.error("%s: the led work did not end in time; the Lease is kept until it expires", self._where)
            return
        finally:
            self.fence.close()
        if self.options.release_on_stop:
            await self._release()

    async def _release(self) -> None:
        was_ours = self._lock.is_ours
        try:
            await within(self._clock, self.options.stop_seconds, self._lock.release())
        except (NavarchError, TimeoutError) as error:
            _log.warning("%s: the Lease could not be given back: %s; it expires by itself", self._where, error)
        else:
            if was_ours:
                _log.info("%s: %s has given the Lease back", self._where, self.identity)

    def _enter(self) -> None:
        self._led += 1
        self._idle.clear()

    def _leave(self) -> None:
        self._led -= 1
        if not self._led:
            self._idle.set()

    async def _term(self, work: Work) -> None:
        """Runs one term. It lasts until leadership is lost, even if the work ends earlier."""
        try:
            await work()
        except Exception:
            if not self._over.is_set():
                raise
            _log.exception("%s: led work failed while it was being stopped", self._where)
        await self._over.wait()

    async def _until_idle(self) -> None:
        try:
            await within(self._clock, self.options.stop_seconds, self._idle.wait())
        except TimeoutError:
            _log.error("%s: led work does not end after it was cancelled; not a candidate until it does", self._where)
            await self._idle.wait()

    @property
    def _where(self) -> str:
        return f"lease {self.namespace}/{self.options.name}"

    def _tell_holder(self) -> None:
        if self._lock.holder != self._last_holder:
            self._last_holder = self._lock.holder
            _log.info("%s: %s stands by; held by %s", self._where, self.identity, self._last_holder or "nobody")

    def _report(self, error: Exception) -> None:
        """Logs the same trouble once, until something succeeds."""
        trouble = str(error) if isinstance(error, NavarchError) else "no answer in time"
        if isinstance(error, NotFound):
            trouble += f"; create namespace {self.namespace}, if it is missing"
        if trouble != self.trouble:
            self.trouble = trouble
            _log.warning("%s: %s; tried again", self._where, trouble)
