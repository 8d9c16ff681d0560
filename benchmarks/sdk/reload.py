"""How long it takes from a saved file to a reconcile by the new code, with `navarch run --reload`."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Final

_RECONCILE: Final = re.compile(r"(async def reconcile\(.*?\)[^\n]*:\n)", re.DOTALL)
_LIMIT: Final = 60.0


def reload_seconds(root: Path, controller: Path, *arguments: str, rounds: int = 5) -> list[float]:
    """Runs the project in `root`, saves its controller so many times, and returns the seconds of each round.

    A round is over when the function `reconcile` of the saved file runs: it prints the number of the round. The cluster, which
    `arguments` choose, must have an object of the controller's kind. Ends `navarch run`, and restores the file.
    """
    source = controller.read_text()
    command = [sys.executable, "-m", "navarch", "run", "--reload", "--output=text", "--health-probe-bind-address=0"]
    controller.write_text(_printing(source, 0))
    with subprocess.Popen(
        [*command, *arguments], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        try:
            _wait_for(process.stdout, _mark(0))
            found = []
            for number in range(1, rounds + 1):
                controller.write_text(_printing(source, number))
                saved = time.monotonic()
                _wait_for(process.stdout, _mark(number))
                found.append(time.monotonic() - saved)
            return found
        finally:
            process.send_signal(signal.SIGTERM)
            controller.write_text(source)


def _printing(source: str, number: int) -> str:
    printing, count = _RECONCILE.subn(rf'\1    print("{_mark(number)}", flush=True)\n', source, count=1)
    if not count:
        raise ValueError("expected a function `async def reconcile(...)` in the controller, got none")
    return printing


def _mark(number: int) -> str:
    return f"reconciled by round {number};"


def _wait_for(lines: IO[bytes], text: str) -> None:
    deadline, seen = time.monotonic() + _LIMIT, b""
    with selectors.DefaultSelector() as selector:
        selector.register(lines, selectors.EVENT_READ)
        while selector.select(max(deadline - time.monotonic(), 0.0)):
            found = os.read(lines.fileno(), 65536)
            seen += found
            if text.encode() in seen:
                return
            if not found:
                break
    raise RuntimeError(f"waited {_LIMIT:g} s for {text!r}, got:\n{seen.decode(errors='replace')}")
