"""The API servers that are measured: each is started afresh, empty, and is gone when it was used."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import rig
from measuring import Run, Worker, run_worker
from navarch.cluster.embedded.cluster_folder import ClusterFolder, start_cluster
from rig import asking
from rig.process import Daemon
from rig.waiting import wait_for

HERE = Path(__file__).parent
OURS, OURS_IN_ETCD, REAL = "ours", "ours, in etcd", "kube-apiserver"
OURS_IN_FILE = "navarch cluster up"
_START_SECONDS = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs: how it is reached, its processes (its own first), and the seconds it took to be there."""

    kubeconfig: Path
    pids: tuple[int, ...]
    started_in: float = 0.0

    def memory(self) -> float:
        """The resident memory of the server itself, in MB."""
        status = Path(f"/proc/{self.pids[0]}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]) / 1024

    def cpu(self) -> float:
        """The seconds that its processes have computed so far."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids]
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / _TICKS

    def run(self, *job: str) -> Run:
        """Lets a worker do its job on this server; its CPU is what the server's processes used meanwhile."""
        before = self.cpu()
        found = run_worker(["-m", *job], self._environment)
        return replace(found, cpu=self.cpu() - before)

    def start(self, *job: str) -> Worker:
        """The same for a job that ends when it is told to; it is ready."""
        worker = Worker([sys.executable, "-m", *job], self._environment)
        worker.next_line()
        return worker

    @property
    def _environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig), "PYTHONPATH": str(HERE)}


@dataclass(frozen=True, slots=True)
class Servers:
    """Starts servers by their names; the real ones are those of a cluster that has nothing else to do."""

    cluster: rig.Cluster

    @contextmanager
    def running(self, name: str) -> Iterator[Server]:
        """A fresh server while the block lasts."""
        started = {OURS: self._ours, OURS_IN_FILE: _in_file, OURS_IN_ETCD: self._in_etcd, REAL: self._real}
        with started[name]() as server:
            yield server

    def stop(self) -> None:
        """Stops what the cluster runs, the last first."""
        for daemon in reversed(list(self.cluster.daemons.values())):
            daemon.stop()

    @contextmanager
    def _ours(self, *etcd: str) -> Iterator[Server]:
        with tempfile.TemporaryDirectory(prefix="navarch-bench-") as folder:
            command, began = [sys.executable, "-m", "serving.embedded", folder, *etcd], time.monotonic()
            with Worker(command, {"PYTHONPATH": str(HERE)}) as worker:
                worker.next_line()
                yield Server(Path(folder, "kubeconfig"), (worker.pid,), time.monotonic() - began)

    @contextmanager
    def _in_etcd(self) -> Iterator[Server]:
        with self._etcd() as etcd, self._ours(self.cluster.etcd_url) as server:
            yield replace(server, pids=(*server.pids, etcd.process.pid))

    @contextmanager
    def _real(self) -> Iterator[Server]:
        """As the rig starts it; clients show a certificate, as they do to ours."""
        began = time.monotonic()
        with self._etcd() as etcd, _started(self.cluster.daemons["kube-apiserver"]) as server:
            wait_for("the API server", lambda: self.cluster.get("/readyz"), seconds=_START_SECONDS, daemon=server)
            took = time.monotonic() - began
            yield Server(self.cluster.certificate_kubeconfig, (server.process.pid, etcd.process.pid), took)

    @contextmanager
    def _etcd(self) -> Iterator[Daemon]:
        shutil.rmtree(self.cluster.folder / "etcd")
        url = f"{self.cluster.etcd_url}/health"
        with _started(self.cluster.daemons["etcd"]) as daemon:
            wait_for("etcd", lambda: asking.get(url), seconds=_START_SECONDS, daemon=daemon)
            yield daemon


@contextmanager
def _started(daemon: Daemon) -> Iterator[Daemon]:
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.stop()


@contextmanager
def _in_file() -> Iterator[Server]:
    """As `navarch cluster up` starts it."""
    with tempfile.TemporaryDirectory(prefix="navarch-bench-") as root:
        folder, began = ClusterFolder(Path(root), "bench"), time.monotonic()
        running = start_cluster(folder)
        try:
            wait_for(
                running.url, lambda: asking.get(f"{running.url}/readyz", ca_file=folder.path / "ca.pem"), seconds=5
            )
            yield Server(folder.kubeconfig, (running.identity.pid,), time.monotonic() - began)
        finally:
            running.stop()
