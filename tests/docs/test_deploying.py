"""What docs/deploying.md types is what happens."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program
from docs.pages import blocks
from navarch.api import Dynamic, Kind
from navarch.testing import Cluster
from project.small_project import forgotten_code, write_project

NAMESPACE = "cache-operator-system"
STEPS = ("connecting", "checking", "applying", "waiting", "restoring", "deleted ", "deleting")
PODS = Kind("", "v1", "Pod", plural="pods")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    """The command line in a project."""
    write_project(tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    with forgotten_code(), Program(tmp_path / "state", monkeypatch, capsys) as program:
        yield program


def is_shown(printed: str, shown: str) -> bool:
    """Whether the page shows what was printed; `…` stands for any lines, or for the end of one.

    Steps are left out: on a terminal they are one line that changes, and is gone at the end.
    """
    lines = [" ".join(line.split()) for line in printed.splitlines() if not line.startswith(STEPS)]
    wanted = re.escape("".join(f"{' '.join(line.split())}\n" for line in shown.splitlines()))
    pattern = wanted.replace("…\\\n", "(?:.*\n)*?").replace("…", ".*")
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


@pytest.mark.cluster(simulated=1)
async def test_console_shows_what_happens(
    program: Program, http_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command is run in its order; simulated pods run no operator, so the test takes the Lease as one of them."""
    assert http_cluster.access is not None
    (tmp_path / "kubeconfig").write_bytes(http_cluster.access.kubeconfig_file())
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    for block in blocks("deploying.md", "console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            if command.endswith("cache-operator:1.0"):
                assert program.run(*shlex.split(command)[1:], "--wait", "0").returncode == 0
                await lead(http_cluster)
            done = program.run(*shlex.split(command)[1:])
            printed = done.stderr + done.stdout if "undeploy" in command else done.stdout + done.stderr
            assert is_shown(printed, shown), f"{command}:\n{printed}"


async def lead(cluster: Cluster) -> None:
    """Takes the Lease in the name of a pod."""
    pods = await cluster.eventually(
        lambda: cluster.list(PODS, namespace=NAMESPACE), lambda found: len(found) == 2, what="two pods"
    )
    spec = {"holderIdentity": f"{pods[0].name}_1"}
    metadata = {"name": "cache-operator", "namespace": NAMESPACE}
    await cluster.apply(
        Dynamic({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})
    )
