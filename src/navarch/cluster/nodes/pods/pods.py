"""`Pods`: a worker for each pod that is bound to a node."""

from __future__ import annotations

import asyncio
import logging
import shutil

from navarch.cache import Cache, Cached, Change, Collection
from navarch.cluster.nodes.pods.site import Site
from navarch.cluster.nodes.pods.worker import PodWorker
from navarch.k8s.core.v1 import ConfigMap, Pod, Secret, Volume

__all__ = ["Pods"]

_log = logging.getLogger("navarch.nodes")


class Pods:
    """Follows the pods of one node. What is not bound to it any more is ended, and leaves nothing behind."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._cache = Cache(site.client, site.clock, site.client.rng)
        self._pods: Collection[Pod] = self._cache.collection(Cached(Pod, fields=f"spec.nodeName={site.node}"))
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
        worker = self._workers[pod.metadata.uid] = PodWorker(self._site, pod)
        self._group.create_task(self._work(worker), name=f"pod {pod.namespace}/{pod.name}")
        return worker

    async def _work(self, worker: PodWorker) -> None:
        pod = worker.home.pod
        try:
            await worker.run()
        except Exception:  # noqa: BLE001 - one pod must not end the others
            _log.exception("pod %s/%s is no longer looked after", pod.namespace, pod.name)
        if not worker.has_vanished:
            self._removed.add(pod.metadata.uid)
        del self._workers[pod.metadata.uid]

    def _follow_sources(self, pod: Pod) -> None:
        """Changes of what files come from are told; watched from the first pod on that has such files."""
        volumes = pod.spec.volumes or []
        for kind in (ConfigMap, Secret):
            if kind not in self._followed and any(_uses(volume, kind) for volume in volumes):
                self._followed.add(kind)
                self._cache.collection(kind).subscribe(self._source_changed)

    def _source_changed(self, change: Change) -> None:
        for worker in self._workers.values():
            if worker.home.pod.namespace == change.newest.key.namespace and not change.initial:
                worker.home.volumes.changed()

    def _clean_up(self, known: set[str]) -> None:
        """Pods that went while nobody was here leave nothing behind."""
        folder = self._site.folder / "pods"
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name not in known:
                shutil.rmtree(path, ignore_errors=True)


def _uses(volume: Volume, kind: type[ConfigMap | Secret]) -> bool:
    name = "config_map" if kind is ConfigMap else "secret"
    projected = volume.projected.sources or [] if volume.projected else []
    return any(getattr(source, name) is not None for source in (volume, *projected))
