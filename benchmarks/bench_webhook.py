"""Admission webhooks beside controller-runtime's and kopf's: the same two functions, the same reviews, TLS.

Every server is a process of its own with a certificate in files. A program in Go sends the same reviews to each through 16
connections that are kept alive: two validations and a mutation in turns, every second of them an update, which holds the
object twice. All are sent over HTTP/1.1, which all three serve; kube-apiserver would speak HTTP/2 with a Go server that
offers it. Objects are as the API server stored them, managed fields and all.

Ours is an operator on uvloop, which it uses where it is installed; so does kopf here. An API server idles beside them,
because kopf looks up its kinds there.

Conversions are measured through a fresh API server each, which sends stored objects to the webhook one by one when it is first
asked for the new version; and without one, with all objects in a single review.

A migration is killed again and again, and the objects afterwards are compared with those before.

A CA that lives for a minute rotates twice while requests go to the real API server, which calls two replicas of ours behind a
balancer of connections; every tenth request has to be denied.

About twelve minutes; `BENCH_SECONDS=3` for a short load, `BENCH_ROUNDS=1` for one round, `BENCH_PARTS=admission` for one of
the parts admission, conversion, migration and rotation.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import rig
from contestants import CONTROLLER_RUNTIME, KOPF, OURS, PEERS, prepare
from filling import Stock
from measuring import Report, Row, Run, console, in_turns, least, row, row_at_least, within
from webhooks.conversions import measure_conversion
from webhooks.migrations import measure_migration
from webhooks.rotations import measure_rotation
from webhooks.servers import Hall
from widgets import GROUP, NAMESPACE, PLURAL, VERSION

VALIDATIONS, MUTATIONS = 1000, 500
SECONDS = float(os.environ.get("BENCH_SECONDS", "30"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "2"))
_WARM_SECONDS, _FULL_SECONDS = 2.0, SECONDS / 3
_NOTE_BYTES = 1000
COUNT = 5000
MIGRATED, KILLS = 10_000, 5
REQUESTS, ROTATIONS, CA_SECONDS = 500, 2, 60.0
ENOUGH = 0.95 * REQUESTS
_WIDGET = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}/widget-00000"

Runs = Mapping[str, list[Run]]


def main() -> None:
    """Measures the parts that are chosen, and reports after each."""
    report = Report("webhook")
    chosen = (os.environ.get("BENCH_PARTS") or ",".join(_PARTS)).split(",")
    if {*chosen} - _WITHOUT_PEERS:
        prepare()
    for name in chosen:
        report.rows += _PARTS[name]()
        report.publish(in_part=True)


def _admission() -> list[Row]:
    with rig.running() as cluster, tempfile.TemporaryDirectory() as folder:
        widget, size = _widget(cluster)
        hall = Hall(Path(folder), cluster.kubeconfig, widget)
        claim = f"{VALIDATIONS:,} validations and {MUTATIONS} mutations a second for {SECONDS:g} s, {size / 1000:.1f} KB, TLS"
        runs = in_turns({name: partial(_measure, hall, name) for name in (OURS, *PEERS)}, ROUNDS, claim)
    highest = {name: max(run.figure("highest") for run in found) for name, found in runs.items()}
    mixed = "reviews a second that are answered, two validations to a mutation, 16 at a time"
    return [
        _row(f"{claim}: CPU for each review", "us", runs, "each", 1.5),
        _row(f"{claim}: p99", "ms", runs, "p99", 2.0),
        _row(f"{claim}: p50", "ms", runs, "p50", None),
        _row(f"{claim}: peak memory", "MB", runs, "peak_mb", 1.5),
        row_at_least(mixed, "1/s", highest.pop(OURS), highest, 4.0, beside=KOPF),
    ]


def _conversion() -> list[Row]:
    """Compares with controller-runtime alone: kopf has no conversions."""
    claim = f"list {COUNT:,} objects that are stored in an old version, through the real API server"
    workers = {name: partial(measure_conversion, name, COUNT, _NOTE_BYTES) for name in (OURS, CONTROLLER_RUNTIME)}
    runs = in_turns(workers, ROUNDS, claim)
    for name, found in runs.items():
        console.print(f"{name}: {[{**run.more, 'cpu': run.cpu, 'peak_mb': run.peak_mb} for run in found]}")
    size = runs[OURS][0].figure("size")
    peers = {CONTROLLER_RUNTIME: least(runs[CONTROLLER_RUNTIME], "review")}
    return [
        _row(f"{claim}: time", "s", runs, "list", 1.5),
        _row(f"{claim}: CPU of the webhook", "s", runs, "cpu", None),
        within(
            f"convert {COUNT:,} objects in one review of {size:.0f} MB", "s", least(runs[OURS], "review"), 1.0, peers
        ),
    ]


def _migration() -> list[Row]:
    """Counts what is lost: there is no peer, and the target is nothing."""
    changed, took = measure_migration(MIGRATED, _NOTE_BYTES, KILLS)
    console.print(f"the last run took {took:.1f} s")
    claim = f"migrate {MIGRATED:,} objects to a new stored version, killed {KILLS} times: fields changed"
    return [
        Row(
            claim=claim,
            unit="fields",
            ours=changed,
            peers={},
            ratio=changed,
            target="at most 0 fields",
            met=changed == 0,
        )
    ]


def _rotation() -> list[Row]:
    """Counts what is refused or lost: there is no peer that rotates its CA, and the target is nothing."""
    found = measure_rotation(REQUESTS, ROTATIONS, CA_SECONDS)
    claim = f"the CA of two replicas rotates {ROTATIONS} times under requests to the real API server"
    return [
        Row(
            claim=f"{claim}: refused or lost",
            unit="requests",
            ours=found.wrong,
            peers={},
            ratio=found.wrong,
            target="at most 0 requests",
            met=found.wrong == 0,
        ),
        Row(
            claim=f"{claim}: answered of {REQUESTS} a second",
            unit="1/s",
            ours=round(found.rate, 1),
            peers={},
            ratio=round(found.rate / REQUESTS, 3),
            target=f"at least {ENOUGH:g} 1/s",
            met=found.rate >= ENOUGH,
        ),
    ]


_PARTS = {"admission": _admission, "conversion": _conversion, "migration": _migration, "rotation": _rotation}
_WITHOUT_PEERS = {"migration", "rotation"}


def _widget(cluster: rig.Cluster) -> tuple[dict[str, Any], float]:
    size = Stock(cluster).fill(1, _NOTE_BYTES)
    return json.loads(cluster.get(_WIDGET) or b"{}"), size


def _measure(hall: Hall, name: str) -> Run:
    """Returns what the load took, and with it the highest rate, which is found afterwards."""
    with hall.serving(name) as server:
        server.load(_WARM_SECONDS, VALIDATIONS + MUTATIONS)
        found = server.load(SECONDS, VALIDATIONS + MUTATIONS)
        full = server.load(_FULL_SECONDS)
    console.print(
        f"{name}: {found.more['rate']:.0f}/s, {found.more['each']:.0f} us each, p50 {found.more['p50']:.2f} ms, "
        f"p99 {found.more['p99']:.2f} ms, {found.peak_mb:.1f} MB; at most {full.more['rate']:.0f}/s, {full.more['each']:.0f} us each "
        f"(load: {found.more['load_cpu']:.1f} s of {found.wall:.1f} s)"
    )
    return Run(found.wall, found.cpu, found.peak_mb, found.count, {**found.more, "highest": full.more["rate"]})


def _row(claim: str, unit: str, runs: Runs, what: str, limit: float | None) -> Row:
    peers = {name: least(found, what) for name, found in runs.items() if name != OURS}
    return row(claim, unit, least(runs[OURS], what), peers, limit, beside=CONTROLLER_RUNTIME)


if __name__ == "__main__":
    main()
