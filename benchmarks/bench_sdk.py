"""Projects beside kubebuilder's: the time to begin one, what the user owns of it, and what its operator may do.

Both make a project with one kind whose controller runs memcached (kubebuilder's deploy-image plugin), with warm caches: the
first round is not counted. Lines are counted alike for both: every scaffolded file that no generator rewrites. Verbs are those
of all roles that are bound to the operator's ServiceAccount, each resource by itself.

Two figures have no peer: how long `navarch run --reload` takes from a saved file to a reconcile by the new code, on an embedded
cluster, and for how many CRDs of well-known projects `navarch generate models` writes classes that have the same schema and
types that mypy accepts.

About seven minutes. `BENCH_ROUNDS=1` for one round, `BENCH_PARTS=projects` for one of the parts projects, help, reload and
models.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from measuring import Report, Row, console, row, within
from navarch.project.permissions import count_verbs
from sdk import kubebuilder_peer, projects
from sdk.reload import reload_seconds

ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "3"))
_KUBEBUILDER: Final = "kubebuilder"
_TOOLS: Final = {"ours": projects, _KUBEBUILDER: kubebuilder_peer}


def main() -> None:
    """Measures everything, and reports."""
    kubebuilder_peer.prepare()
    report = Report("sdk")
    for name in (os.environ.get("BENCH_PARTS") or ",".join(_PARTS)).split(","):
        report.rows += _PARTS[name]()
    report.publish(in_part=True)


def _projects() -> list[Row]:
    """Makes a project with each tool, in turns, and compares the last ones."""
    begun: dict[str, dict[str, list[float]]] = {name: {"init": [], "create api": []} for name in _TOOLS}
    with tempfile.TemporaryDirectory() as place, console.status("projects") as shown:
        for number in range(ROUNDS + 1):
            for name, tool in _TOOLS.items():
                shown.update(f"projects: round {number + 1} of {ROUNDS + 1}, {name}")
                folder = Path(place) / f"{name}-{number}" / "memcached-operator"
                folder.mkdir(parents=True)
                seconds = {"init": _seconds(tool.init, folder), "create api": _seconds(tool.create_api, folder)}
                for step, taken in seconds.items():
                    begun[name][step] += [taken] if number else []
        last = {name: Path(place) / f"{name}-{ROUNDS}" / "memcached-operator" for name in _TOOLS}
        projects.navarch(last["ours"], "generate")
        rows = [
            row(
                f"`{step}`: time",
                "s",
                min(begun["ours"][step]),
                {_KUBEBUILDER: min(begun[_KUBEBUILDER][step])},
                1.0,
            )
            for step in ("init", "create api")
        ]
        lines = {name: sum(map(_lines, tool.owned_files(last[name]))) for name, tool in _TOOLS.items()}
        verbs = {name: count_verbs(tool.roles(last[name])) for name, tool in _TOOLS.items()}
        own = [file for file in projects.owned_files(last["ours"]) if file.name in _WRITTEN_FOR_A_KIND]
        return [
            *rows,
            row("lines of a project with one kind that the user owns", "lines", lines["ours"], _peer(lines), 0.1),
            within("lines of types, reconciler and test", "lines", sum(map(_lines, own)), 80, {}),
            row("verbs that the memcached operator is granted", "verbs", verbs["ours"], _peer(verbs), 0.6),
        ]


_WRITTEN_FOR_A_KIND: Final = frozenset({"memcached.py", "test_memcached.py"})


def _peer(figures: dict[str, int]) -> dict[str, float]:
    return {_KUBEBUILDER: figures[_KUBEBUILDER]}


def _seconds(work: Callable[[Path], None], folder: Path) -> float:
    began = time.perf_counter()
    work(folder)
    return time.perf_counter() - began


def _lines(file: Path) -> int:
    return len(file.read_text().splitlines())


def _help() -> list[Row]:
    """Compares whole processes, in turns."""
    commands = {
        "ours": [str(Path(sys.executable).with_name("navarch")), "--help"],
        "import typer, rich": [sys.executable, "-c", "import typer, rich"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(10 * ROUNDS):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
            taken[name].append(time.perf_counter() - began)
    best = {name: min(found) for name, found in taken.items()}
    return [row("`navarch --help`: time", "s", best.pop("ours"), best, 1.5)]


def _reload() -> list[Row]:
    """Saves the controller of a project while `navarch run --reload` runs it on an embedded cluster."""
    with tempfile.TemporaryDirectory() as place, console.status("reload"):
        folder = Path(place) / "memcached-operator"
        folder.mkdir()
        projects.init(folder)
        projects.create_api(folder)
        with projects.cluster(Path(place), folder):
            controller = folder / "src" / "memcached_operator" / "controllers" / "memcached.py"
            found = reload_seconds(folder, controller, rounds=5 * ROUNDS)
    return [
        within(
            "`run --reload`: from a saved file to a reconcile by the new code, the slowest", "s", max(found), 1.5, {}
        )
    ]


def _models() -> list[Row]:
    """Generates classes for every CRD of three projects, which `go mod download` fetches."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from project.models.third_party import checked_crds  # the check of the tests

    with tempfile.TemporaryDirectory() as place, console.status("models"):
        checked = list(checked_crds(Path(place)))
    wrong = [each for each in checked if not (each.has_same_schema and each.is_typed)]
    claim = (
        "CRDs of cert-manager, prometheus-operator and gateway-api whose generated classes differ in schema or types"
    )
    return [row(claim, "CRDs", len(wrong), {"all": len(checked)}, 0.0, beside="all")]


_PARTS: Final[dict[str, Callable[[], list[Row]]]] = {
    "projects": _projects,
    "help": _help,
    "reload": _reload,
    "models": _models,
}


if __name__ == "__main__":
    main()
