"""`navarch doctor` prints a line for each check, and what fixes each fault."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from navarch.testing import Cluster
from run_projects import OF_KIND, SECONDS, write_project


def navarch(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the folder."""
    return subprocess.run(
        [sys.executable, "-m", "navarch", *arguments],
        cwd=root,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


async def test_doctor_names_what_is_missing_and_the_command_that_fixes_it(
    tmp_path: Path, http_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster without the project's CRDs; once they are there, nothing fails."""
    write_project(tmp_path, OF_KIND)
    assert http_cluster.access is not None
    (tmp_path / "kubeconfig").write_bytes(http_cluster.access.kubeconfig_file())
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    done = navarch(tmp_path, "doctor", "--output", "json")
    assert done.returncode == 1, done.stderr
    found = {each["check"]: each for each in json.loads(done.stdout)}
    assert {name for name, each in found.items() if each["state"] == "fail"} == {"CRDs"}
    assert found["CRDs"]["fix"] == "navarch install"
    assert found["operator"]["detail"] == "probe-operator: 1 controller"
    assert found["generated files"]["fix"] == "navarch generate"
    assert found["cluster"]["detail"].startswith("v1.")
    assert (found["clock"]["state"], found["permissions"]["state"]) == ("ok", "ok")
    assert navarch(tmp_path, *shlex.split(found["CRDs"]["fix"])[1:]).returncode == 0
    done = navarch(tmp_path, "doctor")
    assert done.returncode == 0, done.stdout
    assert "fail" not in done.stdout


def test_doctor_fails_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer is one line, with the command that starts one."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    done = navarch(tmp_path, "doctor")
    assert done.returncode == 1
    assert '-> eval "$(navarch cluster up)"' in done.stdout
    assert "-> navarch init NAME --domain example.com" in done.stdout
    assert "Traceback" not in done.stderr
