"""kubebuilder, built through the Go module proxy, and the projects that it makes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from rig.build import build
from rig.programs import Program

VERSION: Final = "v4.15.0"
_SOURCE: Final = Path(__file__).parent / "kubebuilder"
_REWRITTEN: Final = ("config/crd/bases/", "config/rbac/role.yaml", "go.sum", "bin/", "PROJECT")
"""What `make manifests generate` and the tool itself write again, and what it downloads."""
_GENERATED: Final = "zz_generated"


class _Kubebuilder(Program):
    @property
    def source(self) -> Path:
        """The folder of the Go module that pins its version."""
        return _SOURCE


KUBEBUILDER: Final = _Kubebuilder("kubebuilder", "benchmark", "sigs.k8s.io/kubebuilder/v4", VERSION)


def prepare() -> None:
    """Builds kubebuilder; raises MissingToolError, with the command that installs it, if there is no Go."""
    build([KUBEBUILDER])


def init(folder: Path) -> None:
    """Begins a project in the folder."""
    _run(folder, "init", "--domain", "example.com", "--repo", "example.com/memcached-operator")


def create_api(folder: Path) -> None:
    """Adds a kind whose controller runs memcached."""
    image = ("--image", "memcached:1.6-alpine", "--image-container-port", "11211", "--plugins", "deploy-image/v1-alpha")
    _run(folder, "create", "api", "--group", "cache", "--version", "v1alpha1", "--kind", "Memcached", *image)


def owned_files(folder: Path) -> Iterator[Path]:
    """Yields the files that no generator rewrites."""
    for file in sorted(folder.rglob("*")):
        path = str(file.relative_to(folder))
        if file.is_file() and _GENERATED not in path and not path.startswith(_REWRITTEN):
            yield file


def roles(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the roles that are bound to the operator's ServiceAccount."""
    for name in ("role", "leader_election_role", "metrics_auth_role"):
        yield from yaml.safe_load_all((folder / "config" / "rbac" / f"{name}.yaml").read_text())


def _run(folder: Path, *arguments: str) -> None:
    command = [str(KUBEBUILDER.path), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
