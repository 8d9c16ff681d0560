"""Scaffolded projects, as tests have them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from navarch.project.project import Project
from navarch.project.scaffold.create_api import NewApi, create_api
from navarch.project.scaffold.init import init_project
from navarch.project.scaffold.scaffolds import ProjectScaffold

CACHE = ProjectScaffold(name="cache-operator", domain="example.com")
MEMCACHED = NewApi(group="cache", version="v1alpha1", kind="Memcached", image="memcached:1.6-alpine", port=11211)
PLAIN = NewApi(group="cache", version="v1alpha1", kind="Plain")


def cache_project(folder: Path, *apis: NewApi) -> Project:
    """Returns a new project `cache-operator` in that folder, with these kinds."""
    project = init_project(folder, CACHE, namespaced=False).project
    for api in apis:
        project = create_api(project, api).project
    return project


def run_module(project: Project, module: str, *arguments: str) -> str:
    """Runs a module with this Python in the project, and returns what it prints; fails if the module does."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=project.root,
        env={name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTEST_ADDOPTS"}},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{module} {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
    return done.stdout


def files_of(root: Path) -> dict[str, str]:
    """Returns all files of a folder."""
    return {
        file.relative_to(root).as_posix(): file.read_text()
        for file in root.rglob("*")
        if file.is_file() and not file.is_symlink() and "__pycache__" not in file.parts
    }
