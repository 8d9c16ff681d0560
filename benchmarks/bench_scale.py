"""100,000 objects: memory grows with their number and no faster, and its peak is near what is kept. About six minutes."""

from __future__ import annotations

import time
from dataclasses import dataclass

import rig
from contestants import CONTROLLER_RUNTIME, OURS, PEERS, Field, prepare
from filling import Stock
from measuring import Report, Row, console, row

STEPS = (10_000, 50_000, 100_000)
_SETTLING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Held:
    """Seconds until every object was reconciled once; resident memory some seconds later, and its peak, in MB."""

    count: int
    wall: float
    steady: float
    peak: float

    def per_object(self, fewer: Held) -> float:
        """Bytes that each object costs beyond those of `fewer`."""
        return (self.steady - fewer.steady) * 2**20 / (self.count - fewer.count)


def main() -> None:
    """Fills a cluster step by step, measures, reports."""
    prepare()
    report = Report("scale")
    with rig.running() as cluster:
        stock = Stock(cluster)
        ours = []
        for count in STEPS:
            size = stock.fill(count)
            ours.append(_hold(Field(cluster, count, workers=4), OURS))
        peers = {name: _hold(Field(cluster, STEPS[-1], workers=4), name) for name in PEERS}
    report.rows += [*_growth(ours, size), *_beside(ours[-1], peers)]
    report.publish()


def _hold(field: Field, name: str) -> Held:
    with console.status(f"{name}: {field.count:,} objects"), field.start_ready(name, "follow") as worker:
        time.sleep(_SETTLING_SECONDS)
        steady, peak = worker.memory()
        return Held(field.count, worker.finish().wall, steady, peak)


def _growth(ours: list[Held], size: float) -> list[Row]:
    few, some, many = ours
    claim = f"{many.count:,} objects of {size / 1000:.1f} KB"
    first = {f"{few.count:,} to {some.count:,}": some.per_object(few)}
    return [
        row(f"{claim}: memory for each from {some.count:,} on", "bytes", many.per_object(some), first, 1.1),
        row(f"{claim}: peak memory beside what is kept", "MB", many.peak, {"what is kept": many.steady}, 1.3),
    ]


def _beside(ours: Held, peers: dict[str, Held]) -> list[Row]:
    claim = f"reconcile {ours.count:,} custom resources once, doing nothing"
    walls = {name: held.wall for name, held in peers.items()}
    peaks = {name: held.peak for name, held in peers.items()}
    return [
        row(f"{claim}: time", "s", ours.wall, walls, None, beside=CONTROLLER_RUNTIME),
        row(f"{claim}: peak memory", "MB", ours.peak, peaks, None, beside=CONTROLLER_RUNTIME),
    ]


if __name__ == "__main__":
    main()
