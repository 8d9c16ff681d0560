"""`navarch generate models` reads files, clusters and documents, and reports to people and to programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from cli.programs import Program
from navarch.testing import Cluster
from project.models.sameness import differences, imported
from project.models.test_golden import GOLDEN, crds
from project.small_project import write_project

SHOP = GOLDEN / "shop.yaml"
MODULES = ["store_example_com/v1.py", "store_example_com/v1beta1.py"]
FILES = ["__init__.py", "store_example_com/__init__.py", *MODULES]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    found = tmp_path / "work"
    found.mkdir()
    monkeypatch.chdir(found)
    return found


@pytest.fixture
async def kubeconfig(http_cluster: Cluster, tmp_path: Path) -> str:
    """A cluster with two groups of CRDs."""
    for file in (SHOP, GOLDEN / "unusual.yaml"):
        for manifest in crds(file):
            await http_cluster.client.install(manifest)
    file = tmp_path / "kubeconfig"
    assert http_cluster.access is not None
    file.write_bytes(http_cluster.access.kubeconfig_file())
    return str(file)


def test_check_writes_nothing_and_names_stale_files(program: Program, folder: Path) -> None:
    """And passes after the files are written."""
    stale = program.run("generate", "models", str(SHOP), "--check")
    assert (stale.returncode, list(folder.iterdir())) == (1, [])
    assert "got stale ones: models/__init__.py, models/store_example_com/__init__.py" in stale.stderr
    assert program.json("generate", "models", str(SHOP))["written"] == FILES
    assert program.run("generate", "models", str(SHOP), "--check").returncode == 0
    assert (folder / "models" / MODULES[0]).read_text() == (GOLDEN / MODULES[0]).read_text()


def test_an_edited_module_is_named(program: Program, folder: Path) -> None:
    """With what to do about it."""
    program.run("generate", "models", str(SHOP))
    file = folder / "models" / MODULES[0]
    file.write_text("mine\n")
    told = program.run("generate", "models", str(SHOP))
    assert told.returncode == 1
    assert f"left alone: models/{MODULES[0]}; move your changes to a subclass" in told.stderr
    assert file.read_text() == "mine\n"


def test_a_project_has_its_models_in_its_package(program: Program, folder: Path) -> None:
    """From any folder of the project; elsewhere they are in the current one."""
    write_project(folder)
    found = program.json("generate", "models", str(SHOP))
    assert found["folder"] == f"src/{next((folder / 'src').iterdir()).name}/models"
    assert found["kinds"] == [
        {"apiVersion": "store.example.com/v1", "kind": "Shop"},
        {"apiVersion": "store.example.com/v1beta1", "kind": "Shop"},
    ]


def test_crds_come_from_standard_input(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `kubectl get crds -o json | navarch generate models -` sends them: one list."""
    items = [found for file in (SHOP, GOLDEN / "unusual.yaml") for found in crds(file)]
    sent = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    monkeypatch.setattr("sys.stdin", io.StringIO(sent))
    found = program.json("generate", "models", "-")
    assert [each["kind"] for each in found["kinds"]] == ["Shop", "Shop", "Rule", "EmptyRule"]


async def test_crds_of_a_cluster_are_those_of_its_files(program: Program, kubeconfig: str, folder: Path) -> None:
    """By the name of a CRD or of a kind, or all of a group; a real server has added defaults meanwhile."""
    for names, found in (
        (("shops.store.example.com",), ["Shop", "Shop"]),
        (("Shop", "class.example.com"), ["EmptyRule", "Rule", "Shop", "Shop"]),
    ):
        chosen = [argument for name in names for argument in ("--from-cluster", name)]
        told = program.json("generate", "models", *chosen, "--kubeconfig", kubeconfig)
        assert sorted(each["kind"] for each in told["kinds"]) == found
    with imported(folder / "models") as models:
        for file in (SHOP, GOLDEN / "unusual.yaml"):
            for manifest in crds(file):
                assert differences(manifest, models.classes_of(manifest)) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "crd.yaml:1: expected YAML, got something else"),
        ("kind: ConfigMap\napiVersion: v1\n", "expected CustomResourceDefinitions, got ConfigMap"),
        ("just: text", "expected CustomResourceDefinitions, got no object"),
        ("", "expected CustomResourceDefinitions, got no object"),
        (SHOP.read_text().replace("k8s.io/v1", "k8s.io/v1beta1"), "expected apiVersion apiextensions.k8s.io/v1, got"),
        (
            f"{SHOP.read_text()}\n---\n{SHOP.read_text()}",
            "expected one CRD of Shop (store.example.com/v1), got another",
        ),
    ],
    ids=["broken", "other", "no-object", "empty", "old", "twice"],
)
def test_a_file_without_classes_is_refused(program: Program, folder: Path, content: str, message: str) -> None:
    """In one sentence, and nothing is written."""
    Path("crd.yaml").write_text(content)
    told = program.run("generate", "models", "crd.yaml")
    assert told.returncode == 1
    assert message in told.stderr
    assert not (folder / "models").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected CRDs, got none; give files with CRDs, --from-cluster with names of CRDs, or --openapi"),
        (("missing.yaml",), "cannot read missing.yaml"),
        (("--openapi", "missing.json"), "missing.json"),
        (("--from-cluster", "Shop", "--kubeconfig", "missing"), "missing"),
    ],
)
def test_a_source_that_is_not_there_is_refused(program: Program, arguments: tuple[str, ...], message: str) -> None:
    """In one sentence."""
    told = program.run("generate", "models", *arguments)
    assert told.returncode == 1
    assert message in told.stderr
    assert "Traceback" not in told.stderr


def test_a_cluster_that_is_not_there_is_refused(program: Program, folder: Path, tmp_path: Path) -> None:
    """With its address."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    told = program.run("generate", "models", "--from-cluster", "Shop", "--kubeconfig", str(tmp_path / "config"))
    assert told.returncode == 1
    assert "127.0.0.1:1" in told.stderr
    assert not (folder / "models").exists()


async def test_a_name_that_no_crd_has_is_refused(program: Program, kubeconfig: str) -> None:
    """With those that there are."""
    told = program.run("generate", "models", "--from-cluster", "Cupboard", "--kubeconfig", kubeconfig)
    assert told.returncode == 1
    assert "Cupboard" in told.stderr
    assert "shops.store.example.com" in told.stderr
