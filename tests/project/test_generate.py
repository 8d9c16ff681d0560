"""`generate` renders the deployment of a project: the same bytes each time, and never over an edited file."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from navarch import observe
from navarch.errors import ConfigError, DefinitionError
from navarch.operator.roles import Permission
from navarch.project import files as project_files
from navarch.project.dashboards import panels
from navarch.project.generate import generate, load_deployment
from navarch.project.manifests.alerts import alerts
from navarch.project.permissions import granted_to
from navarch.project.project import Project
from project.small_project import CONTROLLER, PACKAGE, write_project

GOLDEN = Path(__file__).parent / "golden"
FULL = 'certificates = "cert-manager"\nprometheus = true\nnetwork-policy = true\nreplicas = 3\nimage = "example.com/cache:1.0"'


def generated(root: Path) -> dict[str, str]:
    """The generated files on disk, by path."""
    found = (each for folder in ("config", "dist", "grafana") for each in (root / folder).rglob("*") if each.is_file())
    return {str(each.relative_to(root)): each.read_text() for each in sorted(found)}


def installed(root: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The objects of dist/install.yaml by kind and name."""
    found = yaml.safe_load_all((root / "dist/install.yaml").read_text())
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def write_patch(root: Path, text: str, name: str = "own.yaml") -> None:
    (root / "config/patches").mkdir(parents=True, exist_ok=True)
    (root / "config/patches" / name).write_text(text)


@pytest.mark.parametrize("case", ["small", "full", "namespaced"])
def test_files_are_as_in_the_golden_folder(case: str, tmp_path: Path) -> None:
    """`NAVARCH_GOLDEN=update` writes them anew."""
    match case:
        case "full":
            project = write_project(tmp_path, settings=FULL, webhook=True)
        case _:
            project = write_project(tmp_path, namespaced=case == "namespaced")
    generate(project)
    found = generated(tmp_path)
    folder = GOLDEN / case
    if case != "small":  # the kustomize folders have the same objects
        found = {path: text for path, text in found.items() if not path.startswith("config/")}
    if os.environ.get("NAVARCH_GOLDEN") == "update":
        for path, text in found.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    wanted = {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}
    assert sorted(found) == sorted(wanted)
    for path, text in found.items():
        assert text == wanted[path], path


def test_two_runs_have_the_same_bytes(tmp_path: Path) -> None:
    """The second one writes nothing, and the check passes."""
    project = write_project(tmp_path, webhook=True)
    first = generate(project)
    before = generated(tmp_path)
    assert all(report.written for report in first.values())
    assert not any(report.written or report.edited or report.removed for report in generate(project).values())
    assert not any(report.written for report in generate(project, check=True).values())
    assert generated(tmp_path) == before


@pytest.mark.parametrize("files", [0, 1, 12, 40])
def test_interrupted_run_is_completed_by_the_next(files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it was able to write: no file is taken for an edited one."""
    project = write_project(tmp_path)
    generate(project, ["crd"])
    (tmp_path / "pyproject.toml").write_text("[tool.navarch]\nreplicas = 5\n")
    changed = Project.find(tmp_path)
    write = project_files._write
    left = iter([True] * files)

    def interrupted(file: Path, content: str) -> bool:
        if not next(left, False):
            raise KeyboardInterrupt
        return write(file, content)

    monkeypatch.setattr(project_files, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        generate(changed)
    monkeypatch.setattr(project_files, "_write", write)
    assert not [path for report in generate(changed).values() for path in report.edited]
    assert not any(report.written for report in generate(changed, check=True).values())


def test_edited_file_is_reported_and_left_alone(tmp_path: Path) -> None:
    """All others are written."""
    project = write_project(tmp_path)
    generate(project)
    edited = tmp_path / "config/manager/manager.yaml"
    edited.write_text(edited.read_text() + "# mine\n")
    (tmp_path / "pyproject.toml").write_text("[tool.navarch]\nreplicas = 5\n")
    reports = generate(Project.find(tmp_path))
    assert reports["manifests"].edited == ["config/manager/manager.yaml"]
    assert reports["install"].written == ["dist/install.yaml"]
    assert edited.read_text().endswith("# mine\n")


def test_folders_and_installation_have_the_same_objects(tmp_path: Path) -> None:
    """What `config/default` lists is what `dist/install.yaml` has."""
    generate(write_project(tmp_path, settings=FULL, webhook=True))
    folders = yaml.safe_load((tmp_path / "config/default/kustomization.yaml").read_text())["resources"]
    found = {}
    for folder in folders:
        base = (tmp_path / "config/default" / folder).resolve()
        for file in yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]:
            for each in yaml.safe_load_all((base / file).read_text()):
                found[each["kind"], each["metadata"]["name"]] = each
    assert found == installed(tmp_path)


def test_namespaced_operator_has_no_rights_in_other_namespaces(tmp_path: Path) -> None:
    """But for CRDs and reviews, which are in no namespace."""
    generate(write_project(tmp_path, namespaced=True))
    role = installed(tmp_path)["ClusterRole", "cache-operator-manager-role"]
    assert [rule["resources"] for rule in role["rules"]] == [["customresourcedefinitions"]]
    assert (
        installed(tmp_path)["Role", "cache-operator-manager-role"]["metadata"]["namespace"] == "cache-operator-system"
    )


def test_strategic_patch_changes_every_rendering(tmp_path: Path) -> None:
    """Lists are merged by their keys: the container keeps its image."""
    patch = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cache-operator-controller-manager"},
        "spec": {"template": {"spec": {"containers": [{"name": "manager", "env": [{"name": "ZONE", "value": "a"}]}]}}},
    }
    project = write_project(tmp_path)
    write_patch(tmp_path, yaml.safe_dump(patch))
    generate(project)
    for file in ("dist/install.yaml", "config/manager/manager.yaml"):
        found = [each for each in yaml.safe_load_all((tmp_path / file).read_text()) if each["kind"] == "Deployment"]
        (container,) = found[0]["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "controller:latest"
        assert [each["name"] for each in container["env"]] == ["ZONE", "POD_IP", "POD_NAMESPACE"]


def test_json_patch_changes_its_targets(tmp_path: Path) -> None:
    """Every object that has the fields of the target."""
    project = write_project(tmp_path)
    operation = {"op": "add", "path": "/metadata/labels/team", "value": "caches"}
    write_patch(tmp_path, yaml.safe_dump({"target": {"kind": "ClusterRole"}, "patch": [operation]}))
    generate(project)
    labelled = {kind for (kind, _), each in installed(tmp_path).items() if "team" in each["metadata"].get("labels", {})}
    assert labelled == {"ClusterRole"}


def test_patch_deletes_an_object(tmp_path: Path) -> None:
    """With `$patch: delete`, as in kustomize."""
    project = write_project(tmp_path)
    name = "cache-operator-memcached-admin-role"
    identity = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    write_patch(tmp_path, yaml.safe_dump({"$patch": "delete", **identity}))
    generate(project)
    assert ("ClusterRole", name) not in installed(tmp_path)


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n",
            "got one of Deployment other; there are Deployment cache-operator-controller-manager",
        ),
        (
            "kind: Deployment\n",
            "expected a strategic merge patch with apiVersion, kind and metadata.name, or a JSON patch",
        ),
        ("- a\n", "got a list"),
        ("a: [\n", "expected YAML, got something else"),
        ("target: {kind: Deployment}\npatch: {}\n", "expected a list of operations as patch, got nothing"),
        (
            "target: {knd: Deployment}\npatch: []\n",
            "expected a target with some of group, version, kind, name, namespace",
        ),
        (
            "target: {kind: Deployment}\npatch: [{op: remove, path: /spec/none}]\n",
            "config/patches/own.yaml: cannot be applied to Deployment cache-operator-controller-manager: operation 0",
        ),
    ],
)
def test_patch_that_cannot_be_applied_is_told(patch: str, message: str, tmp_path: Path) -> None:
    """With its file; nothing is written."""
    project = write_project(tmp_path)
    write_patch(tmp_path, patch)
    with pytest.raises(ConfigError) as told:
        generate(project)
    assert message in str(told.value)
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import json\njson.loads('')\n", "memcached.py:2: JSONDecodeError: Expecting value"),
        ("def (\n", "memcached.py:1: expected Python, got a SyntaxError"),
        ("raise SystemExit(3)\n", "memcached.py:1: SystemExit: 3"),
    ],
)
def test_code_that_fails_to_import_is_told_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    """And nothing is written."""
    project = write_project(tmp_path)
    (tmp_path / CONTROLLER).write_text(text)
    with pytest.raises(ConfigError) as told:
        generate(project)
    assert message in str(told.value)
    assert not (tmp_path / "dist").exists()


def test_package_without_an_operator_is_told(tmp_path: Path) -> None:
    """With the line that is missing."""
    project = write_project(tmp_path)
    (tmp_path / "src" / PACKAGE / "__init__.py").write_text("")
    (tmp_path / CONTROLLER).write_text("")
    with pytest.raises(ConfigError, match="expected an Operator named `operator`"):
        generate(project)


def test_two_kinds_of_one_plural_are_refused(tmp_path: Path) -> None:
    """They would share a CRD."""
    project = write_project(tmp_path)
    other = (
        "from navarch import Resource, Spec, Status\nfrom cache_operator import operator\n"
        "class Other(Resource[Spec, Status], group='cache.example.com', version='v1alpha1', plural='memcacheds'): ...\n"
        "@operator.controller(Other)\nasync def reconcile(other, ctx): ...\n"
    )
    (tmp_path / "src" / PACKAGE / "controllers" / "other.py").write_text(other)
    with pytest.raises(
        DefinitionError, match=r"one kind with the plural memcacheds.cache.example.com, got Memcached and Other"
    ):
        generate(project)


def test_kind_of_project_without_a_class_is_told(tmp_path: Path) -> None:
    """With the command that removes it."""
    project = write_project(tmp_path)
    (tmp_path / "PROJECT").write_text((tmp_path / "PROJECT").read_text().replace("kind: Memcached", "kind: Redis"))
    with pytest.raises(ConfigError, match=r"expected the class of Redis .* navarch delete api --group cache"):
        generate(Project.find(project.root))


def test_project_without_kinds_can_be_generated(tmp_path: Path) -> None:
    """As it is after init."""
    write_project(tmp_path)
    text = (tmp_path / "PROJECT").read_text()
    begin, end = text.index("resources:"), text.index('version: "3"')
    (tmp_path / "PROJECT").write_text(text[:begin] + text[end:])
    (tmp_path / CONTROLLER).write_text("")
    generate(Project.find(tmp_path))
    default = yaml.safe_load((tmp_path / "config/default/kustomization.yaml").read_text())
    assert default["resources"] == ["../rbac", "../manager"]


def test_dashboard_and_alerts_ask_only_for_metrics_that_exist(tmp_path: Path) -> None:
    """Those of `observe.families`, and `up`, which is Prometheus' own."""
    families = {each for each in vars(observe.families).values() if isinstance(each, observe.families.MetricFamily)}
    known = {"up", *(each.name for each in families)}
    known |= {f"{each.name}_{part}" for each in families if each.kind == "histogram" for part in ("bucket", "count")}
    deployment = load_deployment(write_project(tmp_path, webhook=True))
    expressions = [text for panel in panels(deployment.model) for text in panel.expressions.values()]
    expressions += [alert.expression for alert in alerts(deployment.model)]
    asked = {name for text in expressions for name in re.findall(r"(\w+)\{", text)}
    assert len(expressions) > 30
    assert asked <= known
    assert known - asked - {f"{each.name}_{part}" for each in families for part in ("bucket", "count")} <= {
        *(each.name for each in families if each.kind == "histogram"),
        "navarch_webhook_certificate_changes_total",
        "navarch_webhook_certificate_errors_total",
    }


def test_chart_has_the_users_values(tmp_path: Path) -> None:
    """Those of the final objects, after the patches."""
    project = write_project(tmp_path, settings='image = "registry.example.com:5000/cache@sha256:0a"\nprometheus = true')
    write_patch(
        tmp_path,
        yaml.safe_dump(
            {"target": {"kind": "Deployment"}, "patch": [{"op": "replace", "path": "/spec/replicas", "value": 7}]}
        ),
    )
    generate(project, ["chart"])
    values = yaml.safe_load((tmp_path / "dist/chart/values.yaml").read_text())
    assert values["manager"]["replicas"] == 7
    assert values["manager"]["image"] == {
        "repository": "registry.example.com:5000/cache",
        "tag": "",
        "digest": "sha256:0a",
    }
    assert values["prometheus"] == {"enable": True}


def test_grace_period_outlasts_the_drain(tmp_path: Path) -> None:
    """So that a rollout cuts off no reconcile."""
    project = write_project(tmp_path)
    file = tmp_path / "src" / PACKAGE / "__init__.py"
    file.write_text(file.read_text().replace('crds="verify"', 'crds="verify", drain_seconds=99.5'))
    objects = {each.object["kind"]: each.object for each in load_deployment(project).manifests}
    assert objects["Deployment"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 115


def test_optional_role_is_bound_by_nobody_but_in_named_namespaces(tmp_path: Path) -> None:
    """An operator of the whole cluster has it beside its own role; one of some namespaces has the verbs in its Roles."""
    project = write_project(tmp_path)
    controller = tmp_path / "src" / PACKAGE / "controllers" / "memcached.py"
    uses = 'operator.uses += (Uses(Secret, ("get",), role="secrets"),)'
    imports = "from navarch import Uses\nfrom navarch.k8s.core.v1 import Secret\n"
    controller.write_text(f"{imports}{controller.read_text()}\n\n{uses}\n")
    deployment = load_deployment(project)
    account = deployment.model.account
    found = [each.object for each in deployment.manifests]
    role = next(each for each in found if each["metadata"]["name"] == "cache-operator-secrets")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    assert 'get: Uses(Secret, …, role="secrets")' in deployment.files("rbac")["config/rbac/secrets_role.yaml"]
    assert not any(each.resource == "secrets" for each in granted_to(found, account))
    settings = msgspec.structs.replace(project.settings, watch_namespaces=("team-a",))
    some = [each.object for each in load_deployment(dataclasses.replace(project, settings=settings)).manifests]
    assert not any(each["metadata"]["name"] == "cache-operator-secrets" for each in some)
    granted = {each for each in granted_to(some, account) if each.resource == "secrets"}
    assert granted == {Permission("get", "", "secrets", namespace="team-a")}


def test_code_is_loaded_with_the_environment_of_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the manifests follow from it; afterwards the environment is as it was."""
    monkeypatch.setenv("WATCH_NAMESPACE", "mine")
    project = write_project(tmp_path, settings='environment = { LEVEL = "high" }\nwatch-namespaces = ["team-a"]')
    file = tmp_path / "src" / PACKAGE / "__init__.py"
    seconds = 'drain_seconds=80 if (os.environ["LEVEL"], os.environ["WATCH_NAMESPACE"]) == ("high", "team-a") else 1'
    file.write_text("import os\n" + file.read_text().replace('crds="verify"', f'crds="verify", {seconds}'))
    objects = {each.object["kind"]: each.object for each in load_deployment(project).manifests}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 95
    assert {"name": "LEVEL", "value": "high"} in pod["containers"][0]["env"]
    assert os.environ["WATCH_NAMESPACE"] == "mine"
    assert "LEVEL" not in os.environ
