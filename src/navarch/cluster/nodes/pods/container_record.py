"""`ContainerRecord`: the state of one container, from which its status is computed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from navarch.api import truncate_to_seconds
from navarch.cluster.nodes.runtime import Exit
from navarch.k8s.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    ResourceRequirements,
    VolumeMount,
    VolumeMountStatus,
)

LOST = "ContainerStatusUnknown"
_SCHEME = "navarch://"


class ContainerRecord:
    """The state of one container. Each change notifies the status writer."""

    def __init__(self, spec: Container, known: ContainerStatus | None, changed: Callable[[], None], waits: str) -> None:
        self.spec = spec
        self._changed = changed
        self.state = ContainerState(waiting=ContainerStateWaiting(reason=waits))
        self.last_state: ContainerState | None = None
        self.restarts = 0
        self.has_run = False
        self.ready = False
        self.started = False
        self.container_id: str | None = None
        if known is not None:
            self._go_on_from(known)

    def _go_on_from(self, known: ContainerStatus) -> None:
        """Continues from the status; a container that ran before the node's restart has an unknown end."""
        self.restarts, self.last_state, self.container_id = known.restart_count, known.last_state, known.container_id
        state = known.state or ContainerState()
        if state.running is not None:
            state = ContainerState(
                terminated=ContainerStateTerminated(
                    exit_code=137,
                    reason=LOST,
                    message="The container could not be located when the pod was terminated",
                    container_id=known.container_id,
                    started_at=state.running.started_at,
                )
            )
        if state.terminated is not None:
            self.state, self.has_run = state, True
        elif self.last_state is not None and self.last_state.terminated is not None:
            self.has_run = True

    @property
    def terminated(self) -> ContainerStateTerminated | None:
        """Returns the end of the container, if it has ended."""
        return self.state.terminated

    @property
    def is_running(self) -> bool:
        """Returns whether its program runs."""
        return self.state.running is not None

    @property
    def attempt(self) -> int:
        """Returns the number of the next start, counted from 0."""
        return self.restarts + 1 if self.has_run else self.restarts

    def waits(self, reason: str, message: str | None = None) -> None:
        """Sets the state to waiting, with a reason."""
        if self.state.terminated is not None:
            self.last_state = self.state
        self.state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
        self.ready = self.started = False
        self._changed()

    def begins(self) -> int:
        """Counts a new start."""
        self.restarts, self.has_run = self.attempt, True
        if self.state.terminated is not None:
            self.last_state = self.state
        return self.restarts

    def runs(self, container: str, now: datetime) -> None:
        """Sets the state to running."""
        self.container_id = f"{_SCHEME}{container}"
        self.state = ContainerState(running=ContainerStateRunning(started_at=truncate_to_seconds(now)))
        hooked = self.spec.lifecycle is not None and self.spec.lifecycle.post_start is not None
        self.started = self.spec.startup_probe is None and not hooked
        self.ready = self.started and self.spec.readiness_probe is None
        self._changed()

    def ended(self, exit_: Exit, now: datetime, message: str | None, *, reason: str | None = None) -> None:
        """Sets the state to terminated."""
        began = self.state.running.started_at if self.state.running is not None else truncate_to_seconds(now)
        self.state = ContainerState(
            terminated=ContainerStateTerminated(
                exit_code=exit_.code,
                reason=reason or ("Completed" if exit_.code == 0 else "Error"),
                message=message or None,
                container_id=self.container_id,
                started_at=began,
                finished_at=truncate_to_seconds(now),
            )
        )
        self.ready = self.started = False
        self._changed()

    def is_ready(self, *, ready: bool) -> None:
        """Sets the result of the readiness probe."""
        if self.ready != ready:
            self.ready = ready
            self._changed()

    def has_started(self) -> None:
        """Notes that the startup probe succeeded, or that there is none."""
        if not self.started:
            self.started = True
            self.ready = self.spec.readiness_probe is None
            self._changed()

    def status(self, image_id: str, *, initial: bool = False) -> ContainerStatus:
        """Returns the container's status. An `initial` container is ready when it has succeeded."""
        done = initial and self.terminated is not None and self.terminated.exit_code == 0
        mounts = [_mount_status(mount) for mount in self.spec.volume_mounts or []]
        return ContainerStatus(
            name=self.spec.name,
            image=self.spec.image or "",
            image_id=image_id,
            container_id=self.container_id,
            ready=self.ready or done,
            restart_count=self.restarts,
            started=self.started,
            state=self.state,
            last_state=self.last_state or ContainerState(),
            volume_mounts=mounts or None,
            resources=self.spec.resources or ResourceRequirements(),
        )


def _mount_status(mount: VolumeMount) -> VolumeMountStatus:
    fixed = mount.read_only is True
    return VolumeMountStatus(
        name=mount.name,
        mount_path=mount.mount_path,
        read_only=fixed or None,
        recursive_read_only="Disabled" if fixed else None,
    )
