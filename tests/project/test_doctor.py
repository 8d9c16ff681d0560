"""The checks of `navarch doctor`: each names its fault and the command that fixes it, and ends in time."""

from __future__ import annotations

import importlib.util
import os
import sys
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import rig
from navarch import Resource, Spec, Status
from navarch._base.clock import ManualClock, SystemClock
from navarch.api import Object
from navarch.k8s.core.v1 import ConfigMap
from navarch.operator import Operator
from navarch.operator.crds import CrdFindings, SchemaDifference
from navarch.project.doctor import cluster_state, environment
from navarch.project.doctor.finding import time_limit
from navarch.project.doctor.project_state import ProjectState, check_project
from navarch.schema import crd
from navarch.testing import Cluster
from project.scaffolded import cache_project
from run_projects import PROJECT, write_project


def states(findings: Any) -> dict[str, str]:
    """Returns the states by their checks."""
    return {each.check: each.state for each in findings}


def test_missing_extra_is_a_fault_only_if_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fix installs it."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "cryptography" else found(name))
    assert states(environment.check_extras())["extra webhook"] == "warn"
    needed = {each.check: each for each in environment.check_extras(frozenset({"webhook"}))}
    assert needed["extra webhook"].state == "fail"
    assert needed["extra webhook"].fix == "pip install 'navarch[webhook]'"
    assert needed["extra cli"].state == "ok"


@pytest.mark.parametrize(
    ("program", "state", "detail"),
    [
        ("""echo '{"clientVersion": {"gitVersion": "v1.35.1", "minor": "35"}}'""", "ok", "v1.35.1 at "),
        (
            """echo '{"clientVersion": {"gitVersion": "v1.32.0", "minor": "32+"}}'""",
            "warn",
            "more than one minor version",
        ),
        ("echo nonsense", "warn", "does not tell its version"),
        ("exit 3", "warn", "does not tell its version"),
        ("exec sleep 600", "warn", "timed out"),
    ],
)
def test_kubectl_of_any_kind_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, state: str, detail: str
) -> None:
    """Also one that is too old, broken or does not answer."""
    file = tmp_path / "kubectl"
    file.write_text(f"#!/bin/sh\n{program}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(environment, "_KUBECTL_SECONDS", 0.2 if "sleep" in program else 60.0)
    found = environment.check_kubectl(36)
    assert (found.state, detail in found.detail) == (state, True), found
    assert bool(found.fix) == (state != "ok")


def test_no_kubectl_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here needs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.check_kubectl(None).state == "warn"


@pytest.mark.parametrize(
    ("seconds", "state", "detail"),
    [
        (0, "ok", "as the server's"),
        (4, "ok", "as the server's"),
        (30, "warn", "30 s behind the server's"),
        (-30, "warn", "29 s ahead of the server's"),
        (3600, "fail", "3600 s behind the server's"),
    ],
)
def test_clock_is_compared_with_the_date_of_answers(seconds: float, state: str, detail: str) -> None:
    """A header has whole seconds: the benefit of the doubt is the machine's."""
    clock = ManualClock()
    dates = cluster_state._Dates(clock)
    dates.note(format_datetime(clock.now() + timedelta(seconds=seconds), usegmt=True), sent=clock.now())
    found = cluster_state._clock_finding(dates.skew)
    assert (found.state, found.detail) == (state, detail)


def test_server_without_a_clock_is_a_warning() -> None:
    """Neither no header nor a broken one is taken for a time."""
    dates = cluster_state._Dates(ManualClock())
    dates.note("yesterday", sent=dates.now())
    assert cluster_state._clock_finding(dates.skew).state == "warn"


@pytest.mark.parametrize(
    ("found", "state", "detail"),
    [
        (CrdFindings([], [], []), "ok", "2 installed"),
        (CrdFindings(["a.example.com (A v1)"], [], []), "fail", "not installed: a.example.com (A v1)"),
        (CrdFindings([], ["a: expected scope Cluster"], []), "fail", "expected scope Cluster"),
        (CrdFindings([], [], [SchemaDifference("a", "v1", "spec.size")]), "warn", "a v1 at spec.size"),
    ],
)
def test_crds_are_installed_by_one_command(found: CrdFindings, state: str, detail: str) -> None:
    """Missing, unfit and different ones."""
    finding = cluster_state._crd_finding(found, 2)
    assert (finding.state, detail in finding.detail) == (state, True)
    assert finding.fix == ("" if state == "ok" else "navarch install")


async def test_unusable_kubeconfig_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that starts a cluster helps."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    found = await cluster_state.check_cluster(None, ProjectState(), ManualClock())
    assert [(each.check, each.state, each.fix) for each in found.findings] == [
        ("cluster", "fail", 'eval "$(navarch cluster up)"')
    ]


async def test_token_that_is_refused_is_told_from_a_server_that_does_not_answer(
    http_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expired token is renewed, a missing server started; with the right token all is well."""
    assert http_cluster.access is not None
    config, file = yaml.safe_load(http_cluster.access.kubeconfig_file()), tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(file))
    file.write_text(yaml.safe_dump(config))
    found = await cluster_state.check_cluster(None, ProjectState(), SystemClock())
    assert states(found.findings) == {"cluster": "ok", "clock": "ok"}
    assert found.minor == 36
    config["users"][0]["user"] = {"token": "expired"}
    file.write_text(yaml.safe_dump(config))
    (finding,) = (await cluster_state.check_cluster(None, ProjectState(), SystemClock())).findings
    assert (finding.state, "log in again" in finding.fix) == ("fail", True)
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    file.write_text(yaml.safe_dump(config))
    monkeypatch.setattr(cluster_state, "_SECONDS", 0.2)
    (finding,) = (await cluster_state.check_cluster(None, ProjectState(), SystemClock())).findings
    assert (finding.state, finding.fix) == ("fail", 'eval "$(navarch cluster up)"')


@pytest.mark.real
async def test_real_cluster_answers_and_has_a_clock(rig_cluster: rig.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version and its Date are read as the embedded one's."""
    monkeypatch.setenv("KUBECONFIG", str(rig_cluster.kubeconfig))
    found = await cluster_state.check_cluster(None, ProjectState(), SystemClock())
    assert states(found.findings) == {"cluster": "ok", "clock": "ok"}
    assert found.minor == 36


class JarV1(Resource[Spec, Status], kind="Jar", group="larder.example.com", version="v1"):
    """The stored version."""


class JarV2(Resource[Spec, Status], kind="Jar", group="larder.example.com", version="v2", storage=False):
    """The next version."""


async def test_versions_of_a_kind_are_one_crd(cluster: Cluster) -> None:
    """The number is that of CRDs, as navarch install lists them."""
    await cluster.client.install(crd(JarV1, JarV2))
    project = ProjectState(operator=Operator("larder", crds="verify"), kinds=[JarV1, JarV2])
    finding = await cluster_state._check_crds(cluster.client, project, SystemClock())
    assert (finding.state, finding.detail) == ("ok", "1 installed, with the schemas of the code")


class Lease(Object, kind="Lease", group="boats.example.org", version="v1"):
    """A kind of another project."""


async def test_missing_crds_of_other_projects_are_listed(cluster: Cluster) -> None:
    """With the controller that needs them; navarch install does not bring them, so the fix is another command."""
    operator = Operator("harbour", crds="verify")
    operator.controller(ConfigMap, reads=(Lease,), name="berths")(lambda _config, _ctx: None)
    project = ProjectState(operator=operator)
    (finding,) = await cluster_state._check_foreign_kinds(cluster.client, project, SystemClock())
    assert (finding.state, finding.detail) == (
        "fail",
        "not installed: leases.boats.example.org (Lease v1, for controller berths)",
    )
    assert finding.fix.endswith("kubectl apply -f FILE")
    await cluster.client.install(crd(Lease))
    (finding,) = await cluster_state._check_foreign_kinds(cluster.client, project, SystemClock())
    assert (finding.state, finding.detail) == ("ok", "all 1 that the operator needs")


async def test_operator_without_kinds_of_others_has_no_such_finding(cluster: Cluster) -> None:
    """Kinds of Kubernetes, and those of the project, are not of others."""
    operator = Operator("larder", crds="verify")
    operator.controller(JarV1, owns=(ConfigMap,))(lambda _jar, _ctx: None)
    assert (
        await cluster_state._check_foreign_kinds(cluster.client, ProjectState(operator=operator), SystemClock()) == []
    )


async def test_missing_permissions_are_listed(cluster: Cluster) -> None:
    """The first ones by name; the administrator has all."""
    operator = Operator("probe-operator", crds="verify")
    operator.controller(ConfigMap)(lambda _config, _ctx: None)
    finding = await cluster_state._check_permissions(cluster.client_as("nobody"), operator, SystemClock())
    assert finding.state == "fail"
    assert finding.detail.startswith("missing: ")
    assert "configmaps" in finding.detail
    assert (await cluster_state._check_permissions(cluster.client, operator, SystemClock())).state == "ok"


def test_folder_without_a_project_is_a_warning(tmp_path: Path) -> None:
    """A broken PROJECT is a fault."""
    (finding,) = check_project(tmp_path).findings
    assert (finding.state, finding.fix) == ("warn", "navarch init NAME --domain example.com")
    (tmp_path / "PROJECT").write_text(PROJECT.replace('"3"', '"9"'))
    (finding,) = check_project(tmp_path).findings
    assert finding.state == "fail"
    assert "expected version" in finding.detail


def test_code_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its file and line; what follows from the code is not checked then."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("probe_operator", "probe_operator.controllers"):  # forgotten before the import, and after the test
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    file = write_project(tmp_path, "1 +\n")
    found = check_project(tmp_path)
    assert states(found.findings) == {"project": "ok", "operator": "fail"}
    assert f"{file}:1" in found.findings[-1].detail


def test_templates_and_open_conflicts_are_told(tmp_path: Path) -> None:
    """A new project is up to date; a template that changed since is a warning, an open conflict a fault."""
    root = cache_project(tmp_path / "project").root
    assert states(check_project(root).findings)["templates"] == "ok"
    for file in (root / "Makefile", root / ".navarch" / "pristine" / "Makefile"):
        file.write_text("older\n")
    found = {each.check: each for each in check_project(root).findings}["templates"]
    assert (found.state, found.fix) == ("warn", "navarch update")
    (root / "Makefile.new").write_text("")
    found = {each.check: each for each in check_project(root).findings}["templates"]
    assert (found.state, found.detail) == ("fail", "open conflicts of navarch update: Makefile")


def test_code_of_others_has_a_time_limit() -> None:
    """Also while it waits for something that never comes."""
    reader, writer = os.pipe()
    try:
        with (
            pytest.raises(TimeoutError, match=r"the import did not end within 0\.05 s"),
            time_limit(0.05, "the import"),
        ):
            os.read(reader, 1)
    finally:
        os.close(reader)
        os.close(writer)
