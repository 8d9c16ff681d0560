"""Ten minutes of load: memory does not grow.

5,000 objects, 200 updates a second; each update is reconciled and its status written, and every tenth object is deleted
and made anew instead. After a minute of warming up, resident memory is read every ten seconds; a straight line through
those figures must not rise.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import rig
from contestants import OURS, Field
from filling import Stock
from measuring import Report, Worker, console, row

COUNT = 5_000
RATE = 200.0
WARM_UP, MEASURED, EVERY = 60.0, 600.0, 10.0
_BARS = "▁▂▃▄▅▆▇█"


def main() -> None:
    """Loads a cluster for eleven minutes, measures, reports."""
    report = Report("soak")
    with rig.running() as cluster:
        Stock(cluster).fill(COUNT)
        sizes, updates = _soak(Field(cluster, COUNT))
    console.print(f"{min(sizes):.1f} MB {sparkline(sizes)} {max(sizes):.1f} MB")
    slope, begin = statistics.linear_regression(range(len(sizes)), sizes)
    end = begin + slope * (len(sizes) - 1)
    claim = f"{MEASURED / 60:g} minutes under load, {updates:,} updates and status writes: memory at the end"
    report.rows.append(row(claim, "MB", end, {"after warming up": begin}, 1.03))
    report.publish()


def _soak(field: Field) -> tuple[list[float], int]:
    """The sizes in MB, and how many updates were reconciled meanwhile."""
    with field.start_ready(OURS, "soak") as worker, ThreadPoolExecutor(1) as pool:
        load = pool.submit(field.load, RATE, WARM_UP + MEASURED, churn=True)
        sizes = _watch_memory(worker)
        console.print(f"{load.result().figure('rate'):.0f} updates a second")
        return sizes, int(worker.finish().more["updates"])


def _watch_memory(worker: Worker) -> list[float]:
    sizes = []
    with console.status("soaking") as status:
        time.sleep(WARM_UP)
        for number in range(int(MEASURED / EVERY)):
            time.sleep(EVERY)
            sizes.append(worker.memory()[0])
            status.update(f"soaking: {(number + 1) * EVERY:.0f} of {MEASURED:.0f} s, {sizes[-1]:.1f} MB")
    return sizes


def sparkline(figures: list[float]) -> str:
    """One bar per figure."""
    low, span = min(figures), max(max(figures) - min(figures), 1e-9)
    return "".join(_BARS[int((figure - low) / span * (len(_BARS) - 1))] for figure in figures)


if __name__ == "__main__":
    main()
