"""The command line: `python -m shake [--seed N] [--strength X] [--workers N] [what pytest is told]`."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import sys

from shake.points import POINTS, faults_of
from shake.reach import AGAIN, environment

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Becomes pytest, in the weather of a seed; says before and after how to have the same again."""
    options, told = _parser().parse_known_args(arguments)
    if faults := faults_of(POINTS):
        print(*(f"shake: {fault}" for fault in faults), sep="\n", file=sys.stderr)
        return 2
    again = _again(options, told)
    print(again, flush=True)
    weather = environment(str(options.seed), options.strength, {**os.environ, AGAIN: again})
    return os.execve(sys.executable, [*_command(options.workers), *told], weather)  # noqa: S606 - this very interpreter


def _command(workers: str) -> list[str]:
    """That of `make test`, in bad weather."""
    pytest = [sys.executable, "-m", "pytest", "-p", "shake.plugin"]
    return [*pytest, f"--numprocesses={workers}", "--dist=worksteal", "-m", "not real and not long"]


def _again(options: argparse.Namespace, told: list[str]) -> str:
    arguments = f" ARGS={shlex.quote(shlex.join(told))}" if told else ""
    return f"shake: the same again: make shake SEED={options.seed} STRENGTH={options.strength:g}{arguments}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shake",
        description="Runs pytest while events, answers and processes come late. All other arguments are pytest's.",
        allow_abbrev=False,
    )
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10_000), help="which delays (default: new ones)")
    parser.add_argument("--strength", type=_strength, default=1.0, help="how many times as long (default: 1)")
    parser.add_argument("--workers", default="auto", help="how many processes (default: one for each processor)")
    return parser


def _strength(text: str) -> float:
    """What argparse turns into a sentence if it is no such number."""
    if not 0 < (found := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return found
