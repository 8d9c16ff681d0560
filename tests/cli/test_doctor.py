"""`navarch doctor` prints a line for each check, and what fixes each fault."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program
from navarch.testing import Cluster
from project.small_project import forgotten_code
from run_projects import OF_KIND, write_project


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """The next test imports its own project."""
    with forgotten_code("probe_operator"):
        yield


async def test_doctor_names_what_is_missing_and_the_command_that_fixes_it(
    tmp_path: Path, program: Program, http_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster without the project's CRDs; once they are there, nothing fails."""
    write_project(tmp_path, OF_KIND)
    monkeypatch.chdir(tmp_path)
    assert http_cluster.access is not None
    (tmp_path / "kubeconfig").write_bytes(http_cluster.access.kubeconfig_file())
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    done = program.run("doctor", "--output", "json")
    assert done.returncode == 1, done.stderr
    found = {each["check"]: each for each in json.loads(done.stdout)}
    assert {name for name, each in found.items() if each["state"] == "fail"} == {"CRDs"}
    assert found["CRDs"]["fix"] == "navarch install"
    assert found["operator"]["detail"] == "probe-operator: 1 controller"
    assert found["generated files"]["fix"] == "navarch generate"
    assert found["cluster"]["detail"].startswith("v1.")
    assert (found["clock"]["state"], found["permissions"]["state"]) == ("ok", "ok")
    assert program.run(*shlex.split(found["CRDs"]["fix"])[1:]).returncode == 0
    done = program.run("doctor")
    assert done.returncode == 0, done.stdout
    assert "fail" not in done.stdout


def test_doctor_fails_without_a_cluster(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer is one line, with the command that starts one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    done = program.run("doctor")
    assert done.returncode == 1
    assert '-> eval "$(navarch cluster up)"' in done.stdout
    assert "-> navarch init NAME --domain example.com" in done.stdout
    assert "Traceback" not in done.stderr
