"""Fresh servers in one process, one after the other, as tests have them: `python -m serving.fresh ROUNDS`.

Each is measured up to its first answer; the first one from the start of the process, with all that is imported.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time

from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.k8s.core.v1 import Namespace
from reporting import report_run


async def main(rounds: int) -> None:
    await _answered()
    first = time.time_ns() - int(os.environ["BENCH_BEGAN"])
    later = []
    for _ in range(rounds):
        began = time.perf_counter()
        await _answered()
        later.append(time.perf_counter() - began)
    report_run(statistics.median(later), rounds, first=first / 1e9, slowest=max(later))


async def _answered() -> None:
    async with EmbeddedCluster() as cluster:
        await cluster.client().get(Namespace, "default")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
