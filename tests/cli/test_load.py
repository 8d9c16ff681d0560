"""`navarch cluster load` applies manifests of all kinds in the order of their dependencies."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.programs import Program
from navarch.api import Dynamic
from navarch.cli.manifest_loader import load
from navarch.cli.manifests import ManifestDocument, documents
from navarch.client import Client, MergePatch, Request, Response, Transport
from navarch.errors import ConfigError
from navarch.k8s.core.v1 import Pod
from navarch.testing import Cluster

MIXED = """\
# what needs others comes first, on purpose
apiVersion: v1
kind: Pod
metadata: {name: single, namespace: shop}
spec: {containers: [{name: main, image: pause}]}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: first, namespace: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: a}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Writes a file, and returns its path."""

    def write(text: str, name: str = "all.yaml") -> str:
        file = tmp_path / "manifests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return str(file)

    return write


async def results(cluster: Cluster, *paths: str) -> dict[str, str]:
    return {f"{each.kind} {each.name}": each.result for each in await load(cluster.client, documents(paths))}


async def test_what_others_need_comes_first(cluster: Cluster, written: Callable[..., str]) -> None:
    """Namespaces come first, then CRDs until they are served, then the rest; existing objects are reported as such."""
    file = written(MIXED)
    created = await results(cluster, file)
    assert list(created) == [
        "Namespace shop",
        "CustomResourceDefinition widgets.example.com",
        "Pod single",
        "Widget first",
    ]
    assert set(created.values()) == {"created"}
    assert set((await results(cluster, file)).values()) == {"unchanged"}
    changed = await results(cluster, written(MIXED.replace("team: a", "team: b")))
    assert [name for name, result in changed.items() if result == "configured"] == ["Namespace shop"]


class Accompanied:
    """A transport with a controller beside it: the status of a pod is written as soon as the pod was applied."""

    def __init__(self, inner: Transport, client: Client) -> None:
        self._inner = inner
        self._client = client
        self.origin = inner.origin
        self.host = inner.host
        self.connect = inner.connect
        self.close = inner.close

    async def send(self, request: Request) -> Response:
        answer = await self._inner.send(request)
        if request.method == "PATCH" and request.path.endswith("/pods/single"):
            status = MergePatch({"status": {"message": "somebody looked at it"}})
            await self._client.patch(Pod, "single", status, namespace="shop", subresource="status")
        return answer


async def test_what_controllers_write_meanwhile_is_no_change(cluster: Cluster, written: Callable[..., str]) -> None:
    """Only changes of the requested fields count as a change."""
    file = written(MIXED)
    await results(cluster, file)
    client = cluster.client.through(lambda inner: Accompanied(inner, cluster.client))
    assert {each.result for each in await load(client, documents([file]))} == {"unchanged"}
    found = await cluster.get(Pod, "single", namespace="shop")
    assert found.status.message == "somebody looked at it"


async def test_one_that_fails_does_not_hold_up_the_others(cluster: Cluster, written: Callable[..., str]) -> None:
    """Each failed document has its error and its line; the others are applied."""
    file = written(
        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: good}\n"
        "---\n\n# the next one is misspelt\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndatta: {}\n"
        "---\napiVersion: example.com/v9\nkind: Unknown\nmetadata: {name: x}\n"
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n"
    )
    done = await load(cluster.client, documents([file]))
    assert [(each.line, each.result) for each in done] == [
        (1, "created"),
        (7, "failed"),
        (16, "failed"),
        (12, "failed"),
    ]
    assert "datta" in done[1].error
    assert "generateName" in done[2].error


def faults(found: list[ManifestDocument]) -> Iterator[tuple[int, str]]:
    for document in found:
        if document.object is None:
            yield document.line, document.fault


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: b\n---\nfoo: [\n", 3, "expected YAML"),
        ("---\n---\n\n- 1\n", 4, "expected an object with apiVersion and kind, got a list"),
        ("kind: ConfigMap\n", 1, "got one with kind"),
        ('{"kind": "ConfigMap"\n', 1, "expected JSON"),
        ("a: &a [*a]\n", 1, "anchor"),
        (f"a: {'[' * 300}{']' * 300}\n", 1, "depth"),
    ],
    ids=["yaml", "list", "half", "json", "circle", "deep"],
)
def test_what_is_no_manifest_is_said_with_its_line(
    written: Callable[..., str], text: str, line: int, said: str
) -> None:
    """A document that cannot be parsed has a fault; the others are read."""
    found = dict(faults(documents([written(text)])))
    assert said in found[line]


def test_documents_are_found_in_files_folders_and_the_standard_input(
    written: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML streams, JSON sequences and Lists are read from files, folders and standard input."""
    one, two = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("one", "two"))
    written(json.dumps(one) + "\n" + json.dumps(two, indent=2), "deep/b.json")
    written(json.dumps({"apiVersion": "v1", "kind": "List", "items": [one, two]}), "a.yml")
    written("no manifest", "notes.txt")
    folder = str(Path(written("", "empty.yaml")).parent)
    monkeypatch.setattr(sys, "stdin", io.StringIO("kind: X\napiVersion: v1\nmetadata: {name: 2030-01-01}\n"))
    found = documents([folder, "-"])
    assert [(Path(each.file).name, each.line, name_of(each)) for each in found] == [
        ("a.yml", 1, "one"),
        ("a.yml", 1, "two"),
        ("b.json", 1, "one"),
        ("b.json", 2, "two"),
        ("standard input", 1, "2030-01-01"),
    ]


def name_of(document: ManifestDocument) -> str:
    assert isinstance(document.object, Dynamic)
    return document.object.name


@pytest.mark.parametrize("path", ["nowhere.yaml", "."])
def test_a_path_that_leads_to_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """A missing file and a folder without manifests are errors."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot read|without any file"):
        documents([path])


def test_load_prints_what_became_of_each(program: Program, written: Callable[..., str]) -> None:
    """The command prints a table or JSON; the exit code is 1 if a document failed, with its file and line."""
    program.run("cluster", "up", "--name", "dev", "--nodes", "0")
    file = written(MIXED)
    shown = program.run("cluster", "load", "--name", "dev", file)
    assert shown.returncode == 0, shown.stderr
    assert ["Widget", "shop", "first", "created", f"{file}:7"] in [line.split() for line in shown.stdout.splitlines()]
    rows: list[dict[str, Any]] = program.json("cluster", "load", "--name", "dev", file)
    assert {row["result"] for row in rows} == {"unchanged"}
    failed = program.run("cluster", "load", "--name", "dev", written("kind: X\napiVersion: v1\nmetadata: {name: x}\n"))
    assert failed.returncode == 1
    assert f"{file}:1: expected v1 to serve X" in failed.stderr
    assert "error: 1 of 1 documents were not applied" in failed.stderr
    assert (
        f"there are no objects in {file}"
        in program.run("cluster", "load", "--name", "dev", written("# later\n")).stdout
    )
