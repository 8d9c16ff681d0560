"""`PodWorker`: runs one pod from its first container until the pod is deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import cast

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.tasks import unless
from navarch.client import Preconditions
from navarch.cluster.nodes.pods.container import ContainerLoop, Policy
from navarch.cluster.nodes.pods.container_record import ContainerRecord
from navarch.cluster.nodes.pods.sandbox import GracePeriod, KubeletDeps, PodSandbox
from navarch.cluster.nodes.pods.status import PodState, PodStatusWriter, ephemeral_containers, is_sidecar, pod_status
from navarch.errors import Conflict, NavarchError, NotFound
from navarch.k8s.core.v1 import Container, ContainerStatus, Pod, PodStatus

_log = logging.getLogger("navarch.nodes")
_FORCED_SECONDS = 1.0
"""The grace period of a pod that is no longer in the cluster."""
_PAUSE = Backoff(initial=0.2, maximum=10.0)
_LATE = "Pod was active on the node longer than the specified deadline"


class PodWorker:
    """Runs the containers of one pod, terminates them when the pod is deleted, and reports the pod's status."""

    def __init__(self, deps: KubeletDeps, pod: Pod) -> None:
        self.sandbox = PodSandbox(deps, pod)
        self._clock = deps.clock
        self._state = PodState(start_time=pod.status.start_time or deps.clock.now(), node_address=deps.address)
        self._writer = PodStatusWriter(self.sandbox, self._status)
        self._records = {record.spec.name: record for record in self._known_records()}
        self._loops: dict[str, ContainerLoop] = {}
        self._images: dict[str, str] = {}
        self._ending = asyncio.Event()
        self._over = asyncio.Event()
        self._grace: GracePeriod | None = None
        self._redefined = asyncio.Event()
        self._extended = asyncio.Event()
        self.has_vanished = False
        """Whether the pod is no longer in the cluster."""

    def loop(self, container: str) -> ContainerLoop | None:
        """Returns the container of that name, if it was started."""
        return self._loops.get(container)

    def running(self) -> Iterator[ContainerLoop]:
        """Returns the running containers."""
        return (loop for loop in self._loops.values() if loop.container_id is not None)

    def record(self, container: str) -> ContainerRecord | None:
        """Returns the record of the container of that name."""
        return self._records.get(container)

    # What others say

    def update(self, pod: Pod) -> None:
        """Takes a new version of the pod; ignores a version that is older than the known one."""
        if int(pod.metadata.resource_version) < int(self.sandbox.pod.metadata.resource_version):
            return
        self.sandbox.pod = pod
        self.sandbox.volumes.changed()
        self._redefined.set()
        self._extended.set()
        self._writer.changed()
        if pod.metadata.deletion_timestamp is not None:
            seconds = pod.metadata.deletion_grace_period_seconds
            self._end_within(30.0 if seconds is None else float(seconds))

    def vanish(self) -> None:
        """Terminates a pod that is no longer in the cluster, without a further status."""
        self.has_vanished = True
        self._end_within(_FORCED_SECONDS)

    def _end_within(self, seconds: float) -> None:
        if self._grace is None:
            self._grace = GracePeriod(self._clock, seconds)
        self._grace.shorten(seconds)
        self._ending.set()

    # Life

    async def run(self) -> None:
        """Returns when the pod is deleted from the node and from the cluster."""
        if self.sandbox.pod.status.phase not in {"Succeeded", "Failed"}:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._writer.run(), name="status")
                self._writer.changed()
                await self._live()
                writing.cancel()
            if not self.has_vanished:
                await self._writer.write()
        self.sandbox.deps.network.leave(self.sandbox.uid)
        await self._ending.wait()
        await self._remove()

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(self._end_when_told(), name="end")
            redefining = group.create_task(self._follow_definition(), name="definition")
            await self._run_all()
            ending.cancel()
            redefining.cancel()
        self._state.over = True

    async def _run_all(self) -> None:
        if not await self._prepared():
            return
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self.sandbox.volumes.keep(lambda: self.sandbox.pod), name="volumes")
            extending = group.create_task(self._run_ephemeral(group), name="ephemeral containers")
            if self._has_work() and await self._initialized(group):
                await self._run_main(group)
            extending.cancel()
            grace = self._grace or GracePeriod(self._clock, self._own_grace())
            await self._stop_ephemeral(grace)
            await self._stop_sidecars(grace)
            keeping.cancel()

    async def _prepared(self) -> bool:
        """Prepares the pod's folder, address and volumes, and returns True; False if the pod is terminated before."""
        delays = BackoffDelays(self.sandbox.deps.delays.mount, self.sandbox.deps.client.rng)
        while not self._over.is_set():
            try:
                self.sandbox.prepare()
                await self.sandbox.volumes.prepare(self.sandbox.pod)
            except (NavarchError, OSError) as error:
                self.sandbox.say("FailedMount", str(error), "Warning")
                await unless(self._over.wait(), self._clock.sleep(delays.next_delay()))
            else:
                self._state.prepared, self._state.address = True, self.sandbox.placement.address
                return True
        return False

    async def _initialized(self, group: asyncio.TaskGroup) -> bool:
        """Runs the init containers, and returns True; False if one failed for good or the pod is terminated."""
        for container in self.sandbox.pod.spec.init_containers or []:
            loop = self._begin(container, "Always" if is_sidecar(container) else self._init_policy())
            if is_sidecar(container):
                await _first(group.create_task(loop.run()), group.create_task(loop.began.wait()))
            else:
                await loop.run()
            if self._over.is_set() or not (is_sidecar(container) or _has_succeeded(loop.record)):
                return False
        return True

    async def _run_main(self, group: asyncio.TaskGroup) -> None:
        running = []
        for container in self.sandbox.pod.spec.containers:
            loop = self._begin(container, self._policy())
            task = group.create_task(loop.run(), name=f"container {container.name}")
            running.append(task)
            if container.lifecycle is not None and container.lifecycle.post_start is not None:
                await _first(task, group.create_task(loop.began.wait()))
        await asyncio.wait(running)

    async def _run_ephemeral(self, group: asyncio.TaskGroup) -> None:
        """Runs each ephemeral container once, as they are added."""
        while True:
            self._extended.clear()
            for container in ephemeral_containers(self.sandbox.pod):
                if container.name not in self._loops and self._record_of(container).terminated is None:
                    group.create_task(self._begin(container, "Never").run(), name=f"container {container.name}")
            await self._extended.wait()

    def _record_of(self, container: Container) -> ContainerRecord:
        if container.name not in self._records:
            known = _by_name(self.sandbox.pod.status.ephemeral_container_statuses or [])
            record = self._record(container, known.get(container.name), "ContainerCreating", again=False)
            self._records[container.name] = record
        return self._records[container.name]

    def _begin(self, container: Container, policy: Policy) -> ContainerLoop:
        loop = self._loops[container.name] = ContainerLoop(self.sandbox, self._records[container.name], policy)
        if self._over.is_set():
            loop.refuse()
        return loop

    def _policy(self) -> Policy:
        return cast(Policy, self.sandbox.pod.spec.restart_policy or "Always")

    def _init_policy(self) -> Policy:
        return "Never" if self._policy() == "Never" else "OnFailure"

    def _has_work(self) -> bool:
        """Returns whether a container must be started: after a restart of the node all may have ended for good."""
        records = [self._records[container.name] for container in self.sandbox.pod.spec.containers]
        return any(not has_ended_for_good(record, self._policy()) for record in records)

    # End

    async def kill(self) -> None:
        """Kills the containers of a worker whose `run` has failed."""
        for loop in self._loops.values():
            await loop.kill()

    async def _end_when_told(self) -> None:
        limit = self.sandbox.pod.spec.active_deadline_seconds
        if limit is None:
            await self._ending.wait()
        else:
            begun = (self._clock.now() - self._state.start_time).total_seconds()
            await unless(self._ending.wait(), self._clock.sleep(limit - begun))
        if not self._ending.is_set():
            self._state.reason, self._state.message = "DeadlineExceeded", _LATE
            self.sandbox.say("DeadlineExceeded", _LATE)
        await self._stop_all(self._grace or GracePeriod(self._clock, self._own_grace()))

    def _own_grace(self) -> float:
        seconds = self.sandbox.pod.spec.termination_grace_period_seconds
        return 30.0 if seconds is None else float(seconds)

    async def _stop_all(self, grace: GracePeriod) -> None:
        self._over.set()
        async with asyncio.TaskGroup() as group:
            for loop in self._loops.values():
                if not is_sidecar(loop.record.spec):
                    group.create_task(loop.stop(grace))
        await self._stop_sidecars(grace)

    async def _stop_ephemeral(self, grace: GracePeriod) -> None:
        for container in ephemeral_containers(self.sandbox.pod):
            if (loop := self._loops.get(container.name)) is not None:
                await loop.stop(grace)

    async def _stop_sidecars(self, grace: GracePeriod) -> None:
        """Stops the sidecars in reverse order of their start."""
        for loop in reversed(self._loops.values()):
            if is_sidecar(loop.record.spec):
                await loop.stop(grace)

    async def _follow_definition(self) -> None:
        while True:
            await self._redefined.wait()
            self._redefined.clear()
            spec = self.sandbox.pod.spec
            for container in (*spec.containers, *(spec.init_containers or [])):
                loop = self._loops.get(container.name)
                if loop is not None and loop.record.spec.image != container.image:
                    await loop.redefine(container)

    async def _remove(self) -> None:
        """Deletes the pod from the API server, and then its files from this node."""
        delays = BackoffDelays(_PAUSE, self.sandbox.deps.client.rng)
        while not self.has_vanished and not await self._deleted():
            await self._clock.sleep(delays.next_delay())
        try:
            await asyncio.to_thread(self.sandbox.folder.remove)
        except OSError as error:
            _log.warning(
                "removing the files of pod %s in %s failed: %s", self.sandbox.uid, self.sandbox.folder.path, error
            )

    async def _deleted(self) -> bool:
        """Deletes the pod; returns whether the API server no longer has it."""
        pod = self.sandbox.pod
        try:
            await self.sandbox.deps.client.delete(
                Pod,
                pod.name,
                namespace=pod.namespace,
                grace_seconds=0,
                preconditions=Preconditions(uid=self.sandbox.uid),
            )
        except NotFound:
            return True
        except Conflict:  # another one has its name, or somebody wrote it in the same moment
            return not await self._is_there()
        except NavarchError as error:
            _log.warning("deleting pod %s/%s failed: %s; retrying", pod.namespace, pod.name, error)
            return False
        return True

    async def _is_there(self) -> bool:
        try:
            found = await self.sandbox.deps.client.get(Pod, self.sandbox.pod.name, namespace=self.sandbox.pod.namespace)
        except NotFound:
            return False
        except NavarchError:
            return True
        return found.metadata.uid == self.sandbox.uid

    # Status

    def _status(self) -> PodStatus:
        images = {name: loop.image.image_id for name, loop in self._loops.items() if loop.image is not None}
        return pod_status(self.sandbox.pod, self._records, self._state, images, self._clock.now())

    def _known_records(self) -> list[ContainerRecord]:
        spec, status = self.sandbox.pod.spec, self.sandbox.pod.status
        init = spec.init_containers or []
        waits = "PodInitializing" if init else "ContainerCreating"
        known = _by_name([*(status.init_container_statuses or []), *(status.container_statuses or [])])
        return [
            *(self._record(each, known.get(each.name), "PodInitializing", again=True) for each in init),
            *(self._record(each, known.get(each.name), waits, again=False) for each in spec.containers),
        ]

    def _record(self, spec: Container, known: ContainerStatus | None, waits: str, *, again: bool) -> ContainerRecord:
        record = ContainerRecord(spec, known, self._writer.changed, waits)
        if again and record.terminated is not None:
            record.waits(waits)
        return record


def has_ended_for_good(record: ContainerRecord, policy: Policy) -> bool:
    """Returns whether the container has ended and its restart policy does not restart it."""
    ended = record.terminated
    return ended is not None and (policy == "Never" or (policy == "OnFailure" and ended.exit_code == 0))


def _has_succeeded(record: ContainerRecord) -> bool:
    return record.terminated is not None and record.terminated.exit_code == 0


def _by_name(statuses: Sequence[ContainerStatus]) -> dict[str, ContainerStatus]:
    return {status.name: status for status in statuses}


async def _first(work: asyncio.Task[None], sign: asyncio.Task[bool]) -> None:
    """Returns when the sign is given, or when the work has ended without it."""
    await asyncio.wait((work, sign), return_when=asyncio.FIRST_COMPLETED)
    sign.cancel()
