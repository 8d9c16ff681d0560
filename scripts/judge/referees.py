"""The referees: programs of others that know the right answers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import rig
from rig import programs, tools
from rig.build import build

ROOT = Path(__file__).parents[2]
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Referee(Generic[T_co]):
    """A program, and how it is started: `running` gives what questions are put to, fresh for each recording."""

    name: str
    running: Callable[[], AbstractContextManager[T_co]]


@dataclass(frozen=True)
class Go:
    """The Go command with the module of `scripts/go_types`, which has the version of Kubernetes that we follow."""

    command: Path
    module: Path

    def output(self, package: str, *arguments: str) -> bytes:
        """Returns what a program of the module prints."""
        command = [str(self.command), "run", "-C", str(self.module), package, *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


@contextmanager
def _go() -> Iterator[Go]:
    module = ROOT / "scripts" / "go_types"
    yield Go(tools.go((module / "go.mod").read_text(encoding="utf-8")), module)


@dataclass(frozen=True)
class Helm:
    """Helm, and a cluster for its releases."""

    command: Path
    kubeconfig: Path

    def output(self, *arguments: str) -> str:
        """Returns what it prints, on both of its outputs if it fails."""
        command = [str(self.command), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"helm {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout


@contextmanager
def _helm() -> Iterator[Helm]:
    build([programs.HELM])
    with rig.running() as cluster:
        yield Helm(programs.HELM.path, cluster.kubeconfig)


KUBE_APISERVER = Referee("kube-apiserver", rig.running)
GO = Referee("Go", _go)
HELM = Referee("Helm", _helm)
SHELL = Referee("the programs in a shell", nullcontext)
