"""How benchmarks measure, compare and report.

A worker is a program of its own: it does one job with one library and reports. Its CPU seconds and peak memory are
those of the whole process, as the kernel counts them. Workers take turns, so that noise falls on all alike.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
console = Console()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a worker: seconds it measured itself, and what its whole process used."""

    wall: float
    cpu: float
    peak_mb: float
    count: int


def run_worker(arguments: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Runs a worker to its end; raises with its own words if it fails."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=output, stderr=complaints, env={**os.environ, **environment}
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        complaints.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{complaints.read().decode()[-2000:]}")
        answer = json.loads(output.read())
    return Run(answer["wall"], usage.ru_utime + usage.ru_stime, answer["peak_mb"], answer["count"])


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
    return float(min(getattr(run, what) for run in runs))


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


def row(claim: str, unit: str, ours: float, peers: Mapping[str, float], limit: float, *, beside: str = "") -> Row:
    """A row whose ratio, ours divided by the best peer (or by the one named), must not exceed `limit`."""
    best = beside or min(peers, key=lambda name: peers[name])
    ratio = ours / peers[best]
    rounded = {name: round(value, 3) for name, value in peers.items()}
    target = f"at most {limit:g} x {best}"
    return Row(
        claim=claim,
        unit=unit,
        ours=round(ours, 3),
        peers=rounded,
        ratio=round(ratio, 3),
        target=target,
        met=ratio <= limit,
    )


@dataclass(slots=True)
class Report:
    """What a benchmark found; `publish` prints it and writes it to benchmarks/results."""

    name: str
    rows: list[Row] = field(default_factory=list)

    def publish(self) -> None:
        """A table for people, a file for programs."""
        console.print(self._table())
        RESULTS.mkdir(exist_ok=True)
        found = {
            "name": self.name,
            "commit": _commit(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": _machine(),
            "rows": [asdict(row) for row in self.rows],
        }
        (RESULTS / f"{self.name}.json").write_text(json.dumps(found, indent=2) + "\n")

    def _table(self) -> Table:
        table = Table(title=f"{self.name} ({_machine()})", title_justify="left")
        for column in ("claim", "ours", "peers", "ratio", "target", "met"):
            table.add_column(column)
        for row in self.rows:
            peers = "\n".join(
                f"{name} {value:g}" for name, value in sorted(row.peers.items(), key=lambda pair: pair[1])
            )
            verdict = "[green]yes" if row.met else "[red]missed"
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
