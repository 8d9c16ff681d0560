"""Remove what a cluster leaves outside of its processes, even if the process that ran it was killed.

Run as `python -m rig.janitor FOLDER` with a pipe as its standard input, whose other end the owner of the cluster
holds. When the owner closes it, or dies in whatever way, the read ends, and the janitor cleans up and exits. So there
is one way of cleaning up, and every run tests it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rig import traces
from rig.errors import RigError
from rig.folders import SOURCE
from rig.process import CLEAN_ENVIRONMENT, stop

PATIENCE = 20.0


class Janitor:
    """The owner's side: `start` before making anything, `dismiss` when all processes are stopped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the janitor, not bound to our life: it must outlive us."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rig.janitor", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**CLEAN_ENVIRONMENT, "PYTHONPATH": str(SOURCE.parent)},
            start_new_session=True,
            cwd="/",
        )

    def dismiss(self) -> None:
        """Let it clean up and wait for that; raises RigError if something could not be removed."""
        if self._process is None:
            return
        try:
            _, complaint = self._process.communicate(b"\n", timeout=PATIENCE + 5)
        except subprocess.TimeoutExpired:
            stop(self._process, grace=0)
            raise RigError(f"the janitor did not finish; remove {self._folder} by hand") from None
        if self._process.returncode != 0:
            raise RigError(f"could not clean up {self._folder}: {complaint.decode().strip()}")


def clean(folder: Path) -> None:
    """Remove everything that belongs to the cluster of this folder, and the folder. Safe to repeat."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            traces.remove(folder)
            if folder.exists():
                shutil.rmtree(folder)
        except (OSError, RigError):
            # Killed processes may still be closing their files, or leaving their control group and their network.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def main(folder: Path) -> int:
    """Wait for the owner to let go, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.read(sys.stdin.fileno(), 1)
    try:
        clean(folder)
    except (OSError, RigError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
