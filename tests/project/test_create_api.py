"""`navarch create api` adds a kind to a project, and edits no file of the user."""

import dataclasses
from pathlib import Path

import pytest

from navarch.errors import ConfigError
from navarch.project.project import Project
from navarch.project.scaffold.create_api import NewApi, create_api
from navarch.project.scaffold.scaffolds import Scaffolds
from project.scaffolded import MEMCACHED, PLAIN, cache_project, files_of, run_module

PACKAGE = "src/cache_operator"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project without kinds."""
    return cache_project(tmp_path)


def asking(**changes: object) -> NewApi:
    """Returns the request for the kind Plain with these changes."""
    return dataclasses.replace(PLAIN, **changes)  # type: ignore[arg-type]  # the fields of each case


def test_scaffolded_project_passes_its_own_tests_with_the_least_permissions(project: Project) -> None:
    """A kind with an image works as it is written; its roles grant what its test used, and no more: `make permissions`."""
    project = create_api(project, MEMCACHED).project
    assert "2 passed" in run_module(project, "pytest", "-q", "-p", "no:cacheprovider", "--record-permissions")
    run_module(project, "navarch", "generate", "rbac")
    assert "2 passed" in run_module(project, "pytest", "-q", "-p", "no:cacheprovider", "tests/permissions.py")


def test_scaffolds_are_formatted_and_linted(project: Project) -> None:
    """ruff has nothing to say about any kind of scaffold, also with long names."""
    every_scaffold(project)
    run_module(project, "ruff", "format", "--check", "--diff", "--no-cache")
    run_module(project, "ruff", "check", "--no-cache")


def test_field_may_have_a_list_as_its_default(project: Project) -> None:
    """ruff accepts it in the project, as classes of kinds are written with such fields; other checks stay."""
    project = create_api(project, PLAIN).project
    types = project.root / PACKAGE / "api/cache/v1alpha1/plain.py"
    types.write_text(types.read_text().replace('foo: str = ""', "foo: list[str] = []"))
    assert "list[str] = []" in types.read_text()
    run_module(project, "ruff", "check", "--no-cache")


@pytest.mark.long
def test_every_scaffold_passes_its_tests_and_type_check(project: Project) -> None:
    """pytest and mypy --strict accept every kind of scaffold."""
    every_scaffold(project)
    assert "8 passed" in run_module(project, "pytest", "-q", "-p", "no:cacheprovider")
    run_module(project, "mypy")


def every_scaffold(project: Project) -> None:
    """Adds kinds of all sorts to the project."""
    for request in (
        MEMCACHED,
        PLAIN,
        asking(version="v1", controller=False),
        asking(kind="Cluster", namespaced=False, plural="clusterings"),
        asking(group="core", version="v1", kind="Pod", resource=False),
        asking(group="", kind="ValidatingWebhookConfigurationPart"),
    ):
        project = create_api(project, request).project


def test_create_api_adds_files_and_edits_none(project: Project) -> None:
    """The files of `init` stay as they are; PROJECT lists the kind as kubebuilder would."""
    before = files_of(project.root)
    written = create_api(project, MEMCACHED)
    assert written.files == [
        "config/samples/cache_v1alpha1_memcached.yaml",
        f"{PACKAGE}/api/cache/__init__.py",
        f"{PACKAGE}/api/cache/v1alpha1/__init__.py",
        f"{PACKAGE}/api/cache/v1alpha1/memcached.py",
        f"{PACKAGE}/controllers/memcached.py",
        "tests/test_memcached.py",
    ]
    records = {"PROJECT", ".navarch/scaffolds.json"}
    after = files_of(project.root)
    assert {path: text for path, text in before.items() if path not in records}.items() <= after.items()
    (entry,) = Project.find(project.root).file.resources
    assert entry.key == ("cache.example.com", "v1alpha1", "Memcached")
    assert entry.controller
    assert entry.api is not None
    assert entry.path == "cache_operator.api.cache.v1alpha1.memcached"


def test_scaffold_of_a_kind_is_short(project: Project) -> None:
    """Types, reconciler and test of an operator that runs an image have at most 80 lines."""
    written = create_api(project, MEMCACHED)
    lines = [len((project.root / path).read_text().splitlines()) for path in written.files if path.endswith(".py")]
    assert sum(lines) <= 80


def test_second_version_brings_its_conversion(project: Project) -> None:
    """It begins as the first version and is not stored yet; all conversions share one round-trip test."""
    project = create_api(project, PLAIN).project
    written = create_api(project, asking(version="v1", controller=False))
    assert f"{PACKAGE}/webhooks/plain_v1_conversion.py" in written.files
    assert "storage=False" in (project.root / f"{PACKAGE}/api/cache/v1/plain.py").read_text()
    entry = written.project.file.find("cache", "v1", "Plain")
    assert entry is not None
    assert entry.webhooks is not None
    assert entry.webhooks.conversion
    third = create_api(written.project, asking(version="v2", controller=False))
    assert "tests/test_conversions.py" not in third.files


def test_controller_of_a_kind_that_exists(project: Project) -> None:
    """--no-resource writes a reconciler for a kind of the project, and a second one with a name."""
    project = create_api(project, asking(controller=False)).project
    project = create_api(project, asking(resource=False)).project
    written = create_api(project, asking(resource=False, controller_name="plain-backup"))
    assert written.files == [f"{PACKAGE}/controllers/plain_backup.py", "tests/test_plain_backup.py"]
    assert 'name="plain-backup"' in (project.root / written.files[0]).read_text()
    (entry,) = written.project.file.resources
    assert entry.controller
    assert entry.api is not None


def test_kinds_of_kubernetes_have_their_whole_group(project: Project) -> None:
    """PROJECT has them as kubebuilder does: `core: true`, and the domain that is not the project's."""
    project = create_api(project, asking(group="networking", version="v1", kind="Ingress", resource=False)).project
    project = create_api(project, asking(group="core", version="v1", kind="Pod", resource=False)).project
    ingress, pod = project.file.resources
    assert (ingress.group, ingress.domain, ingress.core, ingress.api) == ("networking", "k8s.io", True, None)
    assert (pod.group, pod.core, pod.path) == ("core", True, "navarch.k8s.core.v1")


def test_same_kind_in_two_groups(project: Project) -> None:
    """No file moves: the second one has its group in the names of its modules and of its controller."""
    project = create_api(project, PLAIN).project
    written = create_api(project, asking(group="web.shop"))
    assert (
        'controller(Plain, name="web-shop-plain")'
        in (project.root / f"{PACKAGE}/controllers/web_shop_plain.py").read_text()
    )
    run_module(project, "navarch", "generate", "crd")
    assert f"{PACKAGE}/api/web_shop/v1alpha1/plain.py" in written.files
    assert f"{PACKAGE}/controllers/web_shop_plain.py" in written.files


def test_second_controller_of_a_foreign_kind_needs_a_name(project: Project) -> None:
    """It is refused as that of an own kind is: an operator with two controllers of one name cannot be imported."""
    pod = asking(group="core", version="v1", kind="Pod", resource=False)
    project = create_api(project, pod).project
    with pytest.raises(ConfigError, match=r"Pod has the controller 'pod' already, for v1, .* --controller-name"):
        create_api(project, pod)
    with pytest.raises(ConfigError, match=r"Pod has the controller 'pod' already"):
        create_api(project, asking(controller_name="pod"))
    written = create_api(project, dataclasses.replace(pod, controller_name="pod-labels"))
    assert written.files == [f"{PACKAGE}/controllers/pod_labels.py", "tests/test_pod_labels.py"]


def test_new_files_have_the_header_of_the_project(project: Project) -> None:
    """An edited hack/boilerplate.py.txt is what later files begin with."""
    (project.root / "hack/boilerplate.py.txt").write_text("# Copyright me\n\n")
    create_api(project, PLAIN)
    text = (project.root / f"{PACKAGE}/controllers/plain.py").read_text()
    assert text.startswith('# Copyright me\n"""')
    (project.root / "hack/boilerplate.py.txt").write_text("import os\n")
    with pytest.raises(ConfigError, match=r"hack/boilerplate\.py\.txt: expected a comment"):
        create_api(project, asking(kind="Other"))


def test_existing_kind_is_refused(project: Project) -> None:
    """The remedy is in the error; --force replaces the scaffold and overwrites its files."""
    project = create_api(project, PLAIN).project
    before = files_of(project.root)
    with pytest.raises(ConfigError, match=r"Plain cache.example.com/v1alpha1 exists already, .* --force"):
        create_api(project, PLAIN)
    with pytest.raises(ConfigError, match=r"has the controller 'plain' already, .* --no-controller"):
        create_api(project, asking(version="v1"))
    with pytest.raises(ConfigError, match="are the same in lower case"):
        create_api(project, asking(kind="PLain"))
    with pytest.raises(ConfigError, match="has one scope in all of its versions: --namespaced"):
        create_api(project, asking(version="v1", controller=False, namespaced=False))
    assert files_of(project.root) == before
    forced = create_api(project, asking(image="nginx:1", port=80, force=True))
    assert "size" in (project.root / f"{PACKAGE}/api/cache/v1alpha1/plain.py").read_text()
    assert len(Scaffolds.read(project.root).parts) == 2
    assert len(forced.project.file.resources) == 1


def test_files_of_the_user_are_not_overwritten(project: Project) -> None:
    """A file that stands where one would be written is named, and nothing is written; --force overwrites it."""
    file = project.root / "tests/test_plain.py"
    file.write_text("mine")
    before = files_of(project.root)
    with pytest.raises(ConfigError, match=r"files with other content: tests/test_plain\.py; .* --force"):
        create_api(project, PLAIN)
    assert files_of(project.root) == before
    create_api(project, asking(force=True))
    assert file.read_text() != "mine"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "memcached"}, "--kind: expected a name in PascalCase .*; try 'Memcached'"),
        ({"kind": "my-kind"}, "try 'MyKind'"),
        ({"kind": "Class"}, "class is a keyword of Python"),
        ({"kind": "None"}, "the class None, and None is a keyword of Python"),
        ({"kind": "Spec"}, "hides the name Spec"),
        ({"kind": "K" * 64}, "at most 63"),
        ({"kind": "../../Etc"}, "expected a name in PascalCase"),
        ({"group": "Cache"}, "--group: .* try 'cache'"),
        ({"group": "cache.example.com"}, "--group: expected the group without the project's domain, .* --group cache"),
        ({"group": "class"}, "--group: expected a name that a Python package can have"),
        ({"group": "3d"}, "--group: expected a name that a Python package can have"),
        ({"group": "../x"}, "--group: expected a DNS subdomain"),
        ({"version": "1"}, "--version: expected a version such as v1alpha1"),
        ({"version": "v1gamma1"}, "--version: expected a version such as v1alpha1"),
        ({"plural": "Plains"}, "--plural: expected a DNS-1035 label .* try 'plains'"),
        ({"controller_name": "My Controller"}, "--controller-name: .* try 'my-controller'"),
        ({"controller_name": "import"}, "--controller-name: expected a name that a Python module can have"),
        ({"image": "a b"}, "--image: expected an image"),
        ({"image": 'x"'}, "--image: expected an image"),
        ({"port": 80}, "--port: expected --image beside it"),
        ({"image": "nginx", "port": 70000}, "--port: expected a number"),
        ({"image": "nginx", "namespaced": False}, "--image: expected a new namespaced kind"),
        ({"resource": False, "controller": False}, "expected a resource, a controller or both"),
        ({"resource": False, "kind": "Unknown"}, "expected a kind of this project or of Kubernetes, .* --crd FILE"),
        ({"resource": False, "group": "apps", "version": "v2", "kind": "Deployment"}, "--crd FILE"),
    ],
)
def test_requests_that_cannot_be(project: Project, changes: dict[str, object], reason: str) -> None:
    """Each is refused with the flag, the rule and the remedy, before anything is written."""
    before = files_of(project.root)
    with pytest.raises(ConfigError, match=reason):
        create_api(project, asking(**changes))
    assert files_of(project.root) == before


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Issuer, plural: issuers}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {server: {type: string}}}}
"""


def test_kind_of_another_project_comes_from_its_crd(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    """--crd writes typed classes, and the reconciler imports them; PROJECT says that the kind is external."""
    file = tmp_path_factory.mktemp("crds") / "issuers.yaml"
    file.write_text(CRD)
    request = asking(group="cert-manager.io", version="v1", kind="Issuer", resource=False, crd=file)
    written = create_api(project, request)
    assert f"{PACKAGE}/models/cert_manager_io/v1.py" in written.files
    project = written.project
    (entry,) = project.file.resources
    assert (entry.external, entry.api, entry.key) == (True, None, ("cert-manager.io", "v1", "Issuer"))
    module = f"src/{entry.path.replace('.', '/')}.py"
    assert "class Issuer(" in (project.root / module).read_text()
    assert f"from {entry.path} import Issuer" in (project.root / f"{PACKAGE}/controllers/issuer.py").read_text()
    run_module(project, "ruff", "check", "--no-cache")
    with pytest.raises(ConfigError, match="Issuer has the controller 'issuer' already"):
        create_api(project, request)
    with pytest.raises(
        ConfigError, match=r"--crd: expected Other of .* got cert-manager\.io/v1 Issuer; correct --group"
    ):
        create_api(project, dataclasses.replace(request, kind="Other"))
    with pytest.raises(ConfigError, match="got no file"):
        create_api(project, dataclasses.replace(request, kind="Other", crd=file.parent / "missing.yaml"))
    file.write_text("a: [")
    with pytest.raises(ConfigError, match=r"issuers\.yaml: expected YAML"):
        create_api(project, dataclasses.replace(request, kind="Other"))
    with pytest.raises(ConfigError, match="add --no-resource"):
        create_api(project, asking(kind="Other", crd=file))


def test_renamed_package_is_refused(project: Project) -> None:
    """Files are not written into a package that the operator does not have."""
    file = project.root / "pyproject.toml"
    file.write_text(file.read_text().replace("[tool.navarch]\n", '[tool.navarch]\npackage = "renamed"\n'))
    with pytest.raises(ConfigError, match=r"expected the package cache_operator, .* got renamed"):
        create_api(Project.find(project.root), PLAIN)
    assert not (project.root / "src/cache_operator/controllers/plain.py").exists()


def test_kind_may_have_the_name_of_a_module(project: Project) -> None:
    """A module inside the package hides no module of Python."""
    create_api(project, asking(kind="Json"))
    assert (project.root / f"{PACKAGE}/api/cache/v1alpha1/json.py").exists()
