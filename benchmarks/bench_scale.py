"""100,000 objects: memory grows with their number and no faster, and its peak is near what is kept. About six minutes."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import rig
from contestants import CONTROLLER_RUNTIME, OURS, PEERS, Field, prepare
from filling import Stock
from measuring import Report, Row, Run, console, in_turns, least, row

STEPS = (10_000, 50_000)
COUNT = 100_000
ROUNDS = 2
_SETTLING_SECONDS = 5.0


def main() -> None:
    """Fills a cluster step by step, measures, reports."""
    prepare()
    report = Report("scale")
    with rig.running() as cluster:
        stock = Stock(cluster)
        steps = []
        for count in STEPS:
            stock.fill(count)
            with console.status(f"ours: {count:,} objects"):
                steps.append(_hold(Field(cluster, count, workers=4), OURS))
        size = stock.fill(COUNT)
        runs = _all(Field(cluster, COUNT, workers=4))
    report.rows += [*_growth(steps, runs[OURS], size), *_background(runs)]
    report.publish()


def _all(field: Field) -> dict[str, list[Run]]:
    workers = {name: partial(_hold, field, name) for name in (OURS, *PEERS)}
    return in_turns(workers, ROUNDS, f"{field.count:,} objects")


def _hold(field: Field, name: str) -> Run:
    """Lets every object be reconciled once, and notes how much memory is in use some seconds later."""
    with field.start_ready(name, "follow") as worker:
        time.sleep(_SETTLING_SECONDS)
        steady, _ = worker.memory()
        found = worker.finish()
    return replace(found, more={**found.more, "steady": steady})


def _growth(steps: list[Run], ours: list[Run], size: float) -> list[Row]:
    few, some = steps
    many = min(ours, key=lambda run: run.more["steady"])
    claim = f"{many.count:,} objects of {size / 1000:.1f} KB"
    first = {f"{few.count:,} to {some.count:,}": _bytes_each(few, some)}
    kept = {"what is kept": many.more["steady"]}
    return [
        row(f"{claim}: memory for each from {some.count:,} on", "bytes", _bytes_each(some, many), first, 1.1),
        row(f"{claim}: peak memory beside what is kept", "MB", many.peak_mb, kept, 1.3),
    ]


def _bytes_each(fewer: Run, more: Run) -> float:
    """What each object costs that one run has and the other has not."""
    return (more.more["steady"] - fewer.more["steady"]) * 2**20 / (more.count - fewer.count)


def _background(runs: dict[str, list[Run]]) -> list[Row]:
    claim = f"reconcile {COUNT:,} custom resources once, doing nothing"
    return [
        row(
            f"{claim}: {title}",
            unit,
            least(runs[OURS], what),
            {name: least(runs[name], what) for name in PEERS},
            None,
            beside=CONTROLLER_RUNTIME,
        )
        for title, unit, what in (("time", "s", "wall"), ("CPU", "s", "cpu"), ("peak memory", "MB", "peak_mb"))
    ]


if __name__ == "__main__":
    main()
