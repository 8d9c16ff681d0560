"""The metric families: controller-runtime's names where the meaning is the same, so that its dashboards work."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, NamedTuple, Protocol

Buckets = tuple[float, ...]


class Histogram:
    """Counts values in buckets. Adding one costs a search among the upper bounds and two additions.

    prometheus_client's histogram takes a lock for each value and compares bounds one by one: ten times slower.
    """

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Buckets) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Counts one value in the bucket of the first bound that is not below it."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """Returns for each bound, as text, the number of values that are not above it; the last bound is +Inf."""
        names = (*map(str, self._bounds), "+Inf")
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))

    def __add__(self, other: Histogram) -> Histogram:
        joined = Histogram(self._bounds)
        joined._counts = [mine + theirs for mine, theirs in zip(self._counts, other._counts, strict=True)]
        joined.total = self.total + other.total
        return joined


@dataclass(frozen=True, slots=True, eq=False)
class MetricFamily:
    """One metric with its label names. `joined` combines two samples of one family with the same labels."""

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    help: str
    labels: tuple[str, ...]
    joined: Callable[[float, float], float] = float.__add__


class Sample(NamedTuple):
    """One value of one family, from one source."""

    family: MetricFamily
    labels: tuple[str, ...]
    value: float | Histogram


class MetricSource(Protocol):
    """Something that is measured; it is read at each scrape."""

    def samples(self) -> Iterable[Sample]:
        """Returns the current samples."""
        ...


RECONCILE_SECONDS: Final[Buckets] = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
QUEUE_SECONDS: Final[Buckets] = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
WEBHOOK_SECONDS: Final[Buckets] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LAG_SECONDS: Final[Buckets] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_CONTROLLER = ("controller",)
_QUEUE = ("name", "controller")
_WATCH = ("kind", "scope")

RECONCILE_TOTAL = MetricFamily(
    "counter",
    "controller_runtime_reconcile_total",
    "Total number of reconciliations per controller",
    ("controller", "result"),
)
RECONCILE_ERRORS = MetricFamily(
    "counter",
    "controller_runtime_reconcile_errors_total",
    "Total number of reconciliation errors per controller",
    _CONTROLLER,
)
TERMINAL_ERRORS = MetricFamily(
    "counter",
    "controller_runtime_terminal_reconcile_errors_total",
    "Total number of terminal reconciliation errors per controller: tried again only when the object changes",
    _CONTROLLER,
)
RECONCILE_PANICS = MetricFamily(
    "counter",
    "controller_runtime_reconcile_panics_total",
    "Total number of reconciliations that raised what is no expected error, which points to a fault in the reconciler",
    _CONTROLLER,
)
RECONCILE_TIMEOUTS = MetricFamily(
    "counter",
    "controller_runtime_reconcile_timeouts_total",
    "Total number of reconciliations that were cut off at their time limit",
    _CONTROLLER,
)
RECONCILE_TIME = MetricFamily(
    "histogram",
    "controller_runtime_reconcile_time_seconds",
    "Length of time per reconciliation per controller",
    _CONTROLLER,
)
MAX_CONCURRENT = MetricFamily(
    "gauge",
    "controller_runtime_max_concurrent_reconciles",
    "Maximum number of concurrent reconciles per controller",
    _CONTROLLER,
)
ACTIVE_WORKERS = MetricFamily(
    "gauge",
    "controller_runtime_active_workers",
    "Number of currently used workers per controller",
    _CONTROLLER,
)
SELF_TRIGGERED = MetricFamily(
    "counter",
    "navarch_self_triggered_reconciles_total",
    "Total number of objects found to be reconciled over and over because of their own reconciler's writes",
    _CONTROLLER,
)

QUEUE_DEPTH = MetricFamily("gauge", "workqueue_depth", "Current depth of workqueue", _QUEUE)
QUEUE_ADDS = MetricFamily("counter", "workqueue_adds_total", "Total number of adds handled by workqueue", _QUEUE)
QUEUE_WAITED = MetricFamily(
    "histogram",
    "workqueue_queue_duration_seconds",
    "How long in seconds an item stays in workqueue before being requested",
    _QUEUE,
)
QUEUE_WORKED = MetricFamily(
    "histogram",
    "workqueue_work_duration_seconds",
    "How long in seconds processing an item from workqueue takes",
    _QUEUE,
)
QUEUE_UNFINISHED = MetricFamily(
    "gauge",
    "workqueue_unfinished_work_seconds",
    "How many seconds of work is in progress and not yet in work_duration; it grows where something is stuck",
    _QUEUE,
)
QUEUE_LONGEST = MetricFamily(
    "gauge",
    "workqueue_longest_running_processor_seconds",
    "How many seconds the longest running processor for workqueue has been running",
    _QUEUE,
    max,
)
QUEUE_RETRIES = MetricFamily(
    "counter", "workqueue_retries_total", "Total number of retries handled by workqueue", _QUEUE
)

CLIENT_REQUESTS = MetricFamily(
    "counter",
    "rest_client_requests_total",
    "Number of HTTP requests, partitioned by status code, method, and host; <error> where no answer came",
    ("code", "method", "host"),
)
LEADER_STATUS = MetricFamily(
    "gauge",
    "leader_election_master_status",
    "Whether this process is the leader (1) or a backup (0) of the election of that name",
    ("name",),
    max,
)
WATCH_STATE = MetricFamily(
    "gauge", "navarch_watch_state", "How many watches of a kind are in a state", (*_WATCH, "state")
)
WATCH_STALENESS = MetricFamily(
    "gauge",
    "navarch_watch_staleness_seconds",
    "How long ago the API server was last heard of; what is cached may be older than the cluster by so much",
    _WATCH,
    max,
)
CACHE_OBJECTS = MetricFamily("gauge", "navarch_cache_objects", "How many objects are cached", _WATCH)
CACHE_BYTES = MetricFamily("gauge", "navarch_cache_bytes", "How many bytes the cached objects take as JSON", _WATCH)
LOOP_LAG = MetricFamily(
    "histogram",
    "navarch_event_loop_lag_seconds",
    "How long the event loop took to turn to something that was ready",
    (),
)

_WEBHOOK = ("webhook",)

WEBHOOK_REQUESTS = MetricFamily(
    "counter",
    "controller_runtime_webhook_requests_total",
    "Total number of admission and conversion requests by HTTP status code",
    ("webhook", "code"),
)
WEBHOOK_LATENCY = MetricFamily(
    "histogram",
    "controller_runtime_webhook_latency_seconds",
    "Length of time of processing admission and conversion requests",
    _WEBHOOK,
)
WEBHOOK_IN_FLIGHT = MetricFamily(
    "gauge",
    "controller_runtime_webhook_requests_in_flight",
    "Current number of admission and conversion requests being served",
    _WEBHOOK,
)
WEBHOOK_VERDICTS = MetricFamily(
    "counter",
    "navarch_webhook_verdicts_total",
    "Total number of verdicts of admission webhooks: allowed, patched, denied",
    ("webhook", "verdict"),
)
CERTIFICATE_EXPIRY = MetricFamily(
    "gauge",
    "navarch_webhook_certificate_expiry_timestamp_seconds",
    "When the certificate of the webhooks expires, in Unix time: the CA that signs, and the certificate that is served",
    ("secret", "certificate"),
    min,
)
CERTIFICATE_CHANGES = MetricFamily(
    "counter",
    "navarch_webhook_certificate_changes_total",
    "Total number of changes that this replica made to the Secret with the webhooks' certificates",
    ("secret", "action"),
)
CERTIFICATE_ERRORS = MetricFamily(
    "counter",
    "navarch_webhook_certificate_errors_total",
    "Total number of failures to read or write the Secret with the webhooks' certificates",
    ("secret",),
)
