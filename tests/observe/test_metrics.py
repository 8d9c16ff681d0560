"""Metrics count correctly, and are exposed in Prometheus' format."""

import gc
import random
import subprocess
import sys
import weakref
from dataclasses import dataclass

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from navarch._base.clock import ManualClock
from navarch.observe.families import Histogram
from navarch.observe.metrics import (
    CacheMetrics,
    CacheSize,
    ControllerMetrics,
    LeaderMetrics,
    LoopMetrics,
    Metrics,
    MetricSource,
    Outcome,
    RequestMetrics,
    WatchStatus,
    WorkQueueMetrics,
)
from navarch.queue import WorkQueue

Samples = dict[tuple[str, tuple[str, ...]], float]


def shown(*parts: MetricSource) -> Samples:
    """What a scrape finds: (name, label values in the order of their names) to value."""
    metrics = Metrics()
    for part in parts:
        metrics.add(part)
    return scraped(metrics)


def scraped(metrics: Metrics) -> Samples:
    text = metrics.exposition()[0].decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            place = sample.name, tuple(value for _, value in sorted(sample.labels.items()))
            assert place not in found, f"expected each series once, got {place} twice"
            found[place] = sample.value
    return found


@pytest.mark.parametrize(
    ("outcome", "result", "also"),
    [
        ("success", "success", set()),
        ("requeue", "requeue", set()),
        ("requeue_after", "requeue_after", set()),
        ("error", "error", {"reconcile_errors_total"}),
        ("terminal", "error", {"reconcile_errors_total", "terminal_reconcile_errors_total"}),
        ("crash", "error", {"reconcile_errors_total", "reconcile_panics_total"}),
        ("timeout", "error", {"reconcile_errors_total", "reconcile_timeouts_total"}),
    ],
)
def test_outcome_is_counted_as_controller_runtime_does(outcome: Outcome, result: str, also: set[str]) -> None:
    """Each result and each kind of error in its own counter, and in no other."""
    metrics = ControllerMetrics("memcached", workers=4)
    metrics.started()
    metrics.finished(outcome, 0.2)
    found = shown(metrics)
    results = ("success", "error", "requeue", "requeue_after")
    total = {name: found["controller_runtime_reconcile_total", ("memcached", name)] for name in results}
    assert total == {name: float(name == result) for name in results}
    errors = ("reconcile_errors_total", "terminal_reconcile_errors_total", "reconcile_panics_total")
    for name in (*errors, "reconcile_timeouts_total"):
        assert found[f"controller_runtime_{name}", ("memcached",)] == float(name in also), name


def test_workers_are_shown_as_they_are_now() -> None:
    """The maximum and the busy workers are exposed."""
    metrics = ControllerMetrics("memcached", workers=4)
    for _ in range(3):
        metrics.started()
    metrics.finished("success", 0.1)
    metrics.cancelled()
    metrics.self_triggered()
    found = shown(metrics)
    assert found["controller_runtime_max_concurrent_reconciles", ("memcached",)] == 4
    assert found["controller_runtime_active_workers", ("memcached",)] == 1
    assert found["navarch_self_triggered_reconciles_total", ("memcached",)] == 1
    assert found["controller_runtime_reconcile_time_seconds_count", ("memcached",)] == 1


def test_reconcile_time_has_the_buckets_of_controller_runtime() -> None:
    """Forty bounds up to a minute; a value that equals a bound belongs to it."""
    metrics = ControllerMetrics("memcached", workers=1)
    for seconds in (0.001, 0.15, 61.0):
        metrics.started()
        metrics.finished("success", seconds)
    found = shown(metrics)
    name = "controller_runtime_reconcile_time_seconds"
    buckets = {labels[1]: value for (sample, labels), value in found.items() if sample == f"{name}_bucket"}
    assert len(buckets) == 41
    assert (buckets["0.005"], buckets["0.1"], buckets["0.15"], buckets["60.0"], buckets["+Inf"]) == (1, 1, 2, 2, 3)
    assert found[f"{name}_sum", ("memcached",)] == pytest.approx(61.151)


@dataclass
class Queue:
    depth: int
    worked: list[float]

    def unfinished_seconds(self) -> float:
        return sum(self.worked)

    def longest_running_seconds(self) -> float:
        return max(self.worked, default=0.0)


def test_queue_is_asked_when_somebody_looks() -> None:
    """Depth and unfinished work are those at the scrape."""
    queue = Queue(3, [1.0, 2.5])
    metrics = WorkQueueMetrics("memcached")
    metrics.source = queue
    labels = ("memcached", "memcached")
    found = shown(metrics)
    assert found["workqueue_depth", labels] == 3
    assert found["workqueue_unfinished_work_seconds", labels] == 3.5
    assert found["workqueue_longest_running_processor_seconds", labels] == 2.5
    queue.depth, queue.worked = 0, []
    assert shown(metrics)["workqueue_depth", labels] == 0
    assert shown(metrics)["workqueue_longest_running_processor_seconds", labels] == 0


def test_queue_counts_what_goes_through_it() -> None:
    """Adds, retries, waiting and working times are counted."""
    metrics = WorkQueueMetrics("memcached")
    metrics.added()
    metrics.added()
    metrics.retried()
    metrics.taken(0.5)
    metrics.finished(0.002)
    found, labels = shown(metrics), ("memcached", "memcached")
    assert found["workqueue_adds_total", labels] == 2
    assert found["workqueue_retries_total", labels] == 1
    assert found["workqueue_queue_duration_seconds_bucket", ("memcached", "0.1", "memcached")] == 0
    assert found["workqueue_queue_duration_seconds_bucket", ("memcached", "1.0", "memcached")] == 1
    assert found["workqueue_work_duration_seconds_sum", labels] == 0.002


def test_watches_are_those_of_this_moment() -> None:
    """A stopped watch is no longer exposed."""
    watches = [WatchStatus("pods", "", "watching", 1.0), WatchStatus("deployments.apps", "in a", "listing", 70.0)]
    kept = [CacheSize("pods", "", 10, 2000)]
    metrics = CacheMetrics(lambda: watches, lambda: kept)
    found = shown(metrics)
    assert found["navarch_watch_state", ("pods", "", "watching")] == 1
    assert found["navarch_watch_state", ("deployments.apps", "in a", "listing")] == 1
    assert found["navarch_watch_staleness_seconds", ("deployments.apps", "in a")] == 70
    assert found["navarch_cache_objects", ("pods", "")] == 10
    assert found["navarch_cache_bytes", ("pods", "")] == 2000
    watches.clear()
    kept.clear()
    assert not any(name.startswith("navarch_") for name, _ in shown(metrics))


def test_requests_are_counted_by_their_answer() -> None:
    """A request without an answer has the code <error>, as in client-go."""
    metrics = RequestMetrics("10.0.0.1:443")
    metrics.answered("GET", 200)
    metrics.answered("GET", 200)
    metrics.unanswered("POST")
    found = shown(metrics)
    assert found["rest_client_requests_total", ("200", "10.0.0.1:443", "GET")] == 2
    assert found["rest_client_requests_total", ("<error>", "10.0.0.1:443", "POST")] == 1


def test_leader_is_shown() -> None:
    """The gauge is 1 while the process leads."""
    for leading in (False, True):
        found = shown(LeaderMetrics("memcached-operator", lambda: leading))  # noqa: B023 - asked at once
        assert found["leader_election_master_status", ("memcached-operator",)] == leading


def test_loop_lag_is_a_distribution() -> None:
    """A histogram shows rare lags."""
    metrics = LoopMetrics()
    metrics.turned(0.002)
    metrics.turned(3.0)
    found = shown(metrics)
    assert found["navarch_event_loop_lag_seconds_bucket", ("0.0025",)] == 1
    assert found["navarch_event_loop_lag_seconds_count", ()] == 2


def test_parts_of_one_name_are_shown_as_one() -> None:
    """Samples of the same series are joined: counters are added, and the largest age counts."""
    one, other = ControllerMetrics("memcached", 2), ControllerMetrics("memcached", 3)
    for part, seconds in ((one, 0.1), (other, 2.0)):
        part.started()
        part.finished("success", seconds)
    watches = [WatchStatus("pods", "", "watching", seconds) for seconds in (3.0, 9.0)]
    kept = [CacheSize("pods", "", 10, 2000)] * 2
    found = shown(one, other, CacheMetrics(lambda: watches, lambda: kept))
    assert found["controller_runtime_reconcile_total", ("memcached", "success")] == 2
    assert found["controller_runtime_max_concurrent_reconciles", ("memcached",)] == 5
    assert found["controller_runtime_reconcile_time_seconds_sum", ("memcached",)] == 2.1
    assert found["controller_runtime_reconcile_time_seconds_bucket", ("memcached", "+Inf")] == 2
    assert found["navarch_watch_staleness_seconds", ("pods", "")] == 9
    assert found["navarch_watch_state", ("pods", "", "watching")] == 2
    assert found["navarch_cache_objects", ("pods", "")] == 20


def test_part_that_is_added_twice_counts_once() -> None:
    """Removing it once, or again, removes it."""
    metrics, part = Metrics(), ControllerMetrics("a", 3)
    metrics.add(part)
    metrics.add(part)
    assert scraped(metrics)["controller_runtime_max_concurrent_reconciles", ("a",)] == 3
    metrics.remove(part)
    metrics.remove(part)
    assert ("controller_runtime_max_concurrent_reconciles", ("a",)) not in scraped(metrics)


def test_operators_of_one_process_do_not_collide() -> None:
    """Each operator has its own numbers under the same names."""
    one, other = Metrics(), Metrics()
    one.add(LeaderMetrics("one", lambda: True))
    other.add(LeaderMetrics("other", lambda: True))
    assert ("leader_election_master_status", ("one",)) in scraped(one)
    assert ("leader_election_master_status", ("one",)) not in scraped(other)


def test_metrics_that_nobody_holds_are_gone() -> None:
    """No global registry keeps them."""
    metrics, part = Metrics(), ControllerMetrics("memcached", 1)
    metrics.add(part)
    metrics.exposition()
    left = weakref.ref(metrics)
    del metrics
    gc.collect()
    assert left() is None


def test_users_own_metrics_are_shown_beside_ours() -> None:
    """Metrics of prometheus_client and of the process are exposed too."""
    own = CollectorRegistry()
    Counter("backups", "How many backups were made", registry=own).inc()
    metrics = Metrics(own)
    metrics.add(ControllerMetrics("memcached", 7))
    found = scraped(metrics)
    assert found["backups_total", ()] == 1
    assert found["controller_runtime_max_concurrent_reconciles", ("memcached",)] == 7
    assert found["process_resident_memory_bytes", ()] > 0


def test_name_that_both_registries_have_is_shown_once() -> None:
    """The global registry also has the process's metrics; a repeated name would fail the scrape."""
    text = Metrics(REGISTRY).exposition()[0].decode().splitlines()
    assert [line for line in text if line.startswith("# TYPE python_info ")] == ["# TYPE python_info gauge"]


def test_openmetrics_is_given_to_whom_asks_for_it() -> None:
    """Other clients get plain text."""
    metrics = Metrics()
    metrics.add(ControllerMetrics("memcached", 1))
    body, kind = metrics.exposition("application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    assert metrics.exposition()[1].startswith("text/plain")


def test_histogram_counts_like_prometheus() -> None:
    """A value belongs to the first bound that is not below it."""
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.5):
        histogram.add(value)
    assert histogram.cumulative() == [("1.0", 2.0), ("2.0", 3.0), ("+Inf", 4.0)]
    assert histogram.total == 5.5


def test_counting_does_not_import_prometheus() -> None:
    """An operator without an endpoint imports neither prometheus_client nor OpenTelemetry."""
    script = (
        "import sys; from navarch.observe import metrics, traces, logs; m = metrics.Metrics();"
        "m.add(metrics.ControllerMetrics('a', 1));"
        "print([name for name in sys.modules if name.startswith(('prometheus', 'opentelemetry', 'aiohttp'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_work_queue_can_be_asked() -> None:
    """The work queue fulfils the protocol of the metrics, and the reverse."""
    metrics = WorkQueueMetrics("memcached")
    queue: WorkQueue[str] = WorkQueue("memcached", ManualClock(), random.Random(1), metrics=metrics)
    metrics.source = queue
    queue.add("default/cache")
    assert shown(metrics)["workqueue_depth", ("memcached", "memcached")] == 1
    assert shown(metrics)["workqueue_adds_total", ("memcached", "memcached")] == 1
