"""The runtimes that are measured, and how to run them."""

from __future__ import annotations

import hashlib
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import rig
from measuring import Run, Worker, run_worker
from rig.build import build
from rig.programs import Program
from widgets import GROUP

HERE = Path(__file__).parent
OURS, KOPF, CONTROLLER_RUNTIME = "ours", "kopf", "controller-runtime"
TUNED = "controller-runtime without managed fields"
_SOURCE = HERE / "runtimes" / "controller_runtime"


class _Peer(Program):
    """The program in Go, built into the rig's cache. What it is made of is its version."""

    @property
    def source(self) -> Path:
        """The folder of the Go module."""
        return _SOURCE


def _digest() -> str:
    digest = hashlib.sha256()
    for file in sorted(_SOURCE.rglob("*.*")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


PEER = _Peer("controller-runtime", "benchmark", ".", _digest())
REVIEW_LOAD = _Peer("review-load", "benchmark", "./load", _digest())
"""What posts admission reviews to webhooks."""
_COMMANDS: Mapping[str, list[str]] = {
    OURS: [sys.executable, "-m", "runtimes.ours"],
    KOPF: [sys.executable, "-m", "runtimes.kopf_peer"],
    CONTROLLER_RUNTIME: [str(PEER.path)],
    TUNED: [str(PEER.path)],
}
PEERS = (CONTROLLER_RUNTIME, KOPF)


def prepare() -> None:
    """Builds what has to be built; raises MissingToolError, with the command that installs it, if there is no Go."""
    build([PEER, REVIEW_LOAD])


@dataclass(frozen=True, slots=True)
class Field:
    """A cluster with so many widgets, and the runtimes that work on it, each with so many reconciles at once."""

    cluster: rig.Cluster
    count: int
    workers: int = 32
    _phases: itertools.count[int] = field(default_factory=itertools.count)

    def start(self, name: str, job: str) -> Worker:
        """One runtime with its job."""
        job_environment = {
            "BENCH_COUNT": str(self.count),
            "BENCH_WORKERS": str(self.workers),
            "BENCH_PHASE": f"Phase{next(self._phases)}",
        }
        if name == TUNED:
            job_environment["BENCH_TUNED"] = "yes"
        return Worker([*_COMMANDS[name], job], self._environment | job_environment)

    def start_ready(self, name: str, job: str) -> Worker:
        """The same for a job with a second part, which begins now: every object was reconciled once."""
        worker = self.start(name, job)
        worker.next_line()
        return worker

    def runner(self, name: str, job: str) -> Callable[[], Run]:
        """What runs one runtime's job to its end."""

        def run() -> Run:
            with self.start(name, job) as worker:
                return worker.finish()

        return run

    def load(self, rate: float, seconds: float, *, churn: bool = False) -> Run:
        """Updates the widgets in turns, so many a second."""
        job = ["-m", "runtimes.load", str(self.count), str(rate), str(seconds)]
        return run_worker(job, self._environment | ({"BENCH_CHURN": "yes"} if churn else {}))

    def list_all(self, way: str) -> Run:
        """Lists the widgets with our client in one of the ways of runtimes/lists.py."""
        return run_worker(["-m", "runtimes.lists", way], self._environment)

    def calls(self) -> float:
        """How many requests about widgets the API server has answered so far."""
        found = self.cluster.get("/metrics")
        if found is None:
            raise RuntimeError("expected the API server's metrics, got no answer")
        lines = [line for line in found.decode().splitlines() if line.startswith("apiserver_request_total{")]
        return sum(float(line.split()[-1]) for line in lines if f'group="{GROUP}"' in line)

    @property
    def _environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.cluster.kubeconfig), "PYTHONPATH": str(HERE)}
