"""The runtime beside kopf and controller-runtime: the same controller of 10,000 Widgets, on one real API server.

Every figure is of a whole process from its start to the end of its job. Metrics and health servers are off in all three,
and so is election and our check of permissions. controller-runtime has its default cache (streamed lists), reconciles
only new generations and writes by `Status().Update`, which is its fastest way; where memory counts it also runs with a
transform that drops managed fields, as our cache always does. kopf streams its list, runs on uvloop, posts no
events, scans nothing, and handles `on.event`, so that it writes nothing of its own to objects; its 32 workers let go of
an object at once, which halves its memory and saves time. The others have 32 workers too where they write or follow; where
they do nothing they have four, which suits both best.

Cold starts are measured twice: right after the objects were written, and at rest. A server at rest has compacted etcd and
dropped the snapshots from which it served pages: a second page comes from etcd and takes several times as long. kube-apiserver
compacts every five minutes; here every 20 s.

About twenty minutes; `BENCH_PARTS=start,rest` runs some of the parts start, write, follow and rest. 100,000 objects are measured by bench_scale.py, ten minutes of load by bench_soak.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import rig
from contestants import CONTROLLER_RUNTIME, OURS, PEERS, TUNED, Field, prepare
from filling import Stock
from measuring import Report, Row, Run, console, in_turns, least, row

COUNT = 10_000
ROUNDS = 3
NOTES = (120, 1000)
"""Bytes of filling in each widget, which make it 1.7 KB and 2.6 KB."""
RATE, SECONDS, FOLLOW_ROUNDS = 500.0, 60.0, 2
_LAST_EVENTS_SECONDS = 2.0
_COMPACTING = ("--etcd-compaction-interval=20s",)

Runs = Mapping[str, list[Run]]


def main() -> None:
    """Measures each part on a cluster of its own, and reports."""
    prepare()
    report = Report("runtime")
    chosen = os.environ.get("BENCH_PARTS") or ",".join(_PARTS)
    for name in chosen.split(","):
        measure, flags = _PARTS[name]
        with rig.running(apiserver_flags=flags) as cluster:
            report.rows += measure(cluster, Stock(cluster))
    report.publish(in_part=len(chosen.split(",")) < len(_PARTS))


def _start(cluster: rig.Cluster, stock: Stock) -> list[Row]:
    sizes = (stock.fill(COUNT, note_bytes) for note_bytes in NOTES)
    return [row for size in sizes for row in _noops(Field(cluster, COUNT, workers=4), size)]


def _write(cluster: rig.Cluster, stock: Stock) -> list[Row]:
    stock.fill(COUNT)
    return _writes(Field(cluster, COUNT))


def _follow_updates(cluster: rig.Cluster, stock: Stock) -> list[Row]:
    stock.fill(COUNT)
    return _latencies(Field(cluster, COUNT), stock)


def _rest(cluster: rig.Cluster, stock: Stock) -> list[Row]:
    size = stock.fill(COUNT, NOTES[-1])
    stock.rest()
    return [*_noops(Field(cluster, COUNT, workers=4), size, at_rest=True), *_lists(Field(cluster, COUNT), size)]


_PARTS: Mapping[str, tuple[Callable[[rig.Cluster, Stock], list[Row]], tuple[str, ...]]] = {
    "start": (_start, ()),
    "write": (_write, ()),
    "follow": (_follow_updates, ()),
    "rest": (_rest, _COMPACTING),
}


def _noops(field: Field, size: float, *, at_rest: bool = False) -> list[Row]:
    claim = f"reconcile {COUNT:,} custom resources of {size / 1000:.1f} KB once, doing nothing"
    claim += ", at rest" if at_rest else ""
    runs = in_turns({name: field.runner(name, "noop") for name in (OURS, TUNED, *PEERS)}, ROUNDS, claim)
    return [
        _row(f"{claim}: time", "s", runs, "wall", 1.0 if at_rest else 0.7),
        _row(f"{claim}: peak memory", "MB", runs, "peak_mb", 0.7),
        _row(f"{claim}: peak memory", "MB", runs, "peak_mb", None, beside=TUNED),
        _row(f"{claim}: CPU", "s", runs, "cpu", None),
    ]


def _writes(field: Field) -> list[Row]:
    claim = f"write {COUNT:,} statuses, 32 workers"
    workers = {name: _counting_calls(field, field.runner(name, "write")) for name in (OURS, TUNED, *PEERS)}
    runs = in_turns(workers, ROUNDS, claim)
    return [
        _row(f"{claim}: time", "s", runs, "wall", 1.0),
        _row(f"{claim}: peak memory", "MB", runs, "peak_mb", 0.7),
        _row(f"{claim}: peak memory", "MB", runs, "peak_mb", None, beside=TUNED),
        _row(f"{claim}: CPU", "s", runs, "cpu", None),
        _row(f"{claim}: API calls per object", "calls", runs, "calls", None),
    ]


def _counting_calls(field: Field, work: Callable[[], Run]) -> Callable[[], Run]:
    def run() -> Run:
        before = field.calls()
        found = work()
        return replace(found, more={**found.more, "calls": (field.calls() - before) / field.count})

    return run


def _latencies(field: Field, stock: Stock) -> list[Row]:
    """From the moment at which an update is stored: the API server's part is in it, and is the same for all.

    Updates go straight to etcd, as objects did when they were made: written through the API server, 500 a second would be
    more than it can do on a small machine, and its queue all that is measured.
    """
    claim = f"{RATE:g} updates a second for {SECONDS:g} s: update stored to reconcile begun"
    follow = {name: partial(_follow, field, stock, name) for name in (OURS, *PEERS)}
    runs = in_turns(follow, FOLLOW_ROUNDS, claim)
    return [
        _row(f"{claim}, p50", "ms", runs, "p50", 1.5),
        _row(f"{claim}, p99", "ms", runs, "p99", 1.0),
        _row(f"{claim}: updates a second that were stored", "1/s", runs, "rate", None),
        _row(f"{claim}: CPU", "s", runs, "cpu", None),
    ]


def _follow(field: Field, stock: Stock, name: str) -> Run:
    with field.start_ready(name, "follow") as worker:
        updates = stock.update(COUNT, RATE, SECONDS)
        time.sleep(_LAST_EVENTS_SECONDS)
        found = worker.finish()
    seen = found.more.get("updates", 0)
    console.print(f"{name}: {seen:.0f} of {updates} updates reconciled")
    return replace(found, more={**found.more, "rate": updates / SECONDS})


def _lists(field: Field, size: float) -> list[Row]:
    """How the cache gets its objects: in one answer, which is split as it arrives."""
    claim = f"initial list of {COUNT:,} custom resources of {size / 1000:.1f} KB, at rest"
    names = {"whole": OURS, "stream": "stream", "pages": "pages"}
    runs = in_turns({name: partial(field.list_all, way) for way, name in names.items()}, ROUNDS, claim)
    return [
        _row(f"{claim}: time", "s", runs, "wall", None, beside="stream"),
        _row(f"{claim}: peak memory", "MB", runs, "peak_mb", None, beside="stream"),
    ]


def _row(claim: str, unit: str, runs: Runs, what: str, limit: float | None, *, beside: str = CONTROLLER_RUNTIME) -> Row:
    peers = {name: least(found, what) for name, found in runs.items() if name != OURS}
    return row(claim, unit, least(runs[OURS], what), peers, limit, beside=beside)


if __name__ == "__main__":
    main()
