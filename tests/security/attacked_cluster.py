"""A cluster in a process of its own, to be attacked: what it costs can be measured, and it cannot take the machine down.

As a program it serves a cluster with a pod `web`, which is wherever its node says: at 127.0.0.1. It prints how it is
reached, tells its longest slice (`LoopSlices`) for each line of its input, and ends when that does. With a number, it has the
built-in controllers instead, and so many simulated nodes.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from navarch.api import Dynamic
from navarch.client import Config, MergePatch
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.https_front import new_loop, serve_https
from navarch.k8s.core.v1 import Pod
from security.loop_slices import LoopSlices, measured_slices
from wire import Wire

__all__ = ["AttackedCluster", "attacked_cluster"]

_MOST_MEMORY = 1536 * 2**20
_MOST_CPU_SECONDS = 240
_TICKS = os.sysconf("SC_CLK_TCK")


class AttackedCluster(NamedTuple):
    """A running cluster and its process."""

    wire: Wire
    config: Config
    pid: int
    questions: IO[bytes]
    answers: IO[bytes]

    def longest_slice(self) -> float:
        """For how long its event loop served nobody else at most, since this was asked last; in CPU seconds."""
        self.questions.write(b"\n")
        self.questions.flush()
        return float(self.answers.readline())

    def cpu_seconds(self) -> float:
        """What its process has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def begin_peak(self) -> int:
        """Forgets the most memory that it has had; returns what it has now, in bytes."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return self._memory("VmRSS")

    def peak(self) -> int:
        """The most memory that it has had since, in bytes."""
        return self._memory("VmHWM")

    def _memory(self, name: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in status if line.startswith(f"{name}:")) * 1024


@contextmanager
def attacked_cluster(*, simulated: int = 0) -> Iterator[AttackedCluster]:
    """Starts the program, and ends it with the block."""
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, str(Path(__file__)), *([str(simulated)] if simulated else [])]
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            told = process.stdout.readline()
            assert told, "expected the cluster to say how it is reached; it has ended"
            access = json.loads(told)
            config = Config(server=access["url"], ca_data=access["ca"].encode(), token=access["token"])
            yield AttackedCluster(Wire(config), config, process.pid, process.stdin, process.stdout)
        finally:
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


class _Here(NamedTuple):
    """A node on which every pod is at 127.0.0.1."""

    address: str = "127.0.0.1"
    is_reachable: bool = True

    def pod_address(self, pod_uid: str) -> str:
        return self.address if pod_uid else ""


async def _serve(simulated: int) -> None:
    if not simulated:
        EmbeddedCluster.nodes = property(lambda _: {"here": _Here()})  # type: ignore[assignment,method-assign] # see above
    components = ComponentOptions(simulated=simulated) if simulated else None
    async with EmbeddedCluster(components=components) as cluster, serve_https(cluster) as access:
        if not simulated:
            await _place(cluster)
        told: dict[str, Any] = {"url": access.url, "token": access.token, "ca": access.authority.decode()}
        print(json.dumps(told), flush=True)  # noqa: T201 - the program's answer
        async with measured_slices() as slices:
            await _tell(slices)


async def _tell(slices: LoopSlices) -> None:
    while await asyncio.to_thread(sys.stdin.readline):
        print(slices.take(), flush=True)  # noqa: T201 - the program's answer


async def _place(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    spec = {"nodeName": "here", "containers": [{"name": "main", "image": "x"}]}
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}))
    status = {"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]}
    await client.patch(Pod, "web", MergePatch({"status": status}), subresource="status")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_SECONDS, _MOST_CPU_SECONDS))
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(int(sys.argv[1]) if sys.argv[1:] else 0))
