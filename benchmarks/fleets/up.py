"""Clusters as `navarch cluster up` makes them, and their first pod."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleets.rolling import roll_over
from measuring import Run
from navarch import Client, connect, load
from navarch._base.clock import SystemClock
from navarch.client import WatchOptions
from navarch.cluster.embedded.cluster_folder import ClusterFolder
from navarch.errors import Forbidden
from navarch.k8s.core.v1 import Container, Pod, PodSpec

_IDLE_SECONDS = 10.0
_NAME = "bench"


@contextmanager
def _up(nodes: int) -> Iterator[ClusterFolder]:
    """A new cluster in a folder of its own, and whatever it keeps there, while the block lasts."""
    with tempfile.TemporaryDirectory(prefix="navarch-bench-") as state:
        environment = {**os.environ, "XDG_STATE_HOME": state}
        _navarch("up", "--nodes", str(nodes), environment=environment)
        try:
            yield ClusterFolder(Path(state, "navarch", "clusters"), _NAME)
        finally:
            _navarch("down", environment=environment)


def _navarch(command: str, *options: str, environment: dict[str, str]) -> None:
    full = [sys.executable, "-m", "navarch", "cluster", command, *options, "--name", _NAME]
    subprocess.run(full, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60)


def first_pod() -> Run:
    """From the command to the moment at which a watcher is told that a pod runs."""
    began = time.monotonic()
    with _up(1) as folder:
        asyncio.run(_ran(folder))
        return Run(time.monotonic() - began, 0.0, 0.0, 1)


async def _ran(folder: ClusterFolder) -> None:
    async with connect(load(folder.kubeconfig)) as client:
        spec = PodSpec(containers=[Container(name="main", image="busybox", command=["sleep", "1000"])])
        spec.termination_grace_period_seconds = 0
        await _created(client, Pod(name="first", spec=spec))
        async with client.watch(Pod, options=WatchOptions(initial=True)) as events:
            async for event in events:
                if event.object.status.phase == "Running":
                    return


async def _created(client: Client, pod: Pod) -> None:
    """As soon as it can be: its ServiceAccount comes with the controllers."""
    while True:
        try:
            await client.create(pod)
        except Forbidden:
            await SystemClock().sleep(0.01)
        else:
            return


def idle(nodes: int) -> Run:
    """The memory of all its processes when nothing has happened for a while; what they share is counted once."""
    with _up(nodes) as folder:
        time.sleep(_IDLE_SECONDS)
        running = folder.running()
        assert running is not None
        pids = _family(running.identity.pid)
        return Run(0.0, 0.0, sum(_share(pid) for pid in pids), len(pids))


def _family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


def _share(pid: int) -> float:
    """The memory of a process in MB, of which shared pages are divided among those who share them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024


def rolled_over(replicas: int) -> Run:
    """See `roll_over`."""
    with _up(1) as folder:
        return asyncio.run(roll_over(folder.kubeconfig, replicas))
