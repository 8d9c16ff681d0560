"""Our projects: how they are begun, and which of their files belong to the user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

_NAVARCH: Final = Path(sys.executable).with_name("navarch")
_RECORDS: Final = (".navarch/", "PROJECT", "bin/")
_ROLES: Final = ("role", "leader_election_role", "metrics_auth_role")


def init(folder: Path) -> None:
    """Begins a project in the folder."""
    navarch(folder, "init", "--domain", "example.com")


def create_api(folder: Path) -> None:
    """Adds a kind whose controller runs memcached."""
    kind = ("--group", "cache", "--version", "v1alpha1", "--kind", "Memcached", "--resource", "--controller")
    navarch(folder, "create", "api", *kind, "--image", "memcached:1.6-alpine", "--port", "11211")


def owned_files(folder: Path) -> Iterator[Path]:
    """Yields the files that no generator rewrites."""
    record = folder / ".navarch" / "generated.json"
    generated = {path for part in json.loads(record.read_text()).values() for path in part}
    for file in sorted(folder.rglob("*")):
        path = str(file.relative_to(folder))
        is_own = path not in generated and not path.startswith(_RECORDS) and "__pycache__" not in file.parts
        if is_own and file.is_file() and not file.is_symlink():
            yield file


def roles(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the roles that are bound to the operator's ServiceAccount."""
    for name in _ROLES:
        found = yaml.safe_load_all((folder / "config" / "rbac" / f"{name}.yaml").read_text())
        yield from (each for each in found if "rules" in each)


def navarch(folder: Path, *arguments: str) -> None:
    """Runs the command `navarch` in the folder."""
    command = [str(_NAVARCH), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


@contextmanager
def cluster(place: Path, folder: Path) -> Iterator[None]:
    """An embedded cluster with the project's CRDs and its sample; commands inside of the block find it."""
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    os.environ["KUBECONFIG"] = str(place / "kubeconfig")
    navarch(folder, "cluster", "up", "--name", "bench")
    try:
        config = subprocess.run(
            [_NAVARCH, "cluster", "kubeconfig", "--name", "bench"], check=True, capture_output=True, text=True
        )
        os.environ["KUBECONFIG"] = config.stdout.strip()
        navarch(folder, "install")
        navarch(folder, "cluster", "load", "config/samples/cache_v1alpha1_memcached.yaml", "--name", "bench")
        yield
    finally:
        navarch(folder, "cluster", "down", "--name", "bench", "--delete")
        del os.environ["XDG_STATE_HOME"], os.environ["KUBECONFIG"]
