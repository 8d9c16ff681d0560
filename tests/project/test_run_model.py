"""The live view's numbers follow from the reports of the operator's process."""

from __future__ import annotations

from navarch.project.dev.messages import ControllerState, OperatorState
from navarch.project.dev.run_model import RunModel


def state(at: float, reconciles: int, seconds: float, errors: int = 0) -> OperatorState:
    """Returns a report of one controller."""
    controller = ControllerState("cache/memcached", 2, 1, 16, reconciles, errors, seconds)
    return OperatorState(at, "127.0.0.1:6443", None, [controller], [])


def model() -> RunModel:
    """Returns the model of a run that has begun."""
    return RunModel(operator="cache", cluster="dev", reload=True, began=0.0)


def test_rate_is_that_of_the_last_seconds() -> None:
    """Older reconciles do not count; the duration is that of the last ones."""
    shown = model()
    assert shown.controllers() == []
    for second in range(20):
        shown.take(state(float(second), reconciles=10 * min(second, 15), seconds=min(second, 15) * 0.5))
    (row,) = shown.controllers()
    assert (row.name, row.waiting, row.busy, row.workers, row.reconciles) == ("memcached", 2, 1, 16, 150)
    assert row.rate == 10 * 1 / 5
    assert row.took == 0.05


def test_new_process_starts_anew() -> None:
    """Its counters are smaller than those of the process before, which must not look like a negative rate."""
    shown = model()
    shown.take(state(0.0, 100, 1.0))
    shown.take(state(1.0, 110, 2.0))
    shown.restarted()
    assert shown.controllers() == []
    shown.take(state(2.0, 1, 0.1))
    (row,) = shown.controllers()
    assert (row.rate, row.took) == (0.0, None)
