"""`PodLife`: the current stage of one simulated pod."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, Self

from navarch._base.backoff import Delays
from navarch._base.clock import Clock
from navarch.api import format_time, parse_time
from navarch.cluster.nodes.simulated.pod_view import PodView
from navarch.cluster.nodes.simulated.stages import Life, Stage

_FORGOTTEN_AFTER: Final = 600.0
"""A container that ran so long counts as one that never failed."""
_KILLED: Final = 137


class Instant(NamedTuple):
    """The current time: wall-clock time, and the monotonic time that all times here use."""

    day: datetime
    moment: float

    @classmethod
    def of(cls, clock: Clock) -> Self:
        """Returns the current time of the clock."""
        return cls(clock.now(), clock.monotonic())


@dataclass(slots=True)
class SimulatedContainers:
    """The state of all containers of a pod, which are alike. Times are as in JSON."""

    state: Literal["waiting", "running", "ended"] = "waiting"
    ready: bool = False
    reason: str = "ContainerCreating"
    message: str = ""
    started_at: str = ""
    ended: dict[str, Any] | None = None
    """How they ended last."""
    restarts: int = 0
    has_run: bool = False
    conditions: dict[str, str] = field(default_factory=dict)


class PodLife:
    """One pod on its way through the stages."""

    def __init__(self, pod: PodView, life: Life, address: str, now: Instant, rng: random.Random) -> None:
        self.pod = pod
        self.address = address
        self.containers = SimulatedContainers()
        self.failure: Stage | None = None
        """Why the pod failed as a whole, if it did."""
        self.is_over = pod.is_over
        """Whether nothing is to become of it any more."""
        self.start_time = pod.status.start_time or format_time(now.day)
        self.written: dict[str, Any] | None = None
        """The status that the cluster was last told."""
        self._life = life
        self._rng = rng
        self._delays: Delays | None = None
        self._crashes = 0
        self._came = self._told = self._began = now.moment
        self._left = iter(life.stages)
        self._next: Stage | None = None
        self._due = now.moment
        self._stops_at: float | None = None
        self._grace_ends = 0.0
        self._go_on_from(now)

    def _go_on_from(self, now: Instant) -> None:
        """Continues from the pod's status: the simulation may have been restarted."""
        here, moment = self.containers, now.moment
        known = next(iter(self.pod.status.container_statuses), None)
        if known is not None:
            here.restarts = known.restart_count
            here.ended = known.state.terminated or known.last_state.terminated
            here.has_run = here.ended is not None
            if known.state.running is not None:
                here.started_at = known.state.running.started_at or format_time(now.day)
                here.state, here.has_run, here.ready = "running", True, self.pod.are_containers_ready
                lived = (now.day - parse_time(here.started_at)).total_seconds()
                moment -= lived + _until_start(self._life)
        self._begin(moment)

    def _begin(self, moment: float) -> None:
        self._left = iter(self._life.stages)
        self._due = moment
        self._look_ahead()

    def _look_ahead(self) -> None:
        self._next = None if self.is_over else next(self._left, None)
        if self._next is not None:
            self._due += self._next.after + (self._rng.uniform(0, self._next.jitter) if self._next.jitter else 0.0)

    @property
    def due(self) -> float | None:
        """Returns the time of the next change; None if there is none."""
        if self.is_over:
            return None
        times = [self._due] if self._next is not None else []
        return min([*times, *([self._stops_at] if self._stops_at is not None else [])], default=None)

    @property
    def has_stopped(self) -> bool:
        """Returns whether a deleted pod has terminated."""
        return self.is_over and self.pod.metadata.deletion_timestamp is not None

    def update(self, pod: PodView, moment: float) -> None:
        """Takes a new version of the pod, which may be a deleted one."""
        self.pod = pod
        if pod.metadata.deletion_timestamp is None:
            return
        grace = pod.metadata.deletion_grace_period_seconds
        self._grace_ends = moment + (30.0 if grace is None else grace)
        if self._stops_at is None:
            self._told, self._stops_at = moment, moment + self._life.stopping
        self._stops_at = min(self._stops_at, self._grace_ends)

    def stood_still(self, since: float, now: float) -> None:
        """Postpones everything by the time for which the node stood still; changes that came meanwhile begin now."""
        seconds = now - max(since, self._came)
        self._due += seconds
        self._began += seconds
        if self._stops_at is not None:
            told = now - max(since, self._told)
            self._stops_at += told
            self._grace_ends += told

    def advance(self, now: Instant) -> None:
        """Passes all stages that are due."""
        while not self.is_over and (due := self.due) is not None and due <= now.moment:
            then = now.day - timedelta(seconds=now.moment - due)
            if self._stops_at is not None and self._stops_at <= due:
                self._stop(then)
            else:
                self._enter(then)

    def lose(self, now: Instant) -> None:
        """Ends running containers with an unknown exit, after their node was killed."""
        if not self.is_over and self.containers.state == "running":
            self._due = now.moment
            self._exit(Stage(becomes="exited", exit_code=_KILLED, reason="ContainerStatusUnknown"), now.day)

    def _enter(self, now: datetime) -> None:
        stage = self._next
        assert stage is not None
        self.containers.conditions.update(stage.conditions)
        if stage.becomes == "waiting":
            self._wait(stage.reason, stage.message)
        elif stage.becomes == "failed":
            self._fail(stage, now)
        else:
            self._run(now)
            self.containers.ready = stage.becomes == "ready"
        if stage.becomes == "exited":
            self._exit(stage, now)
        else:
            self._look_ahead()

    def _wait(self, reason: str, message: str = "") -> None:
        here = self.containers
        here.state, here.ready = "waiting", False
        here.reason, here.message = reason or "ContainerCreating", message

    def _run(self, now: datetime) -> None:
        here = self.containers
        if here.state == "running":
            return
        here.restarts += here.has_run
        here.state, here.has_run, here.started_at = "running", True, format_time(now)
        self._began = self._due

    def _end(self, stage: Stage, now: datetime) -> None:
        here = self.containers
        here.ended = {
            "exitCode": stage.exit_code,
            "reason": stage.reason or ("Error" if stage.exit_code else "Completed"),
            **({"message": stage.message} if stage.message else {}),
            "startedAt": here.started_at or format_time(now),
            "finishedAt": format_time(now),
        }
        here.state, here.ready = "ended", False

    def _exit(self, stage: Stage, now: datetime) -> None:
        self._end(stage, now)
        policy = self.pod.spec.restart_policy
        if policy == "Always" or (policy == "OnFailure" and stage.exit_code):
            self._start_again()
        else:
            self._finish()

    def _start_again(self) -> None:
        """Restarts the containers: at once after the first crash, then with backoff."""
        if self._due - self._began >= _FORGOTTEN_AFTER:
            self._crashes, self._delays = 0, None
        self._delays = self._delays or Delays(self._life.delays(), self._rng)
        seconds = self._delays.next_delay() if self._crashes else 0.0
        self._crashes += 1
        if seconds:
            self._wait("CrashLoopBackOff", f"back-off {seconds:g}s restarting failed container")
        self._begin(self._due + seconds)

    def _fail(self, stage: Stage, now: datetime) -> None:
        self.failure = stage
        if self.containers.state == "running":
            self._end(Stage(becomes="exited", exit_code=stage.exit_code or _KILLED), now)
        self._finish()

    def _stop(self, now: datetime) -> None:
        if self.containers.state == "running":
            in_time = self._life.stopping <= 0 or (self._stops_at or 0.0) < self._grace_ends
            self._end(Stage(becomes="exited", exit_code=0 if in_time else _KILLED), now)
        self._finish()

    def _finish(self) -> None:
        self.is_over, self._next = True, None


def _until_start(life: Life) -> float:
    """Returns the seconds from the beginning of a life until its containers run."""
    seconds = 0.0
    for stage in life.stages:
        seconds += stage.after
        if stage.becomes not in {"waiting", "failed"}:
            break
    return seconds
