"""The job that every runtime does, and how it reports; main.go has its twin.

`noop` ends when every object was reconciled once, `write` when every object's status was written once. `follow` says
"ready" when every object was reconciled once, and from then on notes how long after its update, whose time is in the
object, each is reconciled; it ends when its input does. `soak` is the same with a status write each.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from reporting import report_run


class Job:
    """What the harness asked for; it ends the process when that is done."""

    def __init__(self) -> None:
        self.name = sys.argv[1]
        self.workers = int(os.environ["BENCH_WORKERS"])
        self.phase = os.environ["BENCH_PHASE"]
        """What a status is to say; another word in each run, so that every write is a real one."""
        self._count = int(os.environ["BENCH_COUNT"])
        self._began = int(os.environ["BENCH_BEGAN"])
        self._seen: set[str] = set()
        self._ready = 0
        self._updates = 0
        self._latencies: list[int] = []

    def reconciled(self, name: str, note: str) -> None:
        """Notes that an object is reconciled, now; the last object's first time ends the job, or begins its second part."""
        if self._ready:
            self._note_latency(note)
            return
        self._seen.add(name)
        if len(self._seen) == self._count:
            self._ready = time.time_ns()
            self._all_seen()

    def _note_latency(self, note: str) -> None:
        now = time.time_ns()
        if not note.isdecimal() or int(note) < self._ready:
            return
        self._updates += 1
        if self.name == "follow":  # a soak must not grow by what it notes
            self._latencies.append(now - int(note))

    def _all_seen(self) -> None:
        if self.name in ("noop", "write"):
            self._end()
        print('"ready"', flush=True)
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._end)

    def _end(self) -> None:
        found = sorted(self._latencies)
        more = {"p50": _percentile(found, 50), "p99": _percentile(found, 99)} if found else {}
        report_run((self._ready - self._began) / 1e9, len(self._seen), updates=self._updates, **more)
        sys.stdout.flush()
        os._exit(0)


def _percentile(found: list[int], percent: int) -> float:
    return found[(len(found) - 1) * percent // 100] / 1e6
