"""`Recorder`: records Events about objects and sends them in the background (`events.k8s.io/v1`)."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.api import Dynamic, Object
from navarch.api.names import LABEL_KEY
from navarch.client import Client, MergePatch
from navarch.client.call import may_pass
from navarch.controller.event_records import (
    EventRecord,
    EventReporter,
    EventSeriesState,
    EventSubject,
    EventType,
    checked_word,
)
from navarch.errors import AlreadyExists, Forbidden, NavarchError, NotFound

__all__ = ["EventType", "Recorder", "RecorderOptions"]

_log = logging.getLogger("navarch.controller")

_TICK = 0.001
_PAUSE = Backoff(initial=1.0, maximum=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """How many events the recorder keeps and how often it writes them; times in seconds.

    At most `capacity` different events are kept; when all of them wait to be sent, new ones are dropped. The same event is
    written at most every `write_seconds`, with its count; after `series_seconds` of silence it counts as a new one. At the end,
    `stop_seconds` remain to send the rest.
    """

    capacity: int = 1000
    write_seconds: float = 10.0
    series_seconds: float = 360.0
    stop_seconds: float = 3.0


class Recorder:
    """Takes events at any time and sends them in the background, while `run` runs.

    `component` is the reporting controller and `instance` its process. Events need no leadership: give the recorder a client
    that is not fenced.
    """

    def __init__(
        self,
        client: Client,
        component: str,
        instance: str,
        clock: Clock,
        rng: random.Random,
        *,
        options: RecorderOptions = RecorderOptions(),
    ) -> None:
        LABEL_KEY.check(component, where="the component of a Recorder")
        self._reporter = EventReporter(component, checked_word("instance", instance))
        self._client = client
        self._clock = clock
        self._rng = rng
        self._options = options
        self._guard = threading.Lock()
        self._series: OrderedDict[EventRecord, EventSeriesState] = OrderedDict()
        self._waiting: dict[EventRecord, EventSeriesState] = {}
        self._sending = asyncio.Lock()
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._warned: set[str] = set()
        self.dropped = 0
        """How many events were not kept, or could not be sent, so far."""

    def record(
        self,
        regarding: Object | Dynamic,
        reason: str,
        note: str,
        *,
        type: EventType = "Normal",  # noqa: A002 - Kubernetes' own word
        action: str = "Reconcile",
        related: Object | Dynamic | None = None,
        part: str = "",
        controller: str = "",
    ) -> None:
        """Records an event about `regarding`; returns at once, and may be called from any thread.

        `reason` and `action` are words of at most 128 bytes; a note is cut to 1024. `part` is the path of a part of the object,
        such as `spec.containers{web}`; `controller` replaces the recorder's own name. Raises `InvalidValueError` for an event that
        no server would accept; later failures are logged, never raised.
        """
        about = EventSubject.of(regarding, part)
        record = EventRecord.of(
            about, related, type=type, reason=reason, action=action, note=note, controller=controller
        )
        with self._guard:
            is_news = self._remember(record)
        if is_news and self._loop is not None:
            self._loop.call_soon_threadsafe(self._news.set)

    async def run(self) -> None:
        """Sends recorded events until it is cancelled; then the rest, for at most `stop_seconds`."""
        self._loop = asyncio.get_running_loop()
        delays = BackoffDelays(_PAUSE, self._rng)
        try:
            while True:
                await self._send_or_wait(delays)
        finally:
            self._loop = None
            await self.flush(self._options.stop_seconds)

    async def flush(self, seconds: float) -> None:
        """Sends all waiting events, for at most so many seconds; never raises. The rest is kept for another flush."""
        try:
            await within(self._clock, seconds, self._send(everything=True))
        except (NavarchError, TimeoutError) as error:
            _log.warning("events: %d could not be sent in time: %s", len(self._waiting), error)

    async def _send_or_wait(self, delays: BackoffDelays) -> None:
        self._news.clear()
        try:
            await self._send(everything=False)
        except NavarchError as error:
            self._warn_once("the server", f"{error}; events wait")
            await self._clock.sleep(delays.next_delay())
        else:
            self._warned.discard("the server")
            delays.reset()
            await self._until_due()

    def _remember(self, record: EventRecord) -> bool:
        """Counts the event and returns whether there is something new to send."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        self._forget_silent(monotonic)
        series = self._series.get(record)
        if series is not None:
            series.happened_again(now, monotonic)
            self._series.move_to_end(record)
        elif self._has_room():
            series = self._series[record] = EventSeriesState.begun(record, now, monotonic, self._rng)
        else:
            self._drop(f"{self._options.capacity} wait already; new ones are dropped")
            return False
        is_news = record not in self._waiting
        self._waiting[record] = series
        return is_news

    def _forget_silent(self, monotonic: float) -> None:
        """Ends the series that have been silent for long; the series are ordered by their last event."""
        while self._series:
            record, oldest = next(iter(self._series.items()))
            if monotonic - oldest.seen_at < self._options.series_seconds:
                return
            del self._series[record]
            if self._waiting.pop(record, None):
                self._drop("some could not be sent for minutes and are dropped")

    def _has_room(self) -> bool:
        """Returns whether one more event fits; ends a series that has been written if it must."""
        if len(self._series) < self._options.capacity:
            return True
        if len(self._waiting) == len(self._series):
            return False
        written = next((each for each in self._series if each not in self._waiting), None)
        if written is not None:
            del self._series[written]
        return written is not None

    def _drop(self, why: str) -> None:
        self.dropped += 1
        self._warn_once("dropped", why)

    async def _until_due(self) -> None:
        """Returns when an event is due."""
        with self._guard:
            due_at = min((series.due_at for series in self._waiting.values()), default=None)
        if due_at is None:
            await self._news.wait()
            return
        try:
            await within(self._clock, due_at - self._clock.monotonic() + _TICK, self._news.wait())
        except TimeoutError:
            return

    async def _send(self, *, everything: bool) -> None:
        """Sends due events one after the other. Raises transient errors; the failed event is queued behind the rest."""
        async with self._sending:
            with self._guard:
                now = self._clock.monotonic()
                self._forget_silent(now)
                due = [series for series in self._waiting.values() if everything or series.due_at <= now]
            for series in due:
                await self._send_one(series)

    async def _send_one(self, series: EventSeriesState) -> None:
        with self._guard:
            present = replace(series)
        try:
            await self._written(present)
        except NavarchError as error:
            if may_pass(error):
                self._put_last(series)
                raise
            self._give_up(series, error)
            return
        with self._guard:
            series.written, series.due_at = present.count, self._clock.monotonic() + self._options.write_seconds
            if series.count == present.count:
                self._waiting.pop(series.record, None)

    async def _written(self, series: EventSeriesState) -> None:
        """Creates the Event, or patches the series of the one that exists."""
        if not series.written:
            try:
                await self._client.create(series.event(self._reporter))
            except AlreadyExists:  # an attempt whose answer was lost
                await self._patched(series)
            return
        try:
            await self._patched(series)
        except NotFound:  # events do not live long
            await self._client.create(series.event(self._reporter))

    async def _patched(self, series: EventSeriesState) -> None:
        if series.count > 1:
            from navarch.k8s.events.v1 import Event  # noqa: PLC0415 - large; not needed before an event is sent

            await self._client.patch(Event, series.name, MergePatch(series.changes()), namespace=series.namespace)

    def _put_last(self, series: EventSeriesState) -> None:
        with self._guard:
            if self._waiting.pop(series.record, None):
                self._waiting[series.record] = series

    def _give_up(self, series: EventSeriesState, error: NavarchError) -> None:
        """Drops the event; in a namespace that is being deleted this is expected and not logged."""
        with self._guard:
            self._waiting.pop(series.record, None)
            self._series.pop(series.record, None)
            self.dropped += 1
        if not _is_leaving(error):
            what = "forbidden" if isinstance(error, Forbidden) else str(error)
            self._warn_once(what, f"{error}; dropped, as will be others like it")

    def _warn_once(self, about: str, text: str) -> None:
        if about not in self._warned and len(self._warned) < self._options.capacity:
            self._warned.add(about)
            _log.warning("events: %s", text)


def _is_leaving(error: NavarchError) -> bool:
    """Returns whether the namespace is being deleted, or gone."""
    if isinstance(error, Forbidden):
        return any(cause.reason == "NamespaceTerminating" for cause in error.causes)
    return isinstance(error, NotFound)
