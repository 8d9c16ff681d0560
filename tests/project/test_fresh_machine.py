"""A scaffolded project on a fresh machine: Python, pip, make, and a wheel of navarch that no index has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_CREATE = "create api --group cache --version v1alpha1 --kind Memcached --image memcached:1.6-alpine --port 11211"


def run(command: list[str], folder: Path, **environment: str) -> str:
    """Runs the command without this repository's settings, and returns what it prints; fails if the command does."""
    clean = {name: os.environ[name] for name in os.environ.keys() - {"PYTHONPATH", "PYTEST_ADDOPTS", "VIRTUAL_ENV"}}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**clean, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}"
    return done.stdout


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the wheel of this repository."""
    folder = tmp_path / "wheels"
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], tmp_path)
    return folder


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_fresh_project_passes_make_test_lint(tmp_path: Path, wheels: Path) -> None:
    """navarch from the wheel writes a project whose own `make test lint manifests` installs everything and passes."""
    run([sys.executable, "-m", "venv", "tools"], tmp_path)
    find = {"PIP_FIND_LINKS": str(wheels)}
    run(["tools/bin/python", "-m", "pip", "install", "--quiet", "navarch[cli]"], tmp_path, **find)
    run(["tools/bin/navarch", "init", "cache-operator", "--domain", "example.com"], tmp_path)
    project = tmp_path / "cache-operator"
    run(["../tools/bin/navarch", *_CREATE.split()], project)
    said = run(["make", f"PYTHON={sys.executable}", "test", "lint", "manifests"], project, **find)
    assert "2 passed" in said
    assert (project / "config/crd/bases/cache.example.com_memcacheds.yaml").exists()
