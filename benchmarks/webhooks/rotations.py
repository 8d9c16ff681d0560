"""Requests to an API server while the CA of a webhook's replicas rotates: how many are refused, or get no answer."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import aiohttp
import uvloop

import rig
from measuring import Worker, console
from navarch import Client, connect, load
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Secret
from rig.ports import reserved
from rig.waiting import wait_for
from webhooks.servers import HERE

_PATH = "/api/v1/namespaces/default/configmaps?dryRun=All"
_LIMIT_SECONDS = 120.0
_CONNECTIONS = 64
_SETTLE_SECONDS = 5.0
_FAILURES_SHOWN = 3


@dataclass(slots=True)
class RotationRun:
    """What the requests met: `wrong` are good objects that were refused, bad ones that passed, and requests without an answer."""

    sent: int = 0
    seconds: float = 0.0
    wrong: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.sent / self.seconds if self.seconds else 0.0


def measure_rotation(rate: float, rotations: int, ca_seconds: float) -> RotationRun:
    """Sends so many requests a second to a real API server until the CA has rotated that often."""
    with rig.running() as cluster, _replicas(cluster, ca_seconds):
        found = uvloop.run(_measured(cluster, rate, rotations))
    for failure in found.failures[:_FAILURES_SHOWN]:
        console.print(f"failed: {failure}")
    console.print(f"{found.rate:.0f} requests a second for {found.seconds:.0f} s: {dict(found.outcomes)}")
    return found


@contextmanager
def _replicas(cluster: rig.Cluster, ca_seconds: float) -> Iterator[None]:
    """Two replicas, each a process, behind one address."""
    with reserved(3) as (front, *ports):
        shared = {"KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": str(HERE)}
        replica = {"BENCH_URL": f"https://127.0.0.1:{front}", "BENCH_CA_SECONDS": str(ca_seconds)}
        balancer = {"BENCH_PORT": str(front), "BENCH_REPLICAS": ",".join(map(str, ports))}
        command = [sys.executable, "-m", "webhooks.ours_rotation"]
        with (
            Worker([sys.executable, "-m", "webhooks.balancer"], shared | balancer),
            Worker(command, shared | replica | {"BENCH_PORT": str(ports[0])}),
            Worker(command, shared | replica | {"BENCH_PORT": str(ports[1])}),
        ):
            for port in (front, *ports):  # a Service leads to replicas that are ready
                wait_for(f"a server at port {port}", partial(_listens, port), seconds=_LIMIT_SECONDS)
            yield


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


async def _measured(cluster: rig.Cluster, rate: float, rotations: int) -> RotationRun:
    found = RotationRun()
    async with connect(load(cluster.kubeconfig)) as client, _session(cluster) as session:
        await _until_guarded(session)
        signer, began, numbers = await _signer(client), time.monotonic(), iter(range(sys.maxsize))
        async with asyncio.TaskGroup() as group:
            writing = [group.create_task(_write(session, numbers, began, rate, found)) for _ in range(_CONNECTIONS)]
            for _ in range(rotations):
                signer = await _another_signer(client, signer)
                console.print(f"another CA signs after {time.monotonic() - began:.0f} s")
            await asyncio.sleep(_SETTLE_SECONDS)  # with it, old and new connections are served
            found.seconds = time.monotonic() - began
            for task in writing:
                task.cancel()
    return found


def _session(cluster: rig.Cluster) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        cluster.url,
        connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=cluster.ca_file), limit=_CONNECTIONS),
        headers={"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"},
        timeout=aiohttp.ClientTimeout(total=60),
    )


async def _until_guarded(session: aiohttp.ClientSession) -> None:
    """Waits until the webhook denies."""
    async with asyncio.timeout(_LIMIT_SECONDS):
        while await _outcome(session, "bad") != "bad denied":  # noqa: ASYNC110 - polls another process
            await asyncio.sleep(0.2)


async def _write(
    session: aiohttp.ClientSession, numbers: Iterator[int], began: float, rate: float, found: RotationRun
) -> None:
    """Sends the next request when it is due; whoever is late sends at once."""
    for number in numbers:
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        quality = "bad" if number % 10 == 9 else "good"
        outcome = await _outcome(session, quality)
        found.sent += 1
        if outcome not in {"good stored", "bad denied"}:
            found.wrong += 1
            found.failures.append(outcome)
            outcome = "wrong"
        found.outcomes[outcome] += 1


async def _outcome(session: aiohttp.ClientSession, quality: str) -> str:
    config = {"metadata": {"generateName": "c-", "labels": {"guarded": quality}}}
    try:
        async with session.post(_PATH, data=json.dumps(config)) as answer:
            text = await answer.text()
            if answer.status == 201:
                return f"{quality} stored"
            return f"{quality} denied" if answer.status == 422 else f"{answer.status}: {text[:500]}"
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"no answer: {error!r}"


async def _signer(client: Client) -> bytes:
    """The CA that signs; empty while there is none."""
    try:
        return ((await client.get(Secret, "bench-webhook-tls", namespace="default")).data or {}).get("ca.crt", b"")
    except NotFound:
        return b""


async def _another_signer(client: Client, before: bytes) -> bytes:
    async with asyncio.timeout(_LIMIT_SECONDS):
        while (found := await _signer(client)) == before:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.5)
    return found
