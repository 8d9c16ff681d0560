"""`Workload` writes to a cluster and reads it back, during a test."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from navarch.errors import NotFound
from navarch.etcd import EtcdClient, EtcdOptions, EtcdTls
from navarch.k8s.core.v1 import Pod, Secret
from navarch.testing import Cluster
from writer import Writer

LONGEST_GAP = 20.0
"""The limit of seconds without a write: members start faster even on a slow machine; a lost member would take longer."""


class Workload(Writer):
    """A `Writer` that reads every write back at once, with the certificate and password of the cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(partial(endpoints_of, cluster, name), b"/workload/")
        self._cluster = cluster
        self._name = name
        self.lost: list[int] = []

    async def client(self, endpoints: tuple[str, ...], *, hurried: bool) -> EtcdClient:
        return await _client(self._cluster, self._name, endpoints, hurried=hurried)

    async def write(self, etcd: EtcdClient, number: int) -> None:
        await super().write(etcd, number)
        if await etcd.kv.get(self.key(number)) is None:
            self.lost.append(number)

    async def verify(self) -> None:
        """Fails unless every acknowledged write exists, and was readable at once."""
        assert self.acknowledged, "expected something to have been written"
        assert not self.lost, f"expected every write to be read at once, but {self.lost[:10]} were not"
        missing = await self.missing()
        assert not missing, (
            f"expected {len(self.acknowledged)} acknowledged writes, {len(missing)} are lost: {missing[:10]}"
        )


async def endpoints_of(cluster: Cluster, name: str) -> tuple[str, ...]:
    """Returns the client URLs of the pods that have an address, ready ones first."""
    pods = await cluster.list(Pod, labels={"etcd_cluster": name})
    ready = sorted(pods, key=lambda pod: not is_ready(pod))
    return tuple(f"{_scheme(pod)}://{pod.status.pod_ip}:2379" for pod in ready if pod.status.pod_ip)


def _scheme(pod: Pod) -> str:
    """Returns https if the pod serves it."""
    flags = pod.spec.containers[0].command or []
    return "https" if any(each.startswith("--listen-client-urls=") and "https:" in each for each in flags) else "http"


def is_ready(pod: Pod) -> bool:
    """Reports whether the pod is ready and not terminating."""
    conditions = {each.type: each.status for each in pod.status.conditions or []}
    return pod.metadata.deletion_timestamp is None and conditions.get("Ready") == "True"


async def _client(cluster: Cluster, name: str, endpoints: tuple[str, ...], *, hurried: bool = False) -> EtcdClient:
    """Returns a client with the certificate and password of the cluster, if it has them."""
    password = (await secret_of(cluster, f"{name}-root")).get("password", b"").decode()
    return client_with(await secret_of(cluster, f"{name}-client-tls"), endpoints, name, password, hurried=hurried)


async def client_of(cluster: Cluster, name: str) -> EtcdClient:
    """Returns a patient client of all members."""
    return await _client(cluster, name, await endpoints_of(cluster, name))


async def put(cluster: Cluster, name: str, key: bytes, value: bytes) -> int:
    """Writes a key; returns the revision."""
    async with await client_of(cluster, name) as etcd:
        return (await etcd.kv.put(key, value)).header.revision


async def get(cluster: Cluster, name: str, key: bytes) -> bytes | None:
    """Returns the value of a key."""
    async with await client_of(cluster, name) as etcd:
        found = await etcd.kv.get(key)
    return found.value if found else None


async def secret_of(cluster: Cluster, name: str) -> Mapping[str, bytes]:
    """Returns the data of a Secret; empty if it does not exist."""
    try:
        return (await cluster.get(Secret, name)).data or {}
    except NotFound:
        return {}


def client_with(
    files: Mapping[str, bytes], endpoints: tuple[str, ...], name: str, password: str = "", *, hurried: bool = False
) -> EtcdClient:
    """Returns a client with the trusted authorities and certificate of a Secret.

    A hurried client tries once, for a second; another one waits as long as a busy machine takes.
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


@asynccontextmanager
async def workload(cluster: Cluster, name: str) -> AsyncIterator[Workload]:
    """Runs a workload for the duration of the block, and verifies it afterwards."""
    work = Workload(cluster, name)
    async with work.writing():
        yield work
    await work.verify()
