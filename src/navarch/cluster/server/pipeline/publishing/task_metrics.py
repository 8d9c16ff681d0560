"""Figures of the background tasks and of the audit log, for `/metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from navarch._base.supervisor import TaskStatus
from navarch.observe.families import MetricFamily, Sample

__all__ = ["TaskMetrics"]

_RESTARTS: Final = MetricFamily(
    "counter", "navarch_task_restarts_total", "How often a background task was restarted after a failure.", ("task",)
)
_HEALTHY: Final = MetricFamily("gauge", "navarch_task_healthy", "Whether a background task works: 1, or 0.", ("task",))
_DROPPED: Final = MetricFamily(
    "counter",
    "apiserver_audit_error_total",
    "Records of the audit log that were dropped, since they could not be written.",
    ("plugin",),
)


class TaskMetrics:
    """Shows what `statuses` returns, and how many audit records were `dropped`."""

    def __init__(self, statuses: Callable[[], Sequence[TaskStatus]], dropped: Callable[[], int]) -> None:
        self._statuses = statuses
        self._dropped = dropped

    def samples(self) -> Iterator[Sample]:
        """See `observe.Part`."""
        for status in self._statuses():
            yield Sample(_RESTARTS, (status.name,), status.restarts)
            yield Sample(_HEALTHY, (status.name,), int(status.is_well))
        yield Sample(_DROPPED, ("log",), self._dropped())
