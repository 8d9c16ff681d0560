"""Runs all benchmarks, or those named: `python benchmarks/run.py client`."""

from __future__ import annotations

import runpy
import signal
import sys
from pathlib import Path

HERE = Path(__file__).parent
ALL = ("client", "cluster", "etcd", "runtime", "scale", "sdk", "server", "ship", "soak", "webhook")


def main(names: list[str]) -> int:
    """Runs each benchmark; a target that was missed is reported, not hidden, and is no failure of the run."""
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"unknown benchmark {', '.join(unknown)}; there are: {', '.join(ALL)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an exception, so that every worker is ended
    for name in names or ALL:
        runpy.run_path(str(HERE / f"bench_{name}.py"), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
