"""Somebody who writes, and somebody who reads, while things happen to a cluster."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from navarch._base.clock import SystemClock
from navarch.errors import EtcdError, NotFound
from navarch.etcd import EtcdClient, EtcdOptions, EtcdTls
from navarch.k8s.core.v1 import Pod, Secret
from navarch.testing import Cluster

LONGEST_GAP = 20.0
"""Nobody goes without writes for longer, in seconds: members start faster on the slowest machine, and those that are gone for
good take much longer.
"""
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
                async with await _client(self.cluster, self.name, endpoints, hurried=True) as etcd:
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
        async with await client_of(self.cluster, self.name) as etcd:
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
    return tuple(f"{_scheme(pod)}://{pod.status.pod_ip}:2379" for pod in ready if pod.status.pod_ip)


def _scheme(pod: Pod) -> str:
    """With TLS wherever it is served."""
    flags = pod.spec.containers[0].command or []
    return "https" if any(each.startswith("--listen-client-urls=") and "https:" in each for each in flags) else "http"


def is_ready(pod: Pod) -> bool:
    """Whether it serves."""
    conditions = {each.type: each.status for each in pod.status.conditions or []}
    return pod.metadata.deletion_timestamp is None and conditions.get("Ready") == "True"


async def _client(cluster: Cluster, name: str, endpoints: tuple[str, ...], *, hurried: bool = False) -> EtcdClient:
    """Somebody who knows the certificate and the password that the cluster has, if it has them."""
    password = (await secret_of(cluster, f"{name}-root")).get("password", b"").decode()
    return client_with(await secret_of(cluster, f"{name}-client-tls"), endpoints, name, password, hurried=hurried)


async def client_of(cluster: Cluster, name: str) -> EtcdClient:
    """The same, of whoever serves."""
    return await _client(cluster, name, await endpoints_of(cluster, name))


async def put(cluster: Cluster, name: str, key: bytes, value: bytes) -> int:
    """Writes into a cluster; the revision."""
    async with await client_of(cluster, name) as etcd:
        return (await etcd.kv.put(key, value)).header.revision


async def get(cluster: Cluster, name: str, key: bytes) -> bytes | None:
    """What is in a cluster."""
    async with await client_of(cluster, name) as etcd:
        found = await etcd.kv.get(key)
    return found.value if found else None


async def secret_of(cluster: Cluster, name: str) -> Mapping[str, bytes]:
    """What is in a Secret; nothing if it is not there."""
    try:
        return (await cluster.get(Secret, name)).data or {}
    except NotFound:
        return {}


def client_with(
    files: Mapping[str, bytes], endpoints: tuple[str, ...], name: str, password: str = "", *, hurried: bool = False
) -> EtcdClient:
    """A client with what is in its Secret: whom it trusts, and its own certificate if it has one.

    Who is hurried tries once, for a second; others wait for as long as a busy machine takes.
    """
    with tempfile.TemporaryDirectory(prefix="workload-") as folder:
        paths = {key: Path(folder, key) for key in files}
        for key, path in paths.items():
            path.write_bytes(files[key])
        tls = (
            EtcdTls(
                ca_file=paths["etcd-client-ca.crt"],
                certificate_file=paths.get("etcd-client.crt"),
                key_file=paths.get("etcd-client.key"),
                server_name=f"{name}-client.default.svc",
            )
            if files
            else None
        )
        user = "root" if password else ""
        return EtcdClient(
            EtcdOptions(
                endpoints=endpoints,
                user=user,
                password=password,
                tls=tls,
                timeout=1.0 if hurried else 20.0,
                connect_timeout=0.5 if hurried else 5.0,
                patience=0.0 if hurried else 60.0,
            )
        )


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
