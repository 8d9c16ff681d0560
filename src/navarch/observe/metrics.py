"""The metric sources of the runtime.

Each part of the runtime owns one of these classes and calls it from the event loop. Numbers are plain Python, and are
converted to Prometheus' format at each scrape. Nothing is registered globally: an operator adds its sources to its own
`Metrics` and serves that, so several operators in one process stay separate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, Protocol, get_args

from navarch.observe import families
from navarch.observe.exposition import Metrics
from navarch.observe.families import Histogram, MetricSource, Sample

__all__ = [
    "CacheMetrics",
    "CacheSize",
    "CertificateMetrics",
    "ControllerMetrics",
    "LeaderMetrics",
    "LoopMetrics",
    "MetricSource",
    "Metrics",
    "Outcome",
    "QueueSource",
    "RequestMetrics",
    "Sample",
    "WatchStatus",
    "WebhookMetrics",
    "WorkQueueMetrics",
]

Outcome = Literal["success", "requeue", "requeue_after", "error", "terminal", "crash", "timeout"]
"""The result of a reconcile.

- `success`: it returned; `requeue_after`: it requested another reconcile after some time (`Result(after=…)`,
  `Retry(after=…)`); `requeue`: it requested another reconcile with backoff (`Retry` without a time).
- `error`: it raised the error of a call to the API or to another service (`NavarchError`, `OSError`, `TimeoutError`),
  which a correct reconciler may raise.
- `terminal`: it raised `Permanent`. `timeout`: it was cancelled at its time limit.
- `crash`: it raised any other error, which points to a fault in the reconciler (counted as a panic, as in Go).

The last four are all `result="error"` for dashboards.
"""

_FAILURES: tuple[Outcome, ...] = ("error", "terminal", "crash", "timeout")
_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_NO_ANSWER = "<error>"


class ControllerMetrics:
    """The reconciles of one controller."""

    __slots__ = ("_active", "_labels", "_outcomes", "_self_triggered", "_time", "_workers")

    def __init__(self, name: str, workers: int) -> None:
        self._labels = (name,)
        self._workers = workers
        self._active = 0
        self._self_triggered = 0
        self._outcomes: dict[Outcome, int] = dict.fromkeys(_OUTCOMES, 0)
        self._time = Histogram(families.RECONCILE_SECONDS)

    def started(self) -> None:
        """Counts a reconcile that begins."""
        self._active += 1

    def finished(self, outcome: Outcome, seconds: float) -> None:
        """Counts a reconcile that ended, with its result and duration."""
        self._active -= 1
        self._outcomes[outcome] += 1
        self._time.add(seconds)

    def cancelled(self) -> None:
        """Ends a reconcile that was cancelled, for example by shutdown; it is not counted."""
        self._active -= 1

    def self_triggered(self) -> None:
        """Counts an object whose reconciles are triggered by this controller's own writes, again and again."""
        self._self_triggered += 1

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        counts, labels = self._outcomes, self._labels
        failed = sum(counts[outcome] for outcome in _FAILURES)
        results = {"error": failed} | {name: counts[name] for name in _OUTCOMES if name not in _FAILURES}
        for result, count in results.items():
            yield Sample(families.RECONCILE_TOTAL, (*labels, result), count)
        yield Sample(families.RECONCILE_ERRORS, labels, failed)
        yield Sample(families.TERMINAL_ERRORS, labels, counts["terminal"])
        yield Sample(families.RECONCILE_PANICS, labels, counts["crash"])
        yield Sample(families.RECONCILE_TIMEOUTS, labels, counts["timeout"])
        yield Sample(families.RECONCILE_TIME, labels, self._time)
        yield Sample(families.MAX_CONCURRENT, labels, self._workers)
        yield Sample(families.ACTIVE_WORKERS, labels, self._active)
        yield Sample(families.SELF_TRIGGERED, labels, self._self_triggered)


class QueueSource(Protocol):
    """The state of a queue that is read at each scrape."""

    @property
    def depth(self) -> int:
        """Returns the number of keys that wait."""
        ...

    def unfinished_seconds(self) -> float:
        """Returns the sum of the seconds that keys in progress have taken so far."""
        ...

    def longest_running_seconds(self) -> float:
        """Returns the seconds of the key that has been in progress for the longest time."""
        ...


class WorkQueueMetrics:
    """One work queue; it has the name of its controller."""

    __slots__ = ("_adds", "_labels", "_retries", "_waited", "_worked", "source")

    def __init__(self, name: str) -> None:
        self._labels = (name, name)
        self.source: QueueSource | None = None
        """The queue, once it exists: it has the depth and the unfinished work."""
        self._adds = 0
        self._retries = 0
        self._waited = Histogram(families.QUEUE_SECONDS)
        self._worked = Histogram(families.QUEUE_SECONDS)

    def added(self) -> None:
        """Counts a key that begins to wait."""
        self._adds += 1

    def retried(self) -> None:
        """Counts a key that is retried with backoff."""
        self._retries += 1

    def taken(self, waited: float) -> None:
        """Counts a key that a worker takes after so many seconds."""
        self._waited.add(waited)

    def finished(self, seconds: float) -> None:
        """Counts a key that a worker finished after so many seconds."""
        self._worked.add(seconds)

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        labels, source = self._labels, self.source
        yield Sample(families.QUEUE_ADDS, labels, self._adds)
        yield Sample(families.QUEUE_RETRIES, labels, self._retries)
        yield Sample(families.QUEUE_WAITED, labels, self._waited)
        yield Sample(families.QUEUE_WORKED, labels, self._worked)
        if source is not None:
            yield Sample(families.QUEUE_DEPTH, labels, source.depth)
            yield Sample(families.QUEUE_UNFINISHED, labels, source.unfinished_seconds())
            yield Sample(families.QUEUE_LONGEST, labels, source.longest_running_seconds())


class WatchStatus(NamedTuple):
    """The state of one watch at a scrape."""

    kind: str
    """The watched resource, for example "deployments.apps"."""
    scope: str
    """Its namespace or selector; empty for all objects."""
    state: str
    """The state of the watch, for example "watching"."""
    staleness: float
    """The seconds since the last answer of the server."""


class CacheSize(NamedTuple):
    """The size of one collection of the cache at a scrape."""

    kind: str
    scope: str
    objects: int
    bytes: int


class CacheMetrics:
    """The watches and the cache; both functions are called at each scrape, since watches start and stop."""

    __slots__ = ("_kept", "_watched")

    def __init__(self, watched: Callable[[], Iterable[WatchStatus]], kept: Callable[[], Iterable[CacheSize]]) -> None:
        self._watched = watched
        self._kept = kept

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        for kind, scope, state, staleness in self._watched():
            yield Sample(families.WATCH_STATE, (kind, scope, state), 1)
            yield Sample(families.WATCH_STALENESS, (kind, scope), staleness)
        for kind, scope, objects, size in self._kept():
            yield Sample(families.CACHE_OBJECTS, (kind, scope), objects)
            yield Sample(families.CACHE_BYTES, (kind, scope), size)


class RequestMetrics:
    """The requests to one API server; `host` is its host and port."""

    __slots__ = ("_counts", "_host")

    def __init__(self, host: str) -> None:
        self._host = host
        self._counts: Counter[tuple[str, str]] = Counter()

    def answered(self, method: str, code: int) -> None:
        """Counts a request with the status code of its answer."""
        self._counts[str(code), method] += 1

    def unanswered(self, method: str) -> None:
        """Counts a request without an answer."""
        self._counts[_NO_ANSWER, method] += 1

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        for labels, count in self._counts.items():
            yield Sample(families.CLIENT_REQUESTS, (*labels, self._host), count)


class WebhookMetrics:
    """The requests to one webhook, by its path."""

    __slots__ = ("_codes", "_in_flight", "_labels", "_time", "_verdicts")

    def __init__(self, path: str) -> None:
        self._labels = (path,)
        self._codes: Counter[int] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._in_flight = 0
        self._time = Histogram(families.WEBHOOK_SECONDS)

    def started(self) -> None:
        """Counts a request that begins."""
        self._in_flight += 1

    def finished(self, code: int, seconds: float) -> None:
        """Counts an answered request, with its HTTP status code and duration."""
        self._in_flight -= 1
        self._codes[code] += 1
        self._time.add(seconds)

    def judged(self, verdict: Literal["allowed", "patched", "denied"]) -> None:
        """Counts a verdict."""
        self._verdicts[verdict] += 1

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        for code, count in self._codes.items():
            yield Sample(families.WEBHOOK_REQUESTS, (*self._labels, str(code)), count)
        for verdict, count in self._verdicts.items():
            yield Sample(families.WEBHOOK_VERDICTS, (*self._labels, verdict), count)
        yield Sample(families.WEBHOOK_LATENCY, self._labels, self._time)
        yield Sample(families.WEBHOOK_IN_FLIGHT, self._labels, self._in_flight)


class LeaderMetrics:
    """The leadership of this process in the election of that name."""

    __slots__ = ("_labels", "_leading")

    def __init__(self, name: str, leading: Callable[[], bool]) -> None:
        self._labels = (name,)
        self._leading = leading

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        yield Sample(families.LEADER_STATUS, self._labels, float(self._leading()))


class CertificateMetrics:
    """The webhooks' certificates in one Secret; `expiries` returns their expiry in Unix time by name."""

    __slots__ = ("_changes", "_errors", "_expiries", "_labels")

    def __init__(self, secret: str, expiries: Callable[[], Mapping[str, float]]) -> None:
        self._labels = (secret,)
        self._expiries = expiries
        self._changes: Counter[str] = Counter()
        self._errors = 0

    def changed(self, action: str) -> None:
        """Counts a change of the Secret by this replica."""
        self._changes[action] += 1

    def failed(self) -> None:
        """Counts a failure to read or write the Secret."""
        self._errors += 1

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        for name, expiry in self._expiries().items():
            yield Sample(families.CERTIFICATE_EXPIRY, (*self._labels, name), expiry)
        for action, count in self._changes.items():
            yield Sample(families.CERTIFICATE_CHANGES, (*self._labels, action), count)
        yield Sample(families.CERTIFICATE_ERRORS, self._labels, self._errors)


class LoopMetrics:
    """The lag of the event loop."""

    __slots__ = ("_lag",)

    def __init__(self) -> None:
        self._lag = Histogram(families.LAG_SECONDS)

    def turned(self, lag: float) -> None:
        """Counts a callback that ran so many seconds after it was ready."""
        self._lag.add(lag)

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        yield Sample(families.LOOP_LAG, (), self._lag)
