"""`ContainerLoop`: pulls, starts, probes and restarts one container of a pod."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import Final, Literal

from navarch._base.backoff import BackoffDelays
from navarch._base.tasks import unless
from navarch.cluster.nodes.images import Image
from navarch.cluster.nodes.pods.container_config import generate_container_config, termination_message
from navarch.cluster.nodes.pods.container_record import ContainerRecord
from navarch.cluster.nodes.pods.probes import ProbeKind, ProbeTarget, hook_fault, probe_results
from navarch.cluster.nodes.pods.sandbox import GracePeriod, PodSandbox
from navarch.cluster.nodes.runtime import ContainerConfig, Exit, RunningContainer
from navarch.errors import ContainerError, NavarchError
from navarch.k8s.core.v1 import Container, Probe

_SHOWN_SECONDS = 1.0
"""How long the fault itself is shown before the wait is."""
Policy = Literal["Always", "OnFailure", "Never"]
_NOT_STARTED: Final = Exit(128)
_SIGNALS: Final[dict[str, int]] = {
    **signal.Signals.__members__,
    **{f"SIGRTMIN+{number}": signal.SIGRTMIN + number for number in range(1, 16)},
    **{f"SIGRTMAX-{number}": signal.SIGRTMAX - number for number in range(1, 15)},
}
_LEAST_AFTER_HOOK: Final = 2.0


async def until_pulled(sandbox: PodSandbox, record: ContainerRecord, stop: asyncio.Event) -> Image | None:
    """Returns the image of a container once this machine has it; None if `stop` is set first."""
    deps, delays = sandbox.deps, BackoffDelays(sandbox.deps.delays.pull, sandbox.deps.client.rng)
    while not stop.is_set():
        name = record.spec.image or ""
        try:
            found = deps.images.find(name)
        except ContainerError as error:
            delay = delays.next_delay()
            _tell(sandbox, record, name, error)
            await unless(stop.wait(), deps.clock.sleep(min(_SHOWN_SECONDS, delay / 2)))
            _tell_wait(sandbox, record, name, error)
            await unless(stop.wait(), deps.clock.sleep(delay))
        else:
            note = f'Container image "{name}" already present on machine and can be accessed by the pod'
            sandbox.say("Pulled", note, container=record.spec.name)
            return found
    return None


def _tell_wait(sandbox: PodSandbox, record: ContainerRecord, name: str, error: ContainerError) -> None:
    if record.spec.image_pull_policy != "Never":
        say = partial(sandbox.say, container=record.spec.name)
        say("BackOff", f'Back-off pulling image "{name}"')
        say("Failed", "Error: ImagePullBackOff", "Warning")
        record.waits("ImagePullBackOff", f'Back-off pulling image "{name}": ErrImagePull: {error}')


def _tell(sandbox: PodSandbox, record: ContainerRecord, name: str, error: ContainerError) -> None:
    say = partial(sandbox.say, container=record.spec.name)
    if record.spec.image_pull_policy == "Never":
        note = f'Container image "{name}" is not present with pull policy of Never'
        say("ErrImageNeverPull", note, "Warning")
        say("Failed", "Error: ErrImageNeverPull", "Warning")
        record.waits("ErrImageNeverPull", note)
        return
    say("Pulling", f'Pulling image "{name}"')
    say("Failed", f'Failed to pull image "{name}": {error}', "Warning")
    say("Failed", "Error: ErrImagePull", "Warning")
    record.waits("ErrImagePull", str(error))


class ContainerLoop:
    """Runs one container until it has ended for good, or is stopped."""

    def __init__(self, sandbox: PodSandbox, record: ContainerRecord, policy: Policy) -> None:
        self._sandbox = sandbox
        self._clock = sandbox.deps.clock
        self._policy = policy
        self._stopping = asyncio.Event()
        self._last_grace: GracePeriod | None = None
        self._redefined = False
        self._delays = BackoffDelays(sandbox.deps.delays.restart, sandbox.deps.client.rng)
        self._restarted = False
        self._running: RunningContainer | None = None
        self.record = record
        self.began = asyncio.Event()
        """Set when it has started for the first time and its startup probe and hook are content."""
        self.image: Image | None = None

    @property
    def container_id(self) -> str | None:
        """Returns the id of the running container."""
        return self._running.id if self._running is not None else None

    @property
    def name(self) -> str:
        """Returns the container's name."""
        return self.record.spec.name

    async def run(self) -> None:
        """Returns when the container has ended and its policy does not restart it."""
        ended = self.record.terminated
        if ended is not None and not self._starts_again(Exit(ended.exit_code)):
            return
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            exit_ = await self._once()
            if exit_ is None or self._stopping.is_set() or not self._starts_again(exit_):
                return
            await self._back_off(self._clock.monotonic() - began)

    def _starts_again(self, exit_: Exit) -> bool:
        if self._redefined or self._policy == "Always":
            return True
        return self._policy == "OnFailure" and exit_.code != 0

    async def _once(self) -> Exit | None:
        """Pulls and starts the container once, and returns its exit; None if it was stopped before the start."""
        self.image = await until_pulled(self._sandbox, self.record, self._stopping)
        if self.image is None:
            return None
        with self._sandbox.deps.images.hold(self.image):
            return await self._start(self.image)

    async def _start(self, image: Image) -> Exit | None:
        launch = await self._until_launchable(image)
        if launch is None:
            return None
        self._redefined = False
        self.record.begins()
        try:
            started = await self._sandbox.deps.runtime.start(launch)
        except ContainerError as error:
            return self._could_not_start(error)
        self._running = started
        self.record.runs(launch.id, self._clock.now())
        self._say("Started", "Container started")
        if started.notice:
            self._say("PortsRefused", started.notice, warning=True)
        return await self._attended(started)

    async def _until_launchable(self, image: Image) -> ContainerConfig | None:
        delays = BackoffDelays(self._sandbox.deps.delays.mount, self._sandbox.deps.client.rng)
        while not self._stopping.is_set():
            try:
                launch = await generate_container_config(self._sandbox, self.record.spec, image, self.record.attempt)
            except (NavarchError, OSError) as error:
                self._say("Failed", f"Error: {error}", warning=True)
                self.record.waits("CreateContainerConfigError", str(error))
                await unless(self._stopping.wait(), self._clock.sleep(delays.next_delay()))
            else:
                self._say("Created", "Container created")
                return launch
        return None

    def _could_not_start(self, error: ContainerError) -> Exit:
        text = f"failed to start container {self.name!r}: {error}"
        self._say("Failed", f"Error: {text}", warning=True)
        self.record.ended(_NOT_STARTED, self._clock.now(), text, reason="StartError")
        self.record.waits("RunContainerError", text)
        return _NOT_STARTED

    async def _attended(self, started: RunningContainer) -> Exit:
        """Runs probes and hooks until the container has ended, and returns its exit."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._look_after(started), name=f"probes of {self.name}")
            exit_ = await started.wait()
            work.cancel()
        self._running = None
        words = termination_message(self._sandbox, self.record.spec, self.record.restarts, exit_)
        self.record.ended(exit_, self._clock.now(), words)
        return exit_

    async def _back_off(self, ran: float) -> None:
        """Waits before a restart: not before the first one, then with backoff."""
        if ran >= self._sandbox.deps.delays.forgotten_after:
            self._delays.reset()
            self._restarted = False
        if not self._restarted or self._redefined:
            self._restarted = True
            return
        delay, pod = self._delays.next_delay(), self._sandbox.pod
        where = f"{pod.name}_{pod.namespace}({self._sandbox.uid})"
        self._say("BackOff", f"Back-off restarting failed container {self.name} in pod {where}", warning=True)
        text = f"back-off {_duration(delay)} restarting failed container={self.name} pod={where}"
        self.record.waits("CrashLoopBackOff", text)
        await unless(self._stopping.wait(), self._clock.sleep(delay))

    # While it runs

    async def _look_after(self, started: RunningContainer) -> None:
        if self._stopping.is_set():
            await self._end(started, self._last_grace or self._grace(None))
            return
        spec, target = self.record.spec, self._target(started)
        hook = spec.lifecycle.post_start if spec.lifecycle else None
        fault = await hook_fault(hook, target, self._clock) if hook is not None else None
        if fault is not None:
            self._say("FailedPostStartHook", f"PostStartHook failed: {fault}", warning=True)
            self._say("Killing", "FailedPostStartHook")
            await self._end(started, self._grace(None))
            return
        if spec.startup_probe is not None and not await self._has_started(spec.startup_probe, started, target):
            return
        self.record.has_started()
        self.began.set()
        async with asyncio.TaskGroup() as group:
            if spec.liveness_probe is not None:
                group.create_task(self._watch_liveness(spec.liveness_probe, started, target))
            if spec.readiness_probe is not None:
                group.create_task(self._watch_readiness(spec.readiness_probe, target))

    async def _has_started(self, probe: Probe, started: RunningContainer, target: ProbeTarget) -> bool:
        """Returns whether the startup probe succeeded; if it failed, the container is being stopped."""
        async for fault, well in probe_results(probe, target, self._clock):
            self._tell_fault("Startup", fault)
            if well:
                return True
            if well is False:
                break
        await self._restart(started, "startup", probe)
        return False

    async def _watch_liveness(self, probe: Probe, started: RunningContainer, target: ProbeTarget) -> None:
        async for fault, well in probe_results(probe, target, self._clock):
            self._tell_fault("Liveness", fault)
            if well is False:
                await self._restart(started, "liveness", probe)
                return

    async def _watch_readiness(self, probe: Probe, target: ProbeTarget) -> None:
        async for fault, well in probe_results(probe, target, self._clock):
            self._tell_fault("Readiness", fault)
            if well is not None:
                self.record.is_ready(ready=well)

    def _tell_fault(self, kind: ProbeKind, fault: str | None) -> None:
        if fault is not None:
            self._say("Unhealthy", f"{kind} probe failed: {fault}", warning=True)

    async def _restart(self, started: RunningContainer, kind: str, probe: Probe) -> None:
        self._say("Killing", f"Container {self.name} failed {kind} probe, will be restarted")
        await self._end(started, self._grace(probe.termination_grace_period_seconds))

    def _grace(self, seconds: int | None) -> GracePeriod:
        if seconds is None:
            seconds = self._sandbox.pod.spec.termination_grace_period_seconds
        return GracePeriod(self._clock, 30 if seconds is None else seconds)

    def _target(self, started: RunningContainer) -> ProbeTarget:
        sandbox, on_host = self._sandbox, self._sandbox.pod.spec.host_network is True
        return ProbeTarget(
            sandbox.deps.runtime, started.id, self.record.spec, sandbox.placement.address, on_host=on_host
        )

    # Stopping

    async def redefine(self, spec: Container) -> None:
        """Restarts the container with a new image."""
        self.record.spec, self._redefined = spec, True
        if self._running is not None:
            self._say("Killing", f"Container {self.name} definition changed, will be restarted")
            await self._end(self._running, self._grace(None))

    def refuse(self) -> None:
        """Prevents the container from being started."""
        self._stopping.set()

    async def stop(self, grace: GracePeriod) -> None:
        """Stops the container for good, within the grace period; a container that is being started is stopped after its
        start.
        """
        self._last_grace = grace
        self._stopping.set()
        running = self._running
        if running is not None:
            self._say("Killing", f"Stopping container {self.name}")
            await self._end(running, grace)

    async def kill(self) -> None:
        """Kills the container after `run` has failed."""
        if self._running is not None:
            await self._running.signal(signal.SIGKILL)
            await self._running.wait()
            self._running = None

    async def _end(self, started: RunningContainer, grace: GracePeriod) -> None:
        lifecycle = self.record.spec.lifecycle
        if lifecycle is not None and lifecycle.pre_stop is not None and grace.left > 0:
            hook = hook_fault(lifecycle.pre_stop, self._target(started), self._clock)
            fault = await unless(grace.passed(), hook)
            if fault is not None:
                self._say("FailedPreStopHook", f"PreStopHook failed: {fault}", warning=True)
            grace = grace.at_least(_LEAST_AFTER_HOOK)
        await started.signal(_stop_signal(lifecycle.stop_signal if lifecycle else None))
        if await unless(grace.passed(), started.wait()) is None:
            await started.signal(signal.SIGKILL)
            await started.wait()

    def _say(self, reason: str, note: str, *, warning: bool = False) -> None:
        try:
            self._sandbox.say(reason, note, "Warning" if warning else "Normal", container=self.name)
        except NavarchError:  # a note that no server would take
            return


def _stop_signal(name: str | None) -> int:
    """Returns the number of the stop signal; SIGTERM for an unknown name."""
    return _SIGNALS.get(name or "", signal.SIGTERM)


def _duration(seconds: float) -> str:
    """Formats seconds as Go does.

    >>> _duration(10), _duration(80), _duration(300), _duration(0.5)
    ('10s', '1m20s', '5m0s', '500ms')
    """
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
