"""How benchmarks measure, compare and report.

A worker is a program of its own: it does one job with one library and reports. Its CPU seconds and peak memory are
those of the whole process, as the kernel counts them. Workers take turns, so that noise falls on all alike.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
console = Console()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a worker: seconds it measured itself, what its whole process used, and what else it found."""

    wall: float
    cpu: float
    peak_mb: float
    count: int
    more: Mapping[str, float] = field(default_factory=dict)

    def figure(self, what: str) -> float:
        """One figure by its name."""
        return float(self.more[what] if what in self.more else getattr(self, what))


class Worker:
    """A worker that runs. Used as a `with` block, at the end of which it is gone.

    It is told when it began, in nanoseconds since 1970, and killed if it does not end within `limit` seconds.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], limit: float = 900) -> None:
        self._command = command
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of the block
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={**os.environ, **environment, "BENCH_BEGAN": str(time.time_ns())},
            text=True,
        )
        self._alarm = threading.Timer(limit, self._process.kill)
        self._alarm.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._alarm.cancel()
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._complaints):
            assert stream is not None
            stream.close()

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def next_line(self) -> str:
        """What it says next; raises with its own words if it ends without."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._reap()
            raise self._failure("ended without a word")
        return line.strip()

    def memory(self) -> tuple[float, float]:
        """Its resident memory and the peak of that so far, in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        sizes = {line.split()[0]: int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("Vm")}
        return sizes["VmRSS:"], sizes["VmHWM:"]

    def finish(self) -> Run:
        """Lets it end, by closing its input, and returns what it found; raises with its own words if it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        output = self._process.stdout.read()
        usage = self._reap()
        if self._process.returncode:
            raise self._failure(f"ended with {self._process.returncode}")
        found = json.loads(output)
        cpu = usage.ru_utime + usage.ru_stime
        return Run(found.pop("wall"), cpu, found.pop("peak_mb"), found.pop("count"), found)

    def _reap(self) -> resource.struct_rusage:
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return usage

    def _failure(self, how: str) -> RuntimeError:
        self._complaints.seek(0)
        return RuntimeError(f"{' '.join(self._command)} {how}:\n{self._complaints.read().decode()[-2000:]}")


def run_worker(arguments: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Runs a worker in Python to its end; raises with its own words if it fails."""
    with Worker([sys.executable, *arguments], environment) as worker:
        return worker.finish()


def in_turns(workers: Mapping[str, Callable[[], Run]], rounds: int, title: str) -> dict[str, list[Run]]:
    """Every worker once per round, in turns; each round begins with another one."""
    runs: dict[str, list[Run]] = {name: [] for name in workers}
    names = list(workers)
    with console.status(title) as status:
        for number in range(rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                status.update(f"{title}: round {number + 1} of {rounds}, {name}")
                runs[name].append(workers[name]())
    return runs


def least(runs: Sequence[Run], what: str) -> float:
    """The least of one figure over the rounds: what else goes on on a machine only ever adds to it."""
    return float(min(run.figure(what) for run in runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One claim: ours beside the peers, and the ratio to the peer that the target names."""

    claim: str
    unit: str
    ours: float
    peers: dict[str, float]
    ratio: float
    target: str
    met: bool
    as_of: str = ""
    """The day and the commit of the measurement, if it is older than the rest of its file."""


def row(
    claim: str, unit: str, ours: float, peers: Mapping[str, float], limit: float | None, *, beside: str = ""
) -> Row:
    """A row whose ratio, ours divided by the best peer (or by the one named), must not exceed `limit`.

    Without a limit it has no target: it is measured for the reader.
    """
    best = beside or min(peers, key=lambda name: peers[name])
    ratio = ours / peers[best]
    rounded = {name: round(value, 3) for name, value in peers.items()}
    target = "" if limit is None else f"at most {limit:g} x {best}"
    return Row(
        claim=claim,
        unit=unit,
        ours=round(ours, 3),
        peers=rounded,
        ratio=round(ratio, 3),
        target=target,
        met=limit is None or ratio <= limit,
    )


def row_at_least(claim: str, unit: str, ours: float, peers: Mapping[str, float], limit: float, *, beside: str) -> Row:
    """A row of a figure of which more is better: the ratio to the peer must not be less than `limit`."""
    ratio = ours / peers[beside]
    return Row(
        claim=claim,
        unit=unit,
        ours=round(ours, 3),
        peers={name: round(value, 3) for name, value in peers.items()},
        ratio=round(ratio, 3),
        target=f"at least {limit:g} x {beside}",
        met=ratio >= limit,
    )


def within(claim: str, unit: str, ours: float, limit: float, peers: Mapping[str, float]) -> Row:
    """A row whose target is a figure of its own, which `ratio` is about; the peers are there for the reader."""
    return Row(
        claim=claim,
        unit=unit,
        ours=round(ours, 3),
        peers={name: round(value, 3) for name, value in peers.items()},
        ratio=round(ours / limit, 3),
        target=f"at most {limit:g} {unit}",
        met=ours <= limit,
    )


@dataclass(slots=True)
class Report:
    """What a benchmark found; `publish` prints it and writes it to benchmarks/results."""

    name: str
    rows: list[Row] = field(default_factory=list)

    def publish(self, *, in_part: bool = False) -> None:
        """A table for people, a file for programs; `in_part` keeps the file's rows about other claims, with their date."""
        console.print(self._table())
        RESULTS.mkdir(exist_ok=True)
        if in_part:
            self.rows += self._earlier()
        found = {
            "name": self.name,
            "commit": _commit(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": _machine(),
            "rows": [
                {name: value for name, value in asdict(row).items() if name != "as_of" or value} for row in self.rows
            ],
        }
        (RESULTS / f"{self.name}.json").write_text(json.dumps(found, indent=2) + "\n")

    def _earlier(self) -> list[Row]:
        file = RESULTS / f"{self.name}.json"
        if not file.exists():
            return []
        found, measured = json.loads(file.read_text()), {row.claim for row in self.rows}
        date = {"as_of": f"{found['when'][:10]}, {found['commit']}"}
        return [Row(**{**date, **row}) for row in found["rows"] if row["claim"] not in measured]

    def _table(self) -> Table:
        table = Table(title=f"{self.name} ({_machine()})", title_justify="left")
        for column in ("claim", "ours", "peers", "ratio", "target", "met"):
            table.add_column(column)
        for row in self.rows:
            peers = "\n".join(
                f"{name} {value:g}" for name, value in sorted(row.peers.items(), key=lambda pair: pair[1])
            )
            verdict = ("[green]yes" if row.met else "[red]missed") if row.target else ""
            table.add_row(
                f"{row.claim} ({row.unit})",
                f"{row.ours:g}",
                peers,
                f"{row.ratio:.2f}",
                row.target,
                verdict,
                end_section=True,
            )
        return table


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}"
