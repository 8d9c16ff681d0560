"""Consoles: files of commands for kubectl and of what it answers, normalised, so that two clusters can be compared."""

from __future__ import annotations

import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rig import programs
from rig.process import CLEAN_ENVIRONMENT
from rig.waiting import wait_for

PROMPT = "$ kubectl "
_SECONDS = 60.0
_UNPUBLISHED = "error: couldn't find resource for"
_NORMAL = tuple(
    (re.compile(pattern, re.MULTILINE), text)
    for pattern, text in (
        (r"^[IWE]\d{4} .* reflector\.go:.*\n", ""),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "TIME"),
        (r"(serverAddress\": ?)\"[^\"]*\"", r'\1"SERVER"'),
        (r"(\"(gitCommit|goVersion|compiler|platform)\": ?)\"[^\"]*\"", r'\1"BUILD"'),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"^[+-]{3} \S+/(\S+)\t.*", r"\1"),
        (r"\S*/(MERGED|LIVE)-\d+", r"\1"),
        (r"(resourceVersion\"?: ?)\"\d+\"", r'\1"VERSION"'),
        (r"(Resource Version: +)\d+", r"\1VERSION"),
        (r"kube-api-access-\w+", "kube-api-access-SUFFIX"),
        (r"kubernetes-admin|rig-admin", "ADMIN"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        (r"https://127\.0\.0\.1:\d+", "SERVER"),
        (r"127\.0\.0\.1:\d+", "SERVER"),
        (r"\b\d+(m\d+)?s$", "AGE"),
        (r"(?<= )\d+(m\d+)?s(?=  )", "AGE"),
        (r"(?<=\S) {2,}", "  "),
        (r"[ \t]+$", ""),
    )
)

_MANAGED_FIELDS = re.compile(
    r"(?P<head>^(?P<indent> *)managedFields:\n)(?P<entries>((?P=indent)(- |  ).*\n)+)", re.MULTILINE
)
_PROSE = re.compile(r"^(DESCRIPTION:| {4,}(?!.*(\t<|enum: ))\S.*|\s*)$")


@dataclass(frozen=True)
class Kubectl:
    """kubectl for one cluster; `folder` is its own, for what it remembers."""

    kubeconfig: Path
    folder: Path

    def answer(self, arguments: list[str], namespace: str, cwd: Path) -> str:
        """What it prints on both of its outputs, and its exit code if that is not zero."""
        done = subprocess.run(
            self._command(arguments, namespace),
            cwd=cwd,
            env={**self._environment, "EDITOR": str(cwd / "editor")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        said = "".join(part if part.endswith("\n") or not part else f"{part}\n" for part in (done.stdout, done.stderr))
        return f"{said}[{done.returncode}]\n" if done.returncode else said

    @contextmanager
    def running(self, arguments: list[str], namespace: str) -> Iterator[Iterator[str]]:
        """The lines that it prints while it runs on; it is ended with the block, or when it takes too long."""
        with subprocess.Popen(
            self._command(arguments, namespace), env=self._environment, stdout=subprocess.PIPE, text=True
        ) as process:
            limit = threading.Timer(_SECONDS, process.kill)
            limit.start()
            assert process.stdout is not None
            try:
                yield (line.rstrip("\n") for line in process.stdout)
            finally:
                limit.cancel()
                process.kill()

    def _command(self, arguments: list[str], namespace: str) -> list[str]:
        program = str(programs.KUBECTL.path)
        return [program, f"--kubeconfig={self.kubeconfig}", f"--namespace={namespace}", *arguments]

    @property
    def _environment(self) -> dict[str, str]:
        return {**CLEAN_ENVIRONMENT, "KUBECACHEDIR": str(self.folder)}


def replayed(console: str, kubectl: Kubectl, namespace: str, cwd: Path) -> str:
    """The console as it looks if its commands are given now."""
    return "".join(_replayed(console, kubectl, namespace, cwd))


def without_descriptions(explained: str) -> str:
    """What `kubectl explain` says without the prose: fields, their types and values."""
    return "".join(line for line in explained.splitlines(keepends=True) if not _PROSE.match(line))


def _replayed(console: str, kubectl: Kubectl, namespace: str, cwd: Path) -> Iterator[str]:
    preamble, *steps = re.split(rf"^(?={re.escape(PROMPT)})", console, flags=re.MULTILINE)
    yield preamble
    for step in steps:
        prompt = step.splitlines()[0]
        arguments = shlex.split(prompt.removeprefix(PROMPT))
        (answer,) = wait_for(
            "the OpenAPI of a new kind", partial(_published, kubectl, arguments, namespace, cwd), seconds=_SECONDS
        )
        yield f"{prompt}\n{normalised(answer)}\n"


def _published(kubectl: Kubectl, arguments: list[str], namespace: str, cwd: Path) -> list[str]:
    """The answer, or none yet: the real server publishes the OpenAPI of a kind a moment after it is established."""
    answer = kubectl.answer(arguments, namespace, cwd)
    return [] if _UNPUBLISHED in answer else [answer]


def normalised(text: str) -> str:
    """Without what differs from run to run.

    >>> normalised("NAME   AGE\\nweb    12s")
    'NAME  AGE\\nweb  AGE'
    """
    for pattern, replacement in _NORMAL:
        text = pattern.sub(replacement, text)
    return _MANAGED_FIELDS.sub(_sorted_entries, text)


def _sorted_entries(block: re.Match[str]) -> str:
    """Managed fields are in the order of their times, which may or may not be the same second."""
    entries = re.split(rf"^(?={block['indent']}- )", block["entries"], flags=re.MULTILINE)
    return f"{block['head']}{''.join(sorted(entries))}"
