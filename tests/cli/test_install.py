"""`navarch install` brings the CRDs of a project, `navarch uninstall` counts what it deletes, and asks."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program
from navarch.api import Dynamic
from navarch.cli import connection
from navarch.k8s.apiextensions.v1 import CustomResourceDefinition
from navarch.project.crd_installation import crds_of
from navarch.project.generate import load_deployment
from navarch.project.project import Project
from navarch.testing import Cluster
from project.small_project import PACKAGE, forgotten_code, write_project

REMEDY = 'start a cluster: eval "$(navarch cluster up)", or name another one: --kubeconfig FILE, --context NAME'
NAME = "memcacheds.cache.example.com"
API = f"src/{PACKAGE}/api/cache/v1alpha1/memcached.py"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, in which the commands run."""
    folder = tmp_path / "project"
    write_project(folder)
    monkeypatch.chdir(folder)
    with forgotten_code():
        yield folder


@pytest.fixture
async def kubeconfig(http_cluster: Cluster, tmp_path: Path) -> str:
    file = tmp_path / "kubeconfig"
    assert http_cluster.access is not None
    file.write_bytes(http_cluster.access.kubeconfig_file())
    return str(file)


def memcached(name: str, *finalizers: str) -> Dynamic:
    metadata = {"name": name, "finalizers": list(finalizers)}
    return Dynamic({"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": metadata, "spec": {}})


async def test_crds_are_installed_once_and_uninstalled_with_their_objects(
    program: Program, root: Path, http_cluster: Cluster, kubeconfig: str
) -> None:
    """A second install changes nothing; without a terminal, uninstall needs --yes."""
    where = ("--kubeconfig", kubeconfig)
    assert program.json("install", *where) == [{"crd": NAME, "result": "installed"}]
    assert program.json("install", *where) == [{"crd": NAME, "result": "unchanged"}]
    for name in ("a", "b"):
        await http_cluster.create(memcached(name))
    asked = program.run("uninstall", *where)
    assert asked.returncode == 1
    assert "whether to delete 1 CRDs with 2 objects, got no terminal; give --yes" in asked.stderr
    told = program.run("uninstall", "--yes", *where)
    assert (told.returncode, told.stdout) == (0, f"deleted  {NAME}  with 2 objects\n")
    assert program.json("uninstall", *where) == []


async def test_change_that_takes_something_away_is_refused(
    program: Program, root: Path, http_cluster: Cluster, kubeconfig: str
) -> None:
    """Until it is forced."""
    program.run("install", "--kubeconfig", kubeconfig)
    text = (root / API).read_text()
    (root / API).write_text(text.replace("    size: int = 1", "    count: int = 1"))
    with forgotten_code():
        pass
    refused = program.run("install", "--kubeconfig", kubeconfig)
    assert refused.returncode == 1
    assert "or accept the loss: navarch install --force" in refused.stderr
    assert program.json("install", "--force", "--kubeconfig", kubeconfig)[0]["result"] == "installed"


async def test_crd_of_another_manager_is_left_alone(
    program: Program, root: Path, http_cluster: Cluster, kubeconfig: str
) -> None:
    """By both commands, which name the manager."""
    (found,) = crds_of(load_deployment(Project.find(root)))
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    found["spec"]["versions"][0]["additionalPrinterColumns"] = [column]
    await http_cluster.client.using(manager="helm").install(found)
    refused = program.run("install", "--kubeconfig", kubeconfig)
    assert refused.returncode == 1
    assert "expected to manage it alone, but helm applied it" in refused.stderr
    kept = program.run("uninstall", "--yes", "--kubeconfig", kubeconfig)
    assert kept.returncode == 1
    assert f"{NAME} was applied by helm; remove them with that tool, or: navarch uninstall --force" in kept.stderr


async def test_missing_crds_of_other_projects_are_named(
    program: Program, root: Path, http_cluster: Cluster, kubeconfig: str
) -> None:
    """They come with their own projects: the command installs those of this project alone."""
    (root / f"src/{PACKAGE}/boats.py").write_text(
        "from navarch.api import Object\n\n\nclass Boat(Object, group='boats.example.org', version='v1'): ...\n"
    )
    file = root / f"src/{PACKAGE}/controllers/memcached.py"
    text = file.read_text().replace("owns=(ConfigMap,)", "owns=(ConfigMap,), reads=(Boat,)")
    file.write_text(text.replace("from navarch import", f"from {PACKAGE}.boats import Boat\nfrom navarch import", 1))
    told = program.run("install", "--kubeconfig", kubeconfig)
    assert told.returncode == 0, told.stderr
    assert [line.split() for line in told.stdout.splitlines()[1:]] == [
        [NAME, "installed"],
        ["boats.boats.example.org", "missing"],
    ]
    assert told.stderr == (
        "missing, from other projects: boats.boats.example.org (Boat v1, for controller memcached); install the projects that "
        "define them, or their CRDs alone: kubectl apply -f FILE\n"
    )
    names = [each.name async for each in http_cluster.client.list(CustomResourceDefinition)]
    assert names == [NAME]


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_kubeconfig_that_is_missing_is_told(command: str, program: Program, root: Path, tmp_path: Path) -> None:
    """In one line, without a traceback."""
    told = program.run(command, "--kubeconfig", str(tmp_path / "none"))
    assert told.returncode == 1
    assert told.stderr.startswith("error: ")
    assert told.stderr.count("\n") == 1
    assert str(tmp_path / "none") in told.stderr
    assert told.stderr.endswith(f"; {REMEDY}\n")


def test_unreachable_cluster_is_told(
    program: Program, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, without a traceback, and with the commands that help."""
    monkeypatch.setattr(connection, "_SECONDS", 0.2)
    file = tmp_path / "nowhere"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    )
    told = program.run("install", "--kubeconfig", str(file))
    assert told.returncode == 1
    assert told.stderr.startswith("error: ")
    assert told.stderr.count("\n") == 1
    assert "http://127.0.0.1:1" in told.stderr
    assert told.stderr.endswith(f"; {REMEDY}\n")


async def test_uninstall_asks_and_keeps_everything_without_a_yes(
    program: Program, root: Path, http_cluster: Cluster, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it has shown how many objects there are, and who applied the CRD."""
    where = ("--kubeconfig", kubeconfig)
    program.run("install", *where)
    await http_cluster.create(memcached("a", "example.com/held"))
    monkeypatch.setattr(sys, "stdin", _Terminal("n\n"))
    refused = program.run("uninstall", *where)
    assert refused.returncode == 1
    rows = [line.split() for line in refused.stderr.splitlines()]
    assert [NAME, "1", "1", "cache-operator"] in rows
    assert "Delete 1 CRDs with 1 objects?" in refused.stderr
    assert program.json("install", *where) == [{"crd": NAME, "result": "unchanged"}]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
