"""Somebody who writes, and somebody who reads, while things happen to a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from navarch._base.clock import SystemClock
from navarch.errors import EtcdError
from navarch.etcd import EtcdClient, EtcdOptions
from navarch.k8s.core.v1 import Pod
from navarch.testing import Cluster

_PAUSE = 0.01
_PREFIX = b"/workload/"


@dataclass
class Workload:
    """What was written, and what was read of it. Keys are never written twice."""

    cluster: Cluster
    name: str
    clock: SystemClock = field(default_factory=SystemClock)
    acknowledged: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    longest_gap: float = 0.0
    _tried: int = 0

    async def run(self) -> None:
        """Writes and reads until it is cancelled, through whichever member serves."""
        last = self.clock.monotonic()
        while True:
            endpoints = await endpoints_of(self.cluster, self.name)
            if endpoints:
                async with EtcdClient(_options(endpoints)) as etcd:
                    last = await self._until_it_fails(etcd, last)
            await self.clock.sleep(_PAUSE)

    async def _until_it_fails(self, etcd: EtcdClient, last: float) -> float:
        try:
            while True:
                await self._once(etcd)
                now = self.clock.monotonic()
                self.longest_gap, last = max(self.longest_gap, now - last), now
                await self.clock.sleep(_PAUSE)
        except EtcdError:
            return last

    async def _once(self, etcd: EtcdClient) -> None:
        self._tried += 1
        number = self._tried
        await etcd.kv.put(_key(number), b"%d" % number)
        self.acknowledged.append(number)
        if await etcd.kv.get(_key(number)) is None:
            self.lost.append(number)

    async def verify(self) -> None:
        """Every write that was acknowledged is there, and was whenever it was looked for."""
        endpoints = await endpoints_of(self.cluster, self.name)
        async with EtcdClient(EtcdOptions(endpoints=endpoints)) as etcd:
            found = {int(each.value) async for page in etcd.kv.pages(_PREFIX, size=1000) for each in page}
        assert self.acknowledged, "expected something to have been written"
        assert not self.lost, f"expected every write to be read at once, but {self.lost[:10]} were not"
        missing = sorted(set(self.acknowledged) - found)
        assert not missing, (
            f"expected {len(self.acknowledged)} acknowledged writes, {len(missing)} are lost: {missing[:10]}"
        )


async def endpoints_of(cluster: Cluster, name: str) -> tuple[str, ...]:
    """Where the members of a cluster listen that have an address."""
    pods = await cluster.list(Pod, labels={"etcd_cluster": name})
    ready = sorted(pods, key=lambda pod: not is_ready(pod))
    return tuple(f"http://{pod.status.pod_ip}:2379" for pod in ready if pod.status.pod_ip)


def is_ready(pod: Pod) -> bool:
    """Whether it serves."""
    conditions = {each.type: each.status for each in pod.status.conditions or []}
    return pod.metadata.deletion_timestamp is None and conditions.get("Ready") == "True"


def _options(endpoints: tuple[str, ...]) -> EtcdOptions:
    return EtcdOptions(endpoints=endpoints, timeout=1.0, connect_timeout=0.5, patience=0)


def _key(number: int) -> bytes:
    return _PREFIX + b"%09d" % number


@asynccontextmanager
async def workload(cluster: Cluster, name: str) -> AsyncIterator[Workload]:
    """Runs while the block lasts; verified when it ends."""
    work = Workload(cluster, name)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(work.run())
        try:
            yield work
        finally:
            running.cancel()
    await work.verify()
