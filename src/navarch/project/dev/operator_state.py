"""The state of an operator, computed from the samples of its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.observe import families
from navarch.observe.families import Histogram
from navarch.observe.metrics import Metrics
from navarch.project.dev.messages import ControllerState, OperatorState, WatchState

__all__ = ["state_of"]

_NEVER: Final = 1e9
"""The staleness of a watch that has never heard from the server: JSON knows no infinity."""


def state_of(metrics: Metrics, cluster: str, at: float, dropped: int = 0) -> OperatorState:
    """Returns the state of the operator whose metrics these are."""
    values: dict[str, dict[tuple[str, ...], float | Histogram]] = {}
    for family, labels, value in metrics.samples():
        values.setdefault(family.name, {})[labels] = value
    leading = values.get(families.LEADER_STATUS.name)
    return OperatorState(
        at=at,
        cluster=cluster,
        is_leading=None if leading is None else any(leading.values()),
        controllers=list(_controllers(values)),
        watches=list(_watches(values)),
        dropped=dropped,
    )


_Values = dict[str, dict[tuple[str, ...], float | Histogram]]


def _controllers(values: _Values) -> Iterator[ControllerState]:
    for labels, time in values.get(families.RECONCILE_TIME.name, {}).items():
        assert isinstance(time, Histogram)
        queue = (labels[0], labels[0])
        yield ControllerState(
            name=labels[0],
            waiting=_number(values, families.QUEUE_DEPTH, queue),
            busy=_number(values, families.ACTIVE_WORKERS, labels),
            workers=_number(values, families.MAX_CONCURRENT, labels),
            reconciles=int(time.cumulative()[-1][1]),
            errors=_number(values, families.RECONCILE_ERRORS, labels),
            seconds=time.total,
        )


def _watches(values: _Values) -> Iterator[WatchState]:
    for kind, scope, state in values.get(families.WATCH_STATE.name, {}):
        staleness = values.get(families.WATCH_STALENESS.name, {}).get((kind, scope), 0.0)
        assert not isinstance(staleness, Histogram)
        yield WatchState(
            kind, scope, state, min(staleness, _NEVER), _number(values, families.CACHE_OBJECTS, (kind, scope))
        )


def _number(values: _Values, family: families.MetricFamily, labels: tuple[str, ...]) -> int:
    found = values.get(family.name, {}).get(labels, 0)
    assert not isinstance(found, Histogram)
    return int(found)
