"""Builds what the tests need, once, into the rig's cache: the tests themselves, and the program of their pods."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from rig import folders, tools
from rig.locking import turn
from rig.programs import KUBECTL, KUBERNETES_VERSION

__all__ = ["AGNHOST", "TESTS", "build"]

_TESTS: Final = "k8s.io/kubernetes/test/e2e"
_AGNHOST: Final = "k8s.io/kubernetes/test/images/agnhost"
_STAMP: Final = f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}"


class _Program(NamedTuple):
    name: str
    package: str
    verb: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it is, or will be."""
        return _folder() / self.name


TESTS: Final = _Program("e2e.test", _TESTS, ("test", "-vet=off", "-c"))
AGNHOST: Final = _Program("agnhost", _AGNHOST, ("build",))
"""Whatever a pod of the tests has to do."""


def build() -> None:
    """Builds what is missing: a quarter of an hour the first time, nothing afterwards."""
    missing = [program for program in (TESTS, AGNHOST) if not program.path.exists()]
    if not missing:
        return
    source = _folder() / "source"
    source.mkdir(parents=True, exist_ok=True)
    with turn(_folder() / ".build.lock", lambda: print("waiting for another build", file=sys.stderr)):
        _prepare(source)
        for program in missing:
            _build_one(source, program)


def _folder() -> Path:
    return folders.cache() / "e2e-upstream" / KUBERNETES_VERSION


def _prepare(source: Path) -> None:
    """A module that needs what the rig's needs, and what the tests need besides."""
    for name in ("go.mod", "go.sum"):
        shutil.copy(KUBECTL.source / name, source / name)
    _go(source, "get", "-t", *(f"{package}@{KUBERNETES_VERSION}" for package in (_TESTS, _AGNHOST)))


def _build_one(source: Path, program: _Program) -> None:
    print(f"{program.name}: building {KUBERNETES_VERSION}", file=sys.stderr)
    partial = program.path.with_suffix(".partial")
    _go(source, *program.verb, "-trimpath", "-ldflags", _STAMP, "-o", str(partial), program.package)
    partial.rename(program.path)


def _go(source: Path, *arguments: str) -> None:
    go = tools.go((KUBECTL.source / "go.mod").read_text())
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=mod -buildvcs=false"}
    subprocess.run([go, *arguments], cwd=source, env=environment, check=True)
