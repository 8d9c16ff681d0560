"""The command line: `python -m upstream FOCUS [--skip REGEX] [--processes]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import rig.build
from rig.errors import RigError
from rig.programs import KUBECTL, KUBERNETES_VERSION
from upstream import programs
from upstream.running import run

__all__ = ["main"]

_NOT_HERE = r"\[Disruptive\]|\[Slow\]|\[Flaky\]|\[Feature:|\[FeatureGate:.*\[(Alpha|Beta)\]|\[Driver:|Windows"
"""Those that need something that only some clusters have."""


def main(arguments: list[str] | None = None) -> int:
    """Builds what is missing, runs the tests, says how many pass and which do not; 1 if there are such, or none was run."""
    options = _parser().parse_args(arguments)
    try:
        rig.build.build((KUBECTL,))
        programs.build()
    except RigError as problem:
        print(f"upstream: {problem}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="navarch-reports-") as folder:
        found = run(options.focus, options.skip, processes=options.processes, reports=Path(folder))
    failed = [case for case in found if case.fault]
    for case in failed:
        print(f"FAILED {case.name}\n    {case.fault.splitlines()[0]}")
    print(f"{len(found) - len(failed)} of {len(found)} passed")
    return 1 if failed or not found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="upstream", description=f"Kubernetes {KUBERNETES_VERSION}'s own tests on the embedded cluster."
    )
    parser.add_argument("focus", help=r"which tests, as a regular expression: '\[sig-api-machinery\].*\[Conformance\]'")
    parser.add_argument("--skip", default=_NOT_HERE, help="which of them not (default: %(default)s)")
    parser.add_argument("--processes", action="store_true", help="on nodes whose pods are processes, not data")
    return parser
