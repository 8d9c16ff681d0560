"""Runs make targets on every supported Python of this machine, and prints a table of the results.

`python -m versions test demo` gives each Python a virtual environment of its own beneath `--folder`. `--no-namespaces` runs
the targets as an ordinary user on a kernel that refuses user namespaces (see `without_namespaces`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
_ROOT = Path(__file__).parent.parent
_VERSION = "import sys; print('{}.{}'.format(*sys.version_info), sys.version_info.releaselevel)"


def installed(wanted: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The path of an interpreter for each wanted version that PATH or pyenv has: the first that runs."""
    found: dict[str, str] = {}
    for version in wanted:
        runs = (path for path in _candidates(version, environ) if _version_of(path) == version)
        if path := next(runs, None):
            found[version] = path
    return found


def _candidates(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Shims of pyenv come first on PATH and fail for versions that are not chosen: pyenv's folders are asked too."""
    for folder in os.get_exec_path(environ):
        if path := shutil.which(f"python{version}", path=folder):
            yield path
    pyenv = Path(environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = pyenv.glob(f"versions/{version}.*")
    for release in sorted(folders, key=lambda each: _order(each.name), reverse=True):
        yield str(release / "bin" / f"python{version}")


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _version_of(path: str) -> str | None:
    """The version of an interpreter that is a final release, with venv; `None` for all others."""
    try:
        done = subprocess.run(
            [path, "-c", f"import ensurepip, venv; {_VERSION}"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    version, _, level = done.stdout.strip().partition(" ")
    return version if done.returncode == 0 and level == "final" else None


@dataclass
class Run:
    """The targets on one Python: their exit codes and seconds, in order."""

    version: str
    results: dict[str, tuple[int, float]] = field(default_factory=dict)

    @property
    def has_passed(self) -> bool:
        return all(code == 0 for code, _ in self.results.values())

    def row(self) -> str:
        """One line of the table."""
        cells = [
            f"{'passed' if code == 0 else f'failed ({code})'}, {seconds:.0f} s"
            for code, seconds in self.results.values()
        ]
        return f"| {self.version} | {' | '.join(cells)} |"


def run_targets(version: str, python: str, targets: list[str], *, folder: Path, namespaces: bool) -> Run:
    """Runs each target with that interpreter, whether or not the one before it has passed."""
    refused = () if namespaces else (sys.executable, "-m", "without_namespaces")
    run = Run(version)
    for target in targets:
        print(f"== Python {version}: make {target}", flush=True)
        began = time.monotonic()
        make = (
            "make",
            "--no-print-directory",
            target,
            f"PYTHON={python}",
            f"VENV={folder / version}",
        )
        code = subprocess.run([*refused, *make], cwd=_ROOT, check=False).returncode
        run.results[target] = (code, time.monotonic() - began)
    return run


def table(runs: list[Run], targets: list[str], missing: list[str]) -> str:
    """The results as Markdown; a supported version that was not found is listed too."""
    lines = [f"| Python | {' | '.join(f'make {target}' for target in targets)} |", "|---" * (len(targets) + 1) + "|"]
    lines += [run.row() for run in runs]
    lines += [f"| {version} |{' not installed |' * len(targets)}" for version in missing]
    return "\n".join(lines)


def main() -> int:
    """Returns 1 if a target has failed, if no supported Python was found, or not each of `--only`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--folder", type=Path, default=_ROOT / ".venv" / "versions")
    parser.add_argument("--no-namespaces", action="store_true")
    parser.add_argument(
        "--only", action="append", default=[], metavar="VERSION", help="instead of every supported version"
    )
    options = parser.parse_args()
    wanted = options.only or SUPPORTED
    found = installed(wanted, os.environ)
    runs = [
        run_targets(version, path, options.targets, folder=options.folder, namespaces=not options.no_namespaces)
        for version, path in found.items()
    ]
    missing = [version for version in wanted if version not in found]
    print(table(runs, options.targets, missing), flush=True)
    return 0 if runs and all(run.has_passed for run in runs) and not (options.only and missing) else 1


if __name__ == "__main__":
    sys.exit(main())
