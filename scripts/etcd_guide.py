"""docs/etcd-guide.md with what its commands really print: `make judge NAME=etcd-guide`; `RECORD=1` writes the page.

The commands run from top to bottom in one shell, on a cluster of their own, in the folder of the repository.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from judge import SHELL, Recording, Verdicts
from rig import programs

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "etcd-guide.md"
ACTIVATE = ". .venv/bin/activate"
_BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
_FILE = re.compile(r"(?<=```yaml\n)# (\S+)\n.*?(?=```)", re.DOTALL)
_END = "the-command-has-ended"
_SECONDS = 900.0
_DIFFERENT = tuple(
    (re.compile(pattern, re.MULTILINE), text)
    for pattern, text in (
        (r"https://127\.0\.0\.1:\d+", "SERVER"),
        (r"KUBECONFIG=\S+/navarch/", "KUBECONFIG=FOLDER/"),
        (r"\b127\.\d+\.\d+\.\d+", "ADDRESS"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
        (r"\b[0-9a-f]{14,16}\b", "ID"),
        (r"\bnode-\d\b", "NODE"),
        (r"\b(\d+[smh])+\b( \(x\d+ over \S+\))?", "AGE"),
        (r"<(invalid|unknown)>", "AGE"),
        (r"\b(revision|Revision|REVISION) +\d+", r"\1 N"),
        (r"\b\d{5,}\b", "N"),
        (r"^\[\d\] \d+$", "JOB"),
        (r"-{3,}", "-"),
        (r" +", " "),
        (r" $", ""),
    )
)
"""What differs from run to run: ports, addresses, times, folders, numbers that etcd makes up."""


def commands(page: str) -> list[str]:
    """Every command of the page, in order."""
    return [command for block in _BLOCK.findall(page) for command in _commands(block)]


def _commands(block: str) -> list[str]:
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def with_files(page: str) -> str:
    """The page, with each file that it shows as the file is now."""
    return _FILE.sub(lambda found: f"# {found[1]}\n{(ROOT / found[1]).read_text()}", page)


def recorded(page: str) -> str:
    """The page, with what its commands print now; raises `RuntimeError` with the words of one that fails."""
    with shell() as run:
        return _BLOCK.sub(
            lambda block: "".join(f"$ {each}\n{run.output(each)}" for each in _commands(block[0])), with_files(page)
        )


def steady(_: str, page: str) -> str:
    """Returns what the commands print, without what differs from run to run."""
    text = "\n".join(_BLOCK.findall(page))
    for pattern, replacement in _DIFFERENT:
        text = pattern.sub(replacement, text)
    return text


def ask(_: None) -> Verdicts:
    """Types every command of the page."""
    return {PAGE.name: recorded(PAGE.read_text())}


class Shell:
    """One shell, that is told one command after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def output(self, command: str) -> str:
        """What the command prints on both of its outputs; raises `RuntimeError` if it fails.

        The virtual environment is this one, wherever it is.
        """
        if command == ACTIVATE:
            return ""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\necho {_END} $?\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            head, is_end, code = line.partition(f"{_END} ")
            lines += [head] if head else []
            if is_end:
                break
        else:
            raise RuntimeError(f"{command}: expected it to end within {_SECONDS:g} s in all, got:\n{''.join(lines)}")
        if int(code):
            raise RuntimeError(f"{command}: expected it to succeed, got {code.strip()}:\n{''.join(lines)}")
        return "".join(lines)


@contextmanager
def shell() -> Iterator[Shell]:
    """A shell in the repository, with a folder of its own for clusters and backups; nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="etcd-guide-") as folder:
        Path(folder).chmod(0o755)
        environment = _environment(folder)
        process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        alarm = threading.Timer(_SECONDS, process.kill)
        alarm.start()
        try:
            with process:
                yield Shell(process)
        finally:
            alarm.cancel()
            with suppress(ProcessLookupError):  # the operator, of a page that broke off
                os.killpg(process.pid, signal.SIGKILL)
            _clean(environment)


def _environment(folder: str) -> Mapping[str, str]:
    """Programs of this virtual environment and of the rig, which have more time than usual; ports that are free."""
    path = f"{Path(sys.prefix) / 'bin'}:{programs.KUBECTL.path.parent}:{os.environ['PATH']}"
    anywhere = "127.0.0.1:0"
    return {
        **{name: value for name, value in os.environ.items() if name != "KUBECONFIG"},
        "PATH": path,
        "HOME": folder,
        "TMPDIR": folder,
        "XDG_STATE_HOME": folder,
        "NO_COLOR": "1",
        "COLUMNS": "200",
        "ETCDCTL_DIAL_TIMEOUT": "60s",
        "ETCDCTL_COMMAND_TIMEOUT": "60s",
        "ETCD_OPERATOR_HEALTH": anywhere,
        "ETCD_OPERATOR_METRICS": anywhere,
    }


def _clean(environment: Mapping[str, str]) -> None:
    """A page that broke off may have left its cluster."""
    command = [sys.executable, "-m", "navarch", "cluster", "down", "--delete"]
    subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)


RECORDING = Recording("etcd-guide", SHELL, PAGE.parent, (PAGE.name,), ask, steady)
