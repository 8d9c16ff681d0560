"""The client beside every other Python client, on one real API server."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

import rig
from measuring import Report, Row, Run, console, in_turns, least, row, run_worker
from navarch import connect, load
from widgets import prepare

HERE = Path(__file__).parent
WIDGETS = 10_000
ROUNDS = 4
APPLY_ROUNDS = 5
PEERS = {
    "kubernetes": "peers.official",
    "kubernetes_asyncio": "peers.official_asyncio",
    "lightkube": "peers.lightkube_peer",
    "kr8s": "peers.kr8s_peer",
}


def main() -> None:
    """Starts a cluster, fills it, measures, reports."""
    report = Report("client")
    with rig.running() as cluster:
        size = asyncio.run(_fill(cluster))
        console.print(f"{WIDGETS} widgets of {size:.0f} bytes each")
        _lists(report, cluster, size)
        _applies(report, cluster)
    _imports(report)
    report.publish()


async def _fill(cluster: rig.Cluster) -> float:
    async with connect(load(cluster.kubeconfig)) as client:
        with console.status(f"creating {WIDGETS} widgets"):
            return await prepare(client, WIDGETS)


def _worker(cluster: rig.Cluster, module: str, *job: str) -> Callable[[], Run]:
    numbers = itertools.count(hash(module) % 1000)

    def work() -> Run:
        environment = {
            "KUBECONFIG": str(cluster.kubeconfig),
            "PYTHONPATH": str(HERE),
            "BENCH_REPLICAS": str(next(numbers)),
        }
        return run_worker(["-m", module, *job], environment)

    return work


def _lists(report: Report, cluster: rig.Cluster, size: float) -> None:
    """Once as it comes, objects being decoded when they are looked at, and once with every object looked at."""
    claim = f"list {WIDGETS:,} custom resources of {size / 1000:.1f} KB"
    runs = _list_runs(cluster, "list", claim)
    wall = {name: least(runs[name], "wall") for name in (*PEERS, "download")}
    report.rows += _process_rows(claim, runs, cpu=0.7, memory=0.5)
    report.rows.append(row(f"{claim}: wall time", "s", least(runs["ours"], "wall"), wall, 1.2, beside="download"))
    every = _list_runs(cluster, "read", claim)
    report.rows += _process_rows(f"{claim} and read a field of each", every, cpu=0.7, memory=0.5)


def _list_runs(cluster: rig.Cluster, job: str, claim: str) -> dict[str, list[Run]]:
    workers = {name: _worker(cluster, module, job) for name, module in PEERS.items()}
    workers |= {"ours": _worker(cluster, "peers.ours", job), "download": _worker(cluster, "peers.download")}
    runs = in_turns(workers, ROUNDS, f"{claim} ({job})")
    assert all(run.count == WIDGETS for name in ("ours", *PEERS) for run in runs[name])
    return runs


def _process_rows(claim: str, runs: dict[str, list[Run]], *, cpu: float, memory: float) -> list[Row]:
    seconds = {name: least(runs[name], "cpu") for name in PEERS}
    peaks = {name: least(runs[name], "peak_mb") for name in PEERS}
    return [
        row(f"{claim}: CPU of the whole process", "s", least(runs["ours"], "cpu"), seconds, cpu),
        row(f"{claim}: peak memory", "MB", least(runs["ours"], "peak_mb"), peaks, memory),
    ]


def _applies(report: Report, cluster: rig.Cluster) -> None:
    workers = {name: _worker(cluster, module, "apply") for name, module in PEERS.items()}
    workers["ours"] = _worker(cluster, "peers.ours", "apply")
    runs = in_turns(workers, APPLY_ROUNDS, "2,000 server-side applies, 32 at a time")
    peers = {name: least(runs[name], "wall") for name in PEERS}
    report.rows.append(
        row("2,000 server-side applies, 32 at a time: wall time", "s", least(runs["ours"], "wall"), peers, 1.0)
    )


_IMPORT = """
import time
began = time.perf_counter()
{}
took = time.perf_counter() - began
import reporting
reporting.report_run(took)
"""


def _imports(report: Report) -> None:
    """All names of navarch, which are imported as they are asked for. Also with the HTTP transport, which is imported when
    a client connects: every operator pays for it in the end.
    """
    everything = "from navarch import *"
    imports = {
        "import navarch": everything,
        "import navarch and connect over HTTP": f"{everything}\nimport navarch.client.http",
    }
    base = "aiohttp, msgspec"
    workers = {name: _import_worker(lines) for name, lines in (imports | {base: f"import {base}"}).items()}
    runs = in_turns(workers, 4 * ROUNDS, "imports")
    for claim in imports:
        for what, unit, name in (("wall", "s", "time"), ("peak_mb", "MB", "memory")):
            peers = {base: least(runs[base], what)}
            report.rows.append(row(f"{claim}: {name}", unit, least(runs[claim], what), peers, 1.5))


def _import_worker(lines: str) -> Callable[[], Run]:
    return lambda: run_worker(["-c", _IMPORT.format(lines)], {"PYTHONPATH": str(HERE)})


if __name__ == "__main__":
    main()
