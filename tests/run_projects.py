"""Small operator projects, and `navarch run` in them as a process of its own."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

from navarch._base.clock import SystemClock

SECONDS = 60.0
CLOCK = SystemClock()
PROJECT = 'domain: example.com\nlayout:\n- python.navarch.dev/v1\nprojectName: probe-operator\nversion: "3"\n'
OPERATOR = 'from navarch import Operator\n\noperator = Operator("probe-operator", crds="verify")\n'
CONTROLLER = """\
from navarch import Context
from navarch.k8s.core.v1 import ConfigMap
from probe_operator import operator

VERSION = "1"


@operator.controller(ConfigMap)
async def reconcile(config: ConfigMap, ctx: Context) -> None:
    if config.name == "probe":
        print(f"reconciled by {VERSION}", flush=True)
"""
KIND = """\
from navarch import Resource, Spec, Status


class ProbeSpec(Spec):
    size: int = 1


class Probe(Resource[ProbeSpec, Status], group="test.example.com", version="v1"):
    \"\"\"A kind of this project.\"\"\"
"""
OF_KIND = """\
from navarch import Context
from probe_operator import operator
from probe_operator.api import Probe


@operator.controller(Probe)
async def reconcile(probe: Probe, ctx: Context) -> None:
    print(f"reconciled {probe.name}", flush=True)
"""


def write_project(root: Path, controller: str = CONTROLLER) -> Path:
    """Writes a project, and returns the file of its controller."""
    package = root / "src" / "probe_operator"
    (package / "controllers").mkdir(parents=True)
    (root / "PROJECT").write_text(PROJECT)
    (package / "__init__.py").write_text(OPERATOR)
    (package / "api.py").write_text(KIND)
    (package / "controllers" / "__init__.py").write_text("")
    file = package / "controllers" / "probe.py"
    file.write_text(controller)
    return file


class NavarchRun:
    """`navarch run` in a project; its lines of both outputs are read as they come. A `with` ends it."""

    def __init__(self, root: Path, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "navarch", "run", "--health-probe-bind-address=0", *arguments],
            cwd=root,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._coming: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def wait_for(self, text: str) -> str:
        """Returns the first line from now on that has the text; fails with all lines if none comes."""
        deadline = CLOCK.monotonic() + SECONDS
        while (left := deadline - CLOCK.monotonic()) > 0:
            try:
                line = self._coming.get(timeout=left)
            except queue.Empty:
                break
            if text in line:
                return line
        raise AssertionError(f"waited {SECONDS:g} s for {text!r}, got:\n{''.join(self.lines)}")

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Sends the signal, and returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def children(self) -> list[int]:
        """Returns the processes that it has started and that still run."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(each) for each in listed.split()]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._coming.put(line)
