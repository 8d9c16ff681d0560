"""The command line: `python -m judge [NAME…] [--record] [--list]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import rig
from judge.catalog import recordings
from judge.recording import Recording


def main(arguments: list[str] | None = None, known: Mapping[str, Recording[Any]] | None = None) -> int:
    """Asks the referees and returns 0 if every verdict is the recorded one, or was recorded; 1 if not."""
    options = _parser().parse_args(arguments)
    known = recordings() if known is None else known
    if unknown := sorted(set(options.names) - set(known)):
        print(f"judge: expected names among {', '.join(known)}; got {', '.join(unknown)}", file=sys.stderr)
        return 2
    if options.list:
        for recording in known.values():
            print(f"{recording.name}: asks {recording.referee.name}; {', '.join(recording.files)}")
        return 0
    judged = [_judged(known[name], record=options.record) for name in options.names or known]
    return 0 if all(judged) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="judge", description="Asks the referees whether the recorded verdicts hold.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="recordings (default: all)")
    parser.add_argument("--record", action="store_true", help="write the verdicts that have changed")
    parser.add_argument("--list", action="store_true", help="show the recordings and ask nobody")
    return parser


def _judged(recording: Recording[Any], *, record: bool) -> bool:
    """Whether the recording holds now; prints what came of it."""
    start = time.monotonic()
    try:
        asked = recording.asked()
    except (rig.RigError, subprocess.CalledProcessError, AssertionError, RuntimeError) as problem:
        print(f"{recording.name}: {recording.referee.name} could not be asked: {problem}", file=sys.stderr)
        return False
    changes = recording.changes(asked)
    took = f"{time.monotonic() - start:.0f} s"
    if not changes:
        print(f"{recording.name}: {recording.referee.name} says what was recorded ({took})", flush=True)
        return True
    for text in changes.values():
        print(text)
    if record:
        recording.write(asked, changes)
        print(f"{recording.name}: {', '.join(changes)} written ({took})", flush=True)
        return True
    remedy = f"`make judge NAME={recording.name} RECORD=1` writes the new verdicts"
    print(f"{recording.name}: {recording.referee.name} says something else now ({took}); {remedy}", flush=True)
    return False
