"""`SimulatedPods`: the pods of all simulated nodes: one watch, one heap of times, and one write per stage."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from navarch._base.backoff import Backoff
from navarch.api import format_time
from navarch.cache import Cache, Cached, Change, Collection
from navarch.client import Client, Preconditions, StrategicPatch
from navarch.cluster.nodes.network.addresses import AddressPool
from navarch.cluster.nodes.simulated.life import Instant, PodLife
from navarch.cluster.nodes.simulated.node import SimulatedNode
from navarch.cluster.nodes.simulated.pod_view import PodView, decode_pod
from navarch.cluster.nodes.simulated.stages import Life, life_of
from navarch.cluster.nodes.simulated.status import pod_status, without_nulls
from navarch.cluster.workers import Workers
from navarch.errors import Conflict, NotFound
from navarch.k8s.core.v1 import Pod

_log = logging.getLogger("navarch.nodes")
_NETWORK: Final = "10.64.0.0/10"
_WORKERS: Final = 16
RETRIES: Final = Backoff(initial=0.2, maximum=10.0)
"""The delays after a request of a simulated node failed."""


class _WrittenStatus:
    """The answer to a status write; its content is not read."""

    __kind__ = Pod.__kind__

    @staticmethod
    def from_json(data: bytes) -> None:
        """Ignores the content."""


class SimulatedPods:
    """Advances the pods of these nodes through their lives."""

    def __init__(self, client: Client, machine: Callable[[str], SimulatedNode | None], lives: Sequence[Life]) -> None:
        self._client = client
        self._machine = machine
        self._choices = lives
        self._addresses = AddressPool(_NETWORK)
        self._cache = Cache(client, client.clock, client.rng)
        self._pods: Collection[Pod] = self._cache.collection(Cached(Pod, fields="spec.nodeName!="))
        self._lives: dict[str, PodLife] = {}
        self._workers: Workers[str] = Workers(
            "simulated pods",
            client.clock,
            client.rng,
            self._live,
            concurrency=_WORKERS,
            backoff=RETRIES,
            level=logging.WARNING,
        )

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run(), name="cache of simulated pods")
            await self._cache.wait_synced()
            self._pods.subscribe(self._heard)
            try:
                await self._workers.run()
            finally:
                self._pods.unsubscribe(self._heard)

    def of(self, node: str) -> list[PodLife]:
        """Returns the pods of one node."""
        return [life for life in self._lives.values() if life.pod.spec.node_name == node]

    def look_at(self, node: str) -> None:
        """Queues every pod of the node, which may be reachable again."""
        for life in self.of(node):
            self._workers.queue.add(life.pod.metadata.uid)

    # What the watch shows

    def _heard(self, change: Change) -> None:
        if change.new is None:
            self._forget(change.newest.uid)
            return
        try:
            pod = decode_pod(change.new.data)
        except msgspec.DecodeError as error:
            _log.warning("decoding pod %s failed, its simulation stands still: %s", change.newest.key, error)
            return
        if (machine := self._machine(pod.spec.node_name)) is not None:
            self._update(pod, machine)

    def _update(self, pod: PodView, machine: SimulatedNode) -> None:
        """Takes a change of a pod; ignores the echo of an own write."""
        uid = pod.metadata.uid
        life = self._lives.get(uid)
        if life is None:
            life = self._lives[uid] = self._begun(pod, machine)
        elif pod.metadata.deletion_timestamp is None and not pod.spec.readiness_gates:
            life.pod = pod
            return
        life.update(pod, self._client.clock.monotonic())
        self._workers.queue.add(uid)

    def _begun(self, pod: PodView, machine: SimulatedNode) -> PodLife:
        metadata = pod.metadata
        life = life_of(metadata.annotations, metadata.labels, machine.name, self._choices)
        address = machine.address if pod.spec.host_network else self._address(pod)
        return PodLife(pod, life, address, Instant.of(self._client.clock), self._client.rng)

    def _address(self, pod: PodView) -> str:
        known = pod.status.pod_ip
        return self._addresses.keep(known) if known else self._addresses.take()

    def _forget(self, uid: str) -> None:
        life = self._lives.pop(uid, None)
        if life is not None:
            self._addresses.give_back(life.address)

    # Life

    async def _live(self, uid: str) -> float | None:
        """Advances one pod; does nothing while its node is frozen or cut off."""
        life = self._lives.get(uid)
        machine = self._machine(life.pod.spec.node_name) if life is not None else None
        if life is None or machine is None or not machine.is_up:
            return None
        life.advance(Instant.of(self._client.clock))
        if life.has_stopped and not life.pod.metadata.finalizers:
            await self._remove(life)
            return None
        await self._write(life, machine)
        if life.has_stopped and not life.pod.is_held:
            await self._remove(life)
        return None if life.due is None else max(life.due - self._client.clock.monotonic(), 0.0)

    async def _write(self, life: PodLife, machine: SimulatedNode) -> None:
        """What is over was told before."""
        if life.pod.is_over:
            return
        status = pod_status(life, machine.address, format_time(self._client.clock.now()))
        if status == life.written:
            return
        metadata = life.pod.metadata
        is_first = life.written is None and not life.pod.status.container_statuses
        told = without_nulls(status) if is_first else status
        patch = StrategicPatch({"metadata": {"uid": metadata.uid}, "status": told})
        await self._told(patch, life)
        life.written = status

    async def _told(self, patch: StrategicPatch, life: PodLife) -> None:
        metadata = life.pod.metadata
        try:
            await self._client.patch(_written, metadata.name, patch, namespace=metadata.namespace, subresource="status")
        except (NotFound, Conflict):  # it is gone, or another one has its name; the watch will say so
            return

    async def _remove(self, life: PodLife) -> None:
        metadata = life.pod.metadata
        try:
            await self._client.delete(
                _written,
                metadata.name,
                namespace=metadata.namespace,
                grace_seconds=0,
                preconditions=Preconditions(uid=metadata.uid),
            )
        except (NotFound, Conflict):
            return


_written: Any = _WrittenStatus
