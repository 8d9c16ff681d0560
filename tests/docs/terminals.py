"""A newcomer at a shell: what tutorials have typed, and what is printed."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from interrupts import heed_interrupts
from navarch._base.clock import SystemClock
from rig import programs

SECONDS = 600.0
DONE = "the-command-ended-with"
_clock = SystemClock()


class Terminal:
    """A shell of the reader."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=heed_interrupts,  # noqa: PLW1509 - it calls one function of C
        )
        self._printed = ""
        self.begin("trap : INT")  # as a shell at a terminal, it outlives the program that Ctrl-C ends
        self.end()

    def answer(self, command: str) -> tuple[str, int]:
        """What the command prints on both of its outputs, and its exit code."""
        self.begin(command)
        return self.end()

    def begin(self, command: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{{\n{command}\n}} < /dev/null\nprintf '%s %d\\n' {DONE} $?\n".encode())
        self._shell.stdin.flush()

    def end(self) -> tuple[str, int]:
        printed = self.until(f"{DONE} \\d+\n")
        said, _, code = printed.rpartition(DONE)
        return said, int(code)

    def until(self, pattern: str) -> str:
        """What was printed, up to and with the pattern."""
        assert self._shell.stdout is not None
        deadline = _clock.monotonic() + SECONDS
        while (found := re.search(pattern, self._printed)) is None:
            ready, _, _ = select.select([self._shell.stdout], [], [], max(0.0, deadline - _clock.monotonic()))
            more = os.read(self._shell.stdout.fileno(), 65536).decode() if ready else ""
            assert more, f"expected {pattern!r} within {SECONDS:g} s, got {self._printed!r}"
            self._printed += more
        printed, self._printed = self._printed[: found.end()], self._printed[found.end() :]
        return printed

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.killpg(self._shell.pid, signal.SIGINT)

    def close(self) -> None:
        """With whatever still runs in it."""
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        for pipe in (self._shell.stdin, self._shell.stdout):
            assert pipe is not None
            pipe.close()


def newcomer_environment(folder: Path) -> dict[str, str]:
    """That of a newcomer. curl has kubectl from the rig: the download is the one thing that needs Kubernetes' own server."""
    tools = folder / "tools"
    tools.mkdir()
    _script(tools / "python3", f'exec {Path(sys.base_prefix, "bin", "python3")} "$@"')
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    address = f"https://dl.k8s.io/release/{programs.KUBERNETES_VERSION}/bin/linux/{machine}/kubectl"
    copied = f'[ "$1 $2 $4" = "-fL -o {address}" ] && exec cp {programs.KUBECTL.path} "$3"'
    _script(tools / "curl", f'{copied}\nexec {shutil.which("curl")} --no-progress-meter "$@"')
    kept = {name: value for name, value in os.environ.items() if not re.match("PYTEST|PYTHON|VIRTUAL_ENV|KUBE", name)}
    return {
        **kept,
        "PATH": f"{tools}:{kept['PATH']}",
        "XDG_STATE_HOME": str(folder / "state"),
        "KUBECACHEDIR": str(folder / "kubectl"),
    }


def _script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
