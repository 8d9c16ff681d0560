"""`PodWorkers`: runs a worker for each pod that is bound to a node."""

from __future__ import annotations

import asyncio
import logging

from navarch._base.backoff import Delays
from navarch._base.supervisor import RESTARTS, cause_of
from navarch.cache import Cache, Cached, Change, Collection
from navarch.cluster.nodes.pods.pod_worker import PodWorker
from navarch.cluster.nodes.pods.sandbox import KubeletDeps
from navarch.cluster.nodes.volumes.atomic_writer import PodFolder
from navarch.k8s.core.v1 import ConfigMap, Pod, Secret, Volume

_log = logging.getLogger("navarch.nodes")


class PodWorkers:
    """Watches the pods of one node. A pod that is no longer bound to it is terminated, and its files are removed."""

    def __init__(self, deps: KubeletDeps) -> None:
        self._deps = deps
        self._cache = Cache(deps.client, deps.clock, deps.client.rng)
        self._pods: Collection[Pod] = self._cache.collection(Cached(Pod, fields=f"spec.nodeName={deps.node}"))
        self._workers: dict[str, PodWorker] = {}
        self._group: asyncio.TaskGroup | None = None
        # Pods that were removed by their workers: what the watch still shows of them is old.
        self._removed: set[str] = set()
        self._followed: set[type[ConfigMap | Secret]] = set()

    async def run(self) -> None:
        """Runs until it is cancelled; containers then keep running until the runtime ends."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._cache.run(), name="cache of pods")
            await self._cache.wait_synced()
            self._clean_up({entry.uid for entry in self._pods.entries()})
            self._pods.subscribe(self._heard)
            try:
                await asyncio.Event().wait()
            finally:
                self._pods.unsubscribe(self._heard)

    def worker(self, uid: str) -> PodWorker | None:
        """Returns the worker of that pod."""
        return self._workers.get(uid)

    def workers(self) -> tuple[PodWorker, ...]:
        """Returns the workers of all pods."""
        return tuple(self._workers.values())

    def _heard(self, change: Change) -> None:
        uid = change.newest.uid
        worker = self._workers.get(uid)
        if change.new is None:
            self._removed.discard(uid)
            if worker is not None:
                worker.vanish()
        elif uid not in self._removed:
            pod = self._pods.fresh(change.new)
            (worker or self._begin(pod)).update(pod)

    def _begin(self, pod: Pod) -> PodWorker:
        assert self._group is not None
        self._follow_sources(pod)
        worker = self._workers[pod.metadata.uid] = PodWorker(self._deps, pod)
        self._group.create_task(self._work(worker), name=f"pod {pod.namespace}/{pod.name}")
        return worker

    async def _work(self, worker: PodWorker) -> None:
        """Runs the worker until the pod is deleted. Replaces a worker that fails; its containers are started anew."""
        uid, delays = worker.sandbox.uid, Delays(RESTARTS, self._deps.client.rng)
        while True:
            try:
                await worker.run()
                break
            except Exception as error:  # noqa: BLE001 - one pod must not end the others
                delay, cause = delays.next_delay(), cause_of(error)
            pod = worker.sandbox.pod
            _log.error("syncing pod %s/%s failed: %s; retrying in %.1f s", pod.namespace, pod.name, cause, delay)
            worker.sandbox.say("FailedSync", f"error syncing pod: {cause}", "Warning")
            await worker.kill()
            await self._deps.clock.sleep(delay)
            worker = self._workers[uid] = self._replacement(worker)
        if not worker.has_vanished:
            self._removed.add(uid)
        del self._workers[uid]

    def _replacement(self, failed: PodWorker) -> PodWorker:
        """Returns a new worker with the updates that the failed one received."""
        worker = PodWorker(self._deps, failed.sandbox.pod)
        worker.update(failed.sandbox.pod)
        if failed.has_vanished:
            worker.vanish()
        return worker

    def _follow_sources(self, pod: Pod) -> None:
        """Watches ConfigMaps and Secrets that pods mount, and notifies those pods of changes; starts with the first
        such pod.
        """
        volumes = pod.spec.volumes or []
        for kind in (ConfigMap, Secret):
            if kind not in self._followed and any(_uses(volume, kind) for volume in volumes):
                self._followed.add(kind)
                self._cache.collection(kind).subscribe(self._source_changed)

    def _source_changed(self, change: Change) -> None:
        for worker in self._workers.values():
            if worker.sandbox.pod.namespace == change.newest.key.namespace and not change.initial:
                worker.sandbox.volumes.changed()

    def _clean_up(self, known: set[str]) -> None:
        """Removes the files of pods that were deleted while the node was down."""
        for folder in PodFolder.all_of(self._deps.folder):
            if folder.uid not in known:
                try:
                    folder.remove()
                except OSError as error:
                    _log.warning("removing the files of a deleted pod in %s failed: %s", folder.path, error)


def _uses(volume: Volume, kind: type[ConfigMap | Secret]) -> bool:
    name = "config_map" if kind is ConfigMap else "secret"
    projected = volume.projected.sources or [] if volume.projected else []
    return any(getattr(source, name) is not None for source in (volume, *projected))
