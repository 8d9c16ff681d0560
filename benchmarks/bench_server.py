"""The embedded API server beside the real one: kube-apiserver with etcd, as the rig starts them.

Every server is started afresh for each round, empty, and has the machine to itself but for the worker that asks it; the
worker is the same for all, and shows a client certificate to all. "ours" is the server alone, with its objects in memory; in
etcd, and as `navarch cluster up` starts it, in a folder and with controllers, it is measured for the reader. The rig's etcd
does not wait for the disk, our folder does.

About a quarter of an hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import rig
from measuring import Report, Row, Run, in_turns, least, row, run_worker, within
from servers import OURS, OURS_IN_ETCD, OURS_IN_FILE, REAL, Servers

HERE = Path(__file__).parent
STARTS, IDLE_SECONDS = 5, 10.0
FRESH = 20
COUNT, FILLS, LISTS = 10_000, 3, 2
WAYS = {
    "pages": "list them in pages",
    "whole": "list them in one answer",
    "stream": "stream them (`sendInitialEvents`)",
}
WATCHERS, RATE, SECONDS, WATCHED = 100, 100.0, 60.0, 1_000
_LAST_EVENTS_SECONDS = 2.0

Runs = Mapping[str, list[Run]]


def main() -> None:
    """Starts servers of both sorts in turns, measures, reports."""
    report = Report("server")
    with rig.running() as cluster:
        servers = Servers(cluster)
        servers.stop()
        report.rows += _starts(servers)
        report.rows += _fresh()
        report.rows += _loads(servers)
        report.rows += _watches(servers)
    report.publish()


def _starts(servers: Servers) -> list[Row]:
    claim = "from nothing to the first answer"
    runs = in_turns({name: partial(_start, servers, name) for name in (OURS, OURS_IN_FILE, REAL)}, STARTS, claim)
    return [
        _row(f"{claim}, with `navarch cluster up`", "s", runs, "wall", 0.2, ours=OURS_IN_FILE),
        _row("idle memory of the server", "MB", runs, "peak_mb", 0.33),
    ]


def _start(servers: Servers, name: str) -> Run:
    """How long it took to be there, and its memory when nobody has asked it for anything for a while."""
    with servers.running(name) as server:
        time.sleep(IDLE_SECONDS)
        return Run(server.started_in, server.cpu(), server.memory(), 1)


def _fresh() -> list[Row]:
    runs = [run_worker(["-m", "serving.fresh", str(FRESH)], {"PYTHONPATH": str(HERE)}) for _ in range(STARTS)]
    first = {"the first, with all imports": least(runs, "first") * 1000, "the slowest": least(runs, "slowest") * 1000}
    claim = "a fresh server in the process of a test, after the first: time to its first answer"
    return [within(claim, "ms", least(runs, "wall") * 1000, 50, first)]


def _loads(servers: Servers) -> list[Row]:
    names = (OURS, REAL, OURS_IN_FILE, OURS_IN_ETCD)
    claim = f"create {COUNT:,} custom resources of 1.3 KB, 32 at a time"
    runs = in_turns({name: partial(_load, servers, name) for name in names}, FILLS, claim)
    return [
        _row(f"{claim}: time", "s", runs, "wall", 0.5),
        _row(f"{claim}: CPU of the server", "s", runs, "cpu", None),
        _row(f"{claim}: memory of the server afterwards", "MB", runs, "peak_mb", None),
        *(_row(f"{COUNT:,} custom resources: {title}", "s", runs, way, 1.0) for way, title in WAYS.items()),
    ]


def _load(servers: Servers, name: str) -> Run:
    """Creates everything, and then reads it in every way."""
    with servers.running(name) as server:
        made = server.run("serving.fill", str(COUNT))
        memory = server.memory()
        read = {way: least([_listed(server.run, way) for _ in range(LISTS)], "wall") for way in WAYS}
    return Run(made.wall, made.cpu, memory, made.count, read)


def _listed(run: Callable[..., Run], way: str) -> Run:
    found = run("runtimes.lists", way)
    assert found.count == COUNT, f"expected {COUNT} objects, got {found.count}"
    return found


def _watches(servers: Servers) -> list[Row]:
    """From the moment at which an update is sent until each watcher has it."""
    claim = f"{WATCHERS} watchers, {RATE:g} updates a second for {SECONDS:g} s"
    main_runs = in_turns({name: partial(_watch, servers, name) for name in (OURS, REAL)}, 2, claim)
    others = in_turns({name: partial(_watch, servers, name) for name in (OURS_IN_FILE, OURS_IN_ETCD)}, 1, claim)
    runs = {**main_runs, **others}
    sent = {"sent": max(run.figure("sent") for run in runs[OURS])}
    p99 = {name: least(found, "p99") for name, found in runs.items() if name != OURS}
    return [
        row(f"{claim}: events lost", "events", _most(runs[OURS], "lost"), sent | _lost(runs), 0.0, beside="sent"),
        within(f"{claim}: update sent to event there, p99", "ms", least(runs[OURS], "p99"), 100, p99),
        _row(f"{claim}: update sent to event there, p50", "ms", runs, "p50", None),
        _row(f"{claim}: CPU of the server", "s", runs, "cpu", None),
    ]


def _watch(servers: Servers, name: str) -> Run:
    with servers.running(name) as server:
        server.run("serving.fill", str(WATCHED))
        before = server.cpu()
        with server.start("serving.watchers", str(WATCHERS)) as worker:
            load = server.run("runtimes.load", str(WATCHED), str(RATE), str(SECONDS))
            time.sleep(_LAST_EVENTS_SECONDS)
            found = worker.finish()
        used = server.cpu() - before
    sent = load.count * WATCHERS
    return Run(found.wall, used, found.peak_mb, found.count, {**found.more, "sent": sent, "lost": sent - found.count})


def _lost(runs: Runs) -> dict[str, float]:
    return {name: _most(found, "lost") for name, found in runs.items() if name != OURS}


def _most(runs: Sequence[Run], what: str) -> float:
    return max(run.figure(what) for run in runs)


def _row(claim: str, unit: str, runs: Runs, what: str, limit: float | None, *, ours: str = OURS) -> Row:
    peers = {name: least(found, what) for name, found in runs.items() if name != ours}
    return row(claim, unit, least(runs[ours], what), peers, limit, beside=REAL)


if __name__ == "__main__":
    main()
