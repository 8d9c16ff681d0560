"""`PodWorkers`: a worker for each pod that is bound to a node."""

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
    """Follows the pods of one node. What is not bound to it any more is ended, and leaves nothing behind."""

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
        """Works until it is cancelled; containers then run on until the runtime ends."""
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
        """Who looks after that pod."""
        return self._workers.get(uid)

    def workers(self) -> tuple[PodWorker, ...]:
        """Who looks after its pods."""
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
        """Until the pod is gone. A worker that fails is replaced, and its containers are started anew."""
        uid, delays = worker.sandbox.uid, Delays(RESTARTS, self._deps.client.rng)
        while True:
            try:
                await worker.run()
                break
            except Exception as error:  # noqa: BLE001 - one pod must not end the others
                delay, cause = delays.next_delay(), cause_of(error)
            pod = worker.sandbox.pod
            _log.error("pod %s/%s: %s; tried again in %.1f s", pod.namespace, pod.name, cause, delay)
            worker.sandbox.say("FailedSync", f"error syncing pod: {cause}", "Warning")
            await worker.kill()
            await self._deps.clock.sleep(delay)
            worker = self._workers[uid] = self._replacement(worker)
        if not worker.has_vanished:
            self._removed.add(uid)
        del self._workers[uid]

    def _replacement(self, failed: PodWorker) -> PodWorker:
        """A new worker that knows what the other one was told meanwhile."""
        worker = PodWorker(self._deps, failed.sandbox.pod)
        worker.update(failed.sandbox.pod)
        if failed.has_vanished:
            worker.vanish()
        return worker

    def _follow_sources(self, pod: Pod) -> None:
        """Changes of what files come from are told; watched from the first pod on that has such files."""
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
        """Pods that went while nobody was here leave nothing behind."""
        for folder in PodFolder.all_of(self._deps.folder):
            if folder.uid not in known:
                try:
                    folder.remove()
                except OSError as error:
                    _log.warning("files of a former pod are left in %s: %s", folder.path, error)


def _uses(volume: Volume, kind: type[ConfigMap | Secret]) -> bool:
    name = "config_map" if kind is ConfigMap else "secret"
    projected = volume.projected.sources or [] if volume.projected else []
    return any(getattr(source, name) is not None for source in (volume, *projected))
