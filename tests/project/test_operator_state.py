"""The state that the live view shows is that of the operator's metrics."""

from __future__ import annotations

from math import inf

import msgspec

from navarch.observe.metrics import (
    CacheMetrics,
    CacheSize,
    ControllerMetrics,
    LeaderMetrics,
    Metrics,
    WatchStatus,
    WorkQueueMetrics,
)
from navarch.project.dev.messages import ControllerState, OperatorState, WatchState
from navarch.project.dev.operator_state import state_of


class Queue:
    """A queue with three keys."""

    depth = 3

    def unfinished_seconds(self) -> float:
        return 0.0

    def longest_running_seconds(self) -> float:
        return 0.0


def test_state_follows_from_metrics() -> None:
    """Of controllers, queues, watches and the election; a watch that never heard anything has a staleness in JSON too."""
    metrics, controller, queue = Metrics(), ControllerMetrics("op/cache", workers=16), WorkQueueMetrics("op/cache")
    queue.source = Queue()
    for outcome, seconds in (("success", 0.25), ("error", 0.5)):
        controller.started()
        controller.finished(outcome, seconds)  # type: ignore[arg-type]
    controller.started()
    watched = [WatchStatus("pods", "", "watching", 2.0), WatchStatus("secrets", "shop", "listing", inf)]
    metrics.add(controller)
    metrics.add(queue)
    metrics.add(CacheMetrics(lambda: watched, lambda: [CacheSize("pods", "", 7, 900)]))
    assert state_of(metrics, "127.0.0.1:6443", 1.0).is_leading is None
    metrics.add(LeaderMetrics("op", lambda: True))
    found = state_of(metrics, "127.0.0.1:6443", 1.0, dropped=4)
    assert found == OperatorState(
        at=1.0,
        cluster="127.0.0.1:6443",
        is_leading=True,
        controllers=[ControllerState("op/cache", 3, 1, 16, 2, 1, 0.75)],
        watches=[WatchState("pods", "", "watching", 2.0, 7), WatchState("secrets", "shop", "listing", 1e9, 0)],
        dropped=4,
    )
    assert msgspec.json.decode(msgspec.json.encode(found), type=OperatorState) == found


def test_operator_without_metrics_has_a_state() -> None:
    """As it is before anything has started."""
    assert state_of(Metrics(), "", 0.0) == OperatorState(0.0, "", None, [], [])
