"""Build Kubernetes' programs from source, once, into a cache.

Each program is complete or absent: it is built beside its place and renamed into it. One lock file makes two builds
at the same time take turns; the second then finds everything done.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rig import folders, tools
from rig.errors import BuildError
from rig.process import spawn, stop, tail

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kubectl")
NODE = ("kube-scheduler", "kubelet")
PROGRAMS = CONTROL_PLANE + NODE

HEARTBEAT = 15.0

Report = Callable[[str], None]


def report(line: str) -> None:
    """Show one line of progress, where it does not mix with a command's output."""
    print(line, file=sys.stderr, flush=True)


def build(programs: tuple[str, ...] = PROGRAMS, *, progress: Report = report) -> Path:
    """Return the folder that holds the programs, building those that are missing.

    Costs minutes the first time and nothing afterwards. Raises MissingToolError or BuildError.
    """
    folder = folders.binaries()
    if missing(folder, programs):
        go = tools.go()
        folder.mkdir(parents=True, exist_ok=True)
        with _turn(folder / ".lock", progress):
            for program in missing(folder, programs):  # asked again: another build may have made them meanwhile
                _build_one(go, program, folder, progress)
    return folder


def missing(folder: Path, programs: tuple[str, ...]) -> list[str]:
    """Return the programs that the folder does not have yet."""
    return [program for program in programs if not (folder / program).exists()]


def build_command(go: Path, program: str, output: Path) -> list[str]:
    """Return the command that builds one program, stamped with its version (else it reports v0.0.0)."""
    major, minor, _ = folders.KUBERNETES_VERSION.removeprefix("v").split(".")
    stamps = {"gitVersion": folders.KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = ["-s", "-w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())]
    module = folders.SOURCE / "kubernetes"
    options = ["-trimpath", "-ldflags", " ".join(flags), "-o", str(output)]
    return [str(go), "build", "-C", str(module), *options, f"k8s.io/kubernetes/cmd/{program}"]


def compile_go(command: list[str], name: str, log: Path, progress: Report) -> None:
    """Run one `go build` for this machine without cgo, with signs of life; raises BuildError with its output."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    begun = time.monotonic()
    with log.open("wb") as output:
        process = spawn(command, output=output, environment=environment)
    try:
        code = _await_exit(process, lambda: progress(f"{name}: building, {time.monotonic() - begun:.0f} s"))
    finally:
        stop(process, grace=5)
    if code != 0:
        raise BuildError(f"{name}: go build ended with exit code {code}:\n{tail(log)}")
    progress(f"{name}: built in {time.monotonic() - begun:.0f} s")


def _build_one(go: Path, program: str, folder: Path, progress: Report) -> None:
    partial = folder / f".{program}.partial"
    log = folder / f".{program}.log"
    progress(f"{program}: building {folders.KUBERNETES_VERSION}")
    compile_go(build_command(go, program, partial), program, log, progress)
    partial.rename(folder / program)
    log.unlink()


def _await_exit(process: subprocess.Popen[bytes], alive: Callable[[], None]) -> int:
    while True:
        try:
            return process.wait(HEARTBEAT)
        except subprocess.TimeoutExpired:
            alive()


@contextmanager
def _turn(lock: Path, progress: Report) -> Iterator[None]:
    """Hold the lock; the kernel releases it if we die, so no stale lock can remain."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another build to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
