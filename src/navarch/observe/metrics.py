"""What is counted, and by whom.

Each part of the runtime owns one of these small classes and calls it from the event loop; the numbers are plain Python,
and are made into Prometheus' form only when somebody looks. Nothing is registered by itself: an operator adds its
parts to its own `Metrics` and serves that, so several operators in one process do not know of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, Protocol, get_args

from navarch.observe import families
from navarch.observe.exposition import Metrics
from navarch.observe.families import Histogram, MetricSource, Sample

__all__ = [
    "CacheMetrics",
    "CacheSize",
    "ControllerMetrics",
    "LeaderMetrics",
    "LoopMetrics",
    "MetricSource",
    "Metrics",
    "Outcome",
    "QueueMetrics",
    "QueueSource",
    "RequestMetrics",
    "Sample",
    "WatchStatus",
]

Outcome = Literal["success", "requeue", "requeue_after", "error", "terminal", "crash", "timeout"]
"""How a reconcile ended.

- `success`: it returned; `requeue_after`: it asked to come again after some time (`Result(after=…)`, `Retry(after=…)`);
  `requeue`: it asked to come again with growing delays (`Retry` without a time).
- `error`: it raised an error that can be expected of a working reconciler, that of a call to the API or to another
  service (`NavarchError`, `OSError`, `TimeoutError`).
- `terminal`: it raised `Permanent`. `timeout`: it was cut off at its time limit.
- `crash`: it raised anything else, which points to a fault in the reconciler (counted as a panic, as Go has it).

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
        """A worker begins a reconcile."""
        self._active += 1

    def finished(self, outcome: Outcome, seconds: float) -> None:
        """The reconcile of a worker ended so, after so long."""
        self._active -= 1
        self._outcomes[outcome] += 1
        self._time.add(seconds)

    def cancelled(self) -> None:
        """The reconcile of a worker was given up, as when the operator stops; it counts as nothing."""
        self._active -= 1

    def self_triggered(self) -> None:
        """An object was found to be reconciled over and over because of what this very controller writes."""
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
    """What a queue is asked when somebody looks."""

    @property
    def depth(self) -> int:
        """How many keys wait to be taken."""
        ...

    def unfinished_seconds(self) -> float:
        """How long all that is being worked on has taken so far, added up."""
        ...

    def longest_running_seconds(self) -> float:
        """How long the longest that is being worked on has taken so far."""
        ...


class QueueMetrics:
    """One work queue; `name` is the name of its controller too."""

    __slots__ = ("_adds", "_labels", "_retries", "_waited", "_worked", "source")

    def __init__(self, name: str) -> None:
        self._labels = (name, name)
        self.source: QueueSource | None = None
        """The queue, once it exists: asked for its depth and for unfinished work."""
        self._adds = 0
        self._retries = 0
        self._waited = Histogram(families.QUEUE_SECONDS)
        self._worked = Histogram(families.QUEUE_SECONDS)

    def added(self) -> None:
        """A key that did not wait yet begins to wait."""
        self._adds += 1

    def retried(self) -> None:
        """A key is to come again with backoff."""
        self._retries += 1

    def taken(self, waited: float) -> None:
        """A worker takes a key that waited so many seconds."""
        self._waited.add(waited)

    def finished(self, seconds: float) -> None:
        """A worker is done with a key after so many seconds."""
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
    """One watch, as it is when somebody looks."""

    kind: str
    """What is watched, for example "deployments.apps"."""
    scope: str
    """Which part of it: a namespace, a selector; empty if all."""
    state: str
    """A word for where the watch is in its life, for example "watching"."""
    staleness: float
    """How many seconds ago the server was last heard of."""


class CacheSize(NamedTuple):
    """One collection of the cache, as it is when somebody looks."""

    kind: str
    scope: str
    objects: int
    bytes: int


class CacheMetrics:
    """Everything that is cached; both functions are asked anew each time, since watches come and go."""

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
        """A request was answered with this status."""
        self._counts[str(code), method] += 1

    def unanswered(self, method: str) -> None:
        """A request got no answer."""
        self._counts[_NO_ANSWER, method] += 1

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        for labels, count in self._counts.items():
            yield Sample(families.CLIENT_REQUESTS, (*labels, self._host), count)


class LeaderMetrics:
    """Whether this process leads the election of that name."""

    __slots__ = ("_labels", "_leading")

    def __init__(self, name: str, leading: Callable[[], bool]) -> None:
        self._labels = (name,)
        self._leading = leading

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        yield Sample(families.LEADER_STATUS, self._labels, float(self._leading()))


class LoopMetrics:
    """How readily the event loop turns."""

    __slots__ = ("_lag",)

    def __init__(self) -> None:
        self._lag = Histogram(families.LAG_SECONDS)

    def turned(self, lag: float) -> None:
        """The loop came to something that had been ready for so many seconds."""
        self._lag.add(lag)

    def samples(self) -> Iterator[Sample]:
        """See `MetricSource`."""
        yield Sample(families.LOOP_LAG, (), self._lag)
