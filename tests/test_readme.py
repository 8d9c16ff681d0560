"""The README's own code, executed."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import rig
from memcached_operator.controllers import memcached
from navarch.testing import Cluster

README = Path(__file__).parent.parent / "README.md"
EXAMPLE = README.parent / "examples" / "memcached" / "src" / "memcached_operator"


def blocks(language: str) -> list[str]:
    """The README's code blocks of one language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def readme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The README's Python as a module."""
    source = tmp_path_factory.mktemp("readme") / "readme.py"
    source.write_text("\n".join(blocks("python")))
    spec = importlib.util.spec_from_file_location("readme", source)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["readme"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["readme"]


def is_part_of(part: Any, whole: Any) -> bool:
    """Whether everything in `part` stands in `whole` too."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_part_of(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(is_part_of, part, whole))
    return bool(part == whole)


def test_operator_in_the_readme_is_the_example() -> None:
    """Every class and function of it, word by word."""
    shown, example = _declared(blocks("python")[0]), _declared(_source_of_the_example())
    assert {"Memcached", "reconcile", "farewell"} <= shown.keys()
    assert {name: example.get(name) for name in shown} == shown


def _source_of_the_example() -> str:
    files = ("api/cache/v1alpha1/memcached.py", "controllers/memcached.py")
    return "\n".join((EXAMPLE / file).read_text() for file in files)


def _declared(source: str) -> dict[str, str]:
    """What a file declares, by name, however it is laid out."""
    found = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef)]
    return {node.name: ast.dump(node) for node in found}


def test_crd_in_the_readme_is_what_the_class_makes(readme: ModuleType) -> None:
    """The YAML beside the class is the class's CRD, but for the parts the text says it leaves out."""
    (shown,) = map(yaml.safe_load, blocks("yaml"))
    made = readme.crd(readme.Memcached)
    assert is_part_of(shown, made), f"expected the README's CRD to be part of {yaml.safe_dump(made)}"
    del made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].keys() == {
        "apiVersion",
        "kind",
        "metadata",
        "spec",
    }


async def test_test_in_the_readme_passes(readme: ModuleType, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the two functions that the example adds."""
    for name in ("deployment", "selector"):
        monkeypatch.setattr(readme, name, getattr(memcached, name), raising=False)
    await readme.test_scales_to_the_size_asked_for(cluster)


@pytest.mark.real
async def test_client_code_in_the_readme_runs(
    readme: ModuleType, rig_cluster: rig.Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client's example does what its comments say on a real cluster."""
    monkeypatch.setenv("KUBECONFIG", str(rig_cluster.kubeconfig))
    await readme.main()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("3 "), f"expected the applied size first, got {printed}"
    assert printed[-1] == "MODIFIED cache 5"
