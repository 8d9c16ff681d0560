"""What the live view of `navarch run` shows: rates and ages, computed from the reports of the operator's process."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal

from navarch.project.dev.messages import ControllerState, OperatorState, WatchState

RATE_SECONDS: Final = 5.0
"""Reconciles a second are those of so many last seconds."""

Phase = Literal["loading", "starting", "running", "reloading", "stopping", "failed", "ended"]


@dataclass(frozen=True, slots=True)
class ControllerRow:
    """One controller in the view."""

    name: str
    waiting: int
    busy: int
    workers: int
    rate: float
    """Reconciles a second."""
    reconciles: int
    errors: int
    took: float | None
    """Seconds of the last reconciles, on average; None before the first."""


@dataclass(slots=True)
class RunModel:
    """The state of a run. The supervisor changes it, a display reads it."""

    operator: str
    cluster: str
    """The name of the embedded cluster; empty for the one of kubectl."""
    reload: bool
    began: float
    """Seconds of the monotonic clock at which `navarch run` began."""
    phase: Phase = "loading"
    problem: str = ""
    """Why the newest code does not run; empty if it does."""
    reloads: int = 0
    reload_seconds: float | None = None
    """From the saved file to the start of the new code, the last time."""
    is_leading: bool | None = None
    watches: list[WatchState] = field(default_factory=list)
    _states: deque[OperatorState] = field(default_factory=deque)
    _took: dict[str, float] = field(default_factory=dict)

    def take(self, state: OperatorState) -> None:
        """Takes the next state of the running process."""
        if self._states:
            self._measure(self._states[-1], state)
        self._states.append(state)
        while len(self._states) > 2 and state.at - self._states[1].at >= RATE_SECONDS:
            self._states.popleft()
        self.watches, self.is_leading = state.watches, state.is_leading

    @property
    def place(self) -> str:
        """Returns where the operator runs: an embedded cluster, or the address of another one."""
        host = self._states[-1].cluster if self._states else ""
        return f"cluster {self.cluster}" if self.cluster else host or "the cluster of kubectl"

    @property
    def dropped(self) -> int:
        """Returns how many log records and Events are not shown, because they came too fast."""
        return self._states[-1].dropped if self._states else 0

    def restarted(self) -> None:
        """Drops the states of the former process: its counters start again."""
        self._states.clear()
        self._took.clear()
        self.watches, self.is_leading = [], None

    def controllers(self) -> list[ControllerRow]:
        """Returns a row for each controller."""
        if not self._states:
            return []
        first, last = self._states[0], self._states[-1]
        before = {each.name: each for each in first.controllers}
        return [self._row(before.get(each.name), each, last.at - first.at) for each in last.controllers]

    def _row(self, before: ControllerState | None, now: ControllerState, seconds: float) -> ControllerRow:
        done = now.reconciles - (before.reconciles if before else 0)
        return ControllerRow(
            name=now.name.removeprefix(f"{self.operator}/"),
            waiting=now.waiting,
            busy=now.busy,
            workers=now.workers,
            rate=done / seconds if seconds > 0 else 0.0,
            reconciles=now.reconciles,
            errors=now.errors,
            took=self._took.get(now.name),
        )

    def _measure(self, before: OperatorState, now: OperatorState) -> None:
        known = {each.name: each for each in before.controllers}
        for each in now.controllers:
            last = known.get(each.name)
            done = each.reconciles - (last.reconciles if last else 0)
            if done > 0:
                self._took[each.name] = (each.seconds - (last.seconds if last else 0.0)) / done
