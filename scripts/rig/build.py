"""Build the rig's programs from source, once, into a cache.

Each program is complete or absent: it is built beside its place and renamed into it. One lock file makes two builds
at the same time take turns; the second then finds everything done.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rig import folders, programs, tools
from rig.errors import BuildError
from rig.locking import turn
from rig.process import spawn, stop, tail
from rig.programs import Program

HEARTBEAT = 15.0

Report = Callable[[str], None]


def report(line: str) -> None:
    """Show one line of progress, where it does not mix with a command's output."""
    print(line, file=sys.stderr, flush=True)


def build(wanted: Iterable[Program] = programs.ALL, *, progress: Report = report) -> None:
    """Build the programs that are missing: minutes the first time, nothing afterwards.

    Safe to interrupt and to run twice at once. Raises MissingToolError or BuildError.
    """
    missing = [program for program in wanted if not program.path.exists()]
    if not missing:
        return
    go = tools.go((folders.SOURCE / "kubernetes" / "go.mod").read_text())
    with turn(folders.cache() / ".build.lock", lambda: progress("waiting for another build to finish")):
        for program in missing:
            if not program.path.exists():  # asked again: another build may have made it while we waited
                _build_one(go, program, progress)


def build_command(go: Path, program: Program, output: Path) -> list[str]:
    """Return the command that builds one program, without the build machine's paths and debug data in it."""
    flags = ["-s", "-w", *(f"-X {stamp}" for stamp in program.stamps)]
    options = ["-trimpath", "-ldflags", " ".join(flags), "-o", str(output)]
    return [str(go), "build", "-C", str(program.source), *options, program.package]


def _build_one(go: Path, program: Program, progress: Report) -> None:
    program.path.parent.mkdir(parents=True, exist_ok=True)
    partial = program.path.with_name(f".{program.name}.partial")
    log = program.path.with_name(f".{program.name}.log")
    begun = time.monotonic()
    progress(f"{program.name}: building {program.version}")
    _compile(build_command(go, program, partial), program.name, log, progress)
    partial.rename(program.path)
    log.unlink()
    progress(f"{program.name}: built in {time.monotonic() - begun:.0f} s")


def _compile(command: list[str], name: str, log: Path, progress: Report) -> None:
    """Run one `go build` without cgo, with signs of life; raises BuildError with the end of its output."""
    begun = time.monotonic()
    with log.open("wb") as output:
        process = spawn(command, output=output, environment={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"})
    try:
        code = _await_exit(process, lambda: progress(f"{name}: still building after {time.monotonic() - begun:.0f} s"))
    finally:
        stop(process, grace=5)
    if code != 0:
        raise BuildError(f"{name}: go build ended with exit code {code}:\n{tail(log)}")


def _await_exit(process: subprocess.Popen[bytes], alive: Callable[[], None]) -> int:
    while True:
        try:
            return process.wait(HEARTBEAT)
        except subprocess.TimeoutExpired:
            alive()
