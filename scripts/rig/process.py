"""Child processes: started so that they cannot outlive us, stopped by process id, named so that none is mistaken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from navarch._base import parent_death_signal

_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rig-spawner")
"""The kernel ties PR_SET_PDEATHSIG to the *thread* that started a child. All children are therefore started by this
one thread, which lives as long as the process; a child started from a short-lived thread would die with it."""

CLEAN_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": os.environ.get("HOME", "/"),
}
"""What the cluster's programs see: no proxy, so that no request to a node or a webhook can leave the machine."""


@dataclass(frozen=True)
class Identity:
    """A process that cannot be confused with a later one of the same id."""

    pid: int
    started: int
    """Clock ticks after boot, from /proc."""
    boot: str

    def alive(self) -> bool:
        """Tell whether this very process still runs (a zombie does not)."""
        return identify(self.pid) == self


def identify(pid: int) -> Identity | None:
    """Return the identity of the process that has this id now, or None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field is the name in parentheses and may contain spaces: count from the last parenthesis.
    state, *rest = stat.rpartition(")")[2].split()
    if state in "ZX":
        return None
    return Identity(pid, int(rest[18]), Path("/proc/sys/kernel/random/boot_id").read_text().strip())


def spawn(
    command: Sequence[str | Path],
    *,
    output: IO[bytes] | int,
    stdin: int = subprocess.DEVNULL,
    environment: dict[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child that the kernel kills when this process dies, in a session of its own.

    The session keeps a Ctrl-C at the terminal away from it: we stop our children ourselves, in order.
    """
    program = shutil.which(str(command[0])) or str(command[0])
    bound = [sys.executable, "-I", "-S", parent_death_signal.__file__, str(os.getpid()), "SIGKILL", program]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*bound, *map(str, command[1:])],
            stdin=stdin,
            stdout=output,
            stderr=output,
            env=CLEAN_ENVIRONMENT if environment is None else environment,
            start_new_session=True,
        )

    return _spawner.submit(start).result()


class Daemon:
    """One long-running program of the cluster, its output in one file."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, *, stdin: int = subprocess.DEVNULL) -> None:
        self.name = name
        self.command = command
        self.log = log
        self._stdin = stdin
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running child; starting comes first."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process

    def start(self) -> None:
        """Start the program; its output is appended to the log."""
        with self.log.open("ab") as output:
            self._process = spawn(self.command, output=output, stdin=self._stdin)

    def tell(self, text: str) -> None:
        """Write to the program's standard input, which must have been opened as a pipe."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def close_input(self) -> None:
        """End the program's standard input. Harmless if it never ran or has ended."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def exit_code(self) -> int | None:
        """Return the exit code if the program has ended."""
        return self.process.poll()

    def stop(self, grace: float = 5.0) -> None:
        """Send SIGTERM, wait for `grace` seconds, then SIGKILL; the child is reaped. Harmless if it never ran."""
        if self._process is not None:
            stop(self._process, grace)

    def tail(self, lines: int = 15) -> str:
        """Return the last lines of the log, each cut to a readable length."""
        return tail(self.log, lines)


def stop(process: subprocess.Popen[bytes], grace: float) -> None:
    """End a child: SIGTERM, a bounded wait, SIGKILL; reaped in any case."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(log: Path, lines: int = 15, width: int = 400) -> str:
    """Return the last lines of a file, or say that it has none."""
    try:
        text = log.read_text(errors="replace")
    except FileNotFoundError:
        return "(no output)"
    return "\n".join(line[:width] for line in text.splitlines()[-lines:]) or "(no output)"
