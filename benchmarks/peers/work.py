"""The job that every peer does, and how it reports."""

import os
import time

from reporting import report_run

APPLIES = 2000
AT_A_TIME = 32
MANAGER = "bench"


def replicas() -> int:
    """Another number in each run, so that every apply is a real write."""
    return int(os.environ["BENCH_REPLICAS"])


def report(began: float, count: int) -> None:
    """How long the job took, and how many objects it was about."""
    report_run(time.perf_counter() - began, count)
