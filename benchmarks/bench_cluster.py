"""The embedded cluster: how fast it starts, what it needs, and how fast pods become ready in it.

Pods of simulated nodes are data: what is measured with them is everything else, the API server, the controllers and the
scheduler. The peers are kube-controller-manager and kube-scheduler on kube-apiserver, with their clients' limits raised out
of the way; the simulated nodes are ours on both sides, in a process of their own. Pods of process nodes are real.

About ten minutes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import rig
from fleets.up import first_pod, idle, rolled_over
from measuring import Report, Row, Run, Worker, in_turns, least, row, within
from rig.process import Daemon
from servers import OURS, REAL, Server, Servers

HERE = Path(__file__).parent
COUNTS, NODES = (1_250, 2_500, 5_000), 100
REPLICAS = 1_000
ROUNDS = 3
CREATED, READY, PLANE = "created", "ready", "kube-controller-manager + kube-scheduler"
_RAISED = ("--kube-api-qps=100000", "--kube-api-burst=100000")
_FOLLOWERS = ("kube-controller-manager", "kube-scheduler")


def main() -> None:
    """Starts clusters of both sorts in turns, measures, reports."""
    report = Report("cluster")
    report.rows += _ups()
    with rig.running(scheduler=True) as cluster:
        servers = Servers(cluster)
        servers.stop()
        report.rows += _pods(servers)
        report.rows += _deployments(servers)
    report.publish()


def _ups() -> list[Row]:
    """Clusters as `navarch cluster up` makes them."""
    begun = in_turns({"up": first_pod, "idle": partial(idle, 3)}, ROUNDS, "navarch cluster up")
    rolled = rolled_over(20)
    failed = {
        "connections": float(rolled.count),
        "s it took": rolled.wall,
        "s the slowest took": rolled.figure("slowest"),
    }
    below = {"changes seen": rolled.figure("changes")}
    claim = "a Deployment of 20 process pods rolls over"
    return [
        within(
            "`navarch cluster up` with one process node, to a first Running pod", "s", least(begun["up"], "wall"), 2, {}
        ),
        within("idle memory of a cluster with three process nodes", "MB", least(begun["idle"], "peak_mb"), 120, {}),
        row(
            f"{claim}: connections that failed, one every 10 ms",
            "",
            rolled.figure("failed"),
            failed,
            0.0,
            beside="connections",
        ),
        row(f"{claim}: moments below its availability", "", rolled.figure("below"), below, 0.0, beside="changes seen"),
    ]


# Pods one by one


def _pods(servers: Servers) -> list[Row]:
    claim = f"{COUNTS[-1]:,} pods on {NODES} simulated nodes"
    jobs = {CREATED: partial(_created, servers), **{f"{count:,}": partial(_ready, count) for count in COUNTS}}
    runs = in_turns(jobs, ROUNDS, claim)
    all_ready, alone = least(runs[f"{COUNTS[-1]:,}"], "wall"), least(runs[CREATED], "wall")
    each = {f"of {count:,}": least(runs[f"{count:,}"], "wall") / count * 1000 for count in COUNTS}
    last = each.pop(f"of {COUNTS[-1]:,}")
    return [
        row(
            f"{claim}: from the first request until all are Ready", "s", all_ready, {"to create them alone": alone}, 5.0
        ),
        row(f"{claim}: time for each", "ms", last, each, 1.2, beside=f"of {COUNTS[0]:,}"),
    ]


def _created(servers: Servers) -> Run:
    """What the server alone needs to take as many pods: nobody else is there."""
    with servers.running(OURS) as server:
        return server.run("fleets.pods", str(COUNTS[-1]))


def _ready(count: int) -> Run:
    with _embedded(NODES) as server:
        found = server.run("fleets.pods", str(count), READY)
    assert found.count == count, f"expected {count} pods to be ready, got {found.count}"
    return found


# Pods of a Deployment


def _deployments(servers: Servers) -> list[Row]:
    claim = f"a Deployment of {REPLICAS:,} pods on {NODES} simulated nodes becomes available"
    jobs = {OURS: partial(_deployed_here), PLANE: partial(_deployed_there, servers)}
    runs = in_turns(jobs, ROUNDS, claim)
    return [
        _beside(f"{claim}: time", runs, "wall", 2.0),
        _beside(f"{claim}: CPU of all but the nodes", runs, "cpu", None),
    ]


def _beside(claim: str, runs: Mapping[str, list[Run]], what: str, limit: float | None) -> Row:
    return row(claim, "s", least(runs[OURS], what), {PLANE: least(runs[PLANE], what)}, limit)


def _deployed_here() -> Run:
    with _embedded(0) as server:
        return _deployed(server)


def _deployed_there(servers: Servers) -> Run:
    with servers.running(REAL) as server, ExitStack() as stack:
        daemons = [_raised(servers.cluster.daemons[name]) for name in _FOLLOWERS]
        for daemon in daemons:
            stack.callback(daemon.stop)
            daemon.start()
        return _deployed(Server(server.kubeconfig, (*server.pids, *(daemon.process.pid for daemon in daemons))))


def _raised(daemon: Daemon) -> Daemon:
    return Daemon(daemon.name, [*daemon.command, *_RAISED], daemon.log)


def _deployed(server: Server) -> Run:
    with server.start("fleets.nodes", str(NODES)) as nodes:
        found = server.run("fleets.deployment", str(REPLICAS))
        nodes.finish()
    return found


@contextmanager
def _embedded(simulated: int) -> Iterator[Server]:
    """A cluster with controllers, in memory."""
    with tempfile.TemporaryDirectory(prefix="navarch-bench-") as folder:
        command, began = [sys.executable, "-m", "fleets.embedded", folder, str(simulated)], time.monotonic()
        with Worker(command, {"PYTHONPATH": str(HERE)}) as worker:
            worker.next_line()
            yield Server(Path(folder, "kubeconfig"), (worker.pid,), time.monotonic() - began)


if __name__ == "__main__":
    main()
