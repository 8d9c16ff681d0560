"""`navarch delete` removes scaffolded files, and never one that the user has changed."""

import dataclasses
from pathlib import Path

import pytest

from navarch.errors import ConfigError
from navarch.project.project import Project
from navarch.project.scaffold.create_api import NewApi, create_api
from navarch.project.scaffold.create_webhook import NewWebhooks, create_webhooks
from navarch.project.scaffold.delete import plan_delete_api, plan_delete_webhooks
from project.scaffolded import PLAIN, cache_project, files_of

PLAIN_KEY = ("cache", "v1alpha1", "Plain")
WEBHOOKS = NewWebhooks(group="cache", version="v1alpha1", kind="Plain", types=("defaulting", "validation"))


def test_deleted_kind_leaves_nothing(tmp_path: Path) -> None:
    """The project is as it was before the kind was created, compiled modules included."""
    project = cache_project(tmp_path)
    before = files_of(tmp_path)
    project = create_webhooks(create_api(project, PLAIN).project, WEBHOOKS).project
    cache = tmp_path / "src/cache_operator/api/cache/v1alpha1/__pycache__"
    cache.mkdir()
    (cache / "plain.cpython-311.pyc").touch()
    (cache / "__init__.cpython-311.pyc").touch()
    deletion = plan_delete_api(project, *PLAIN_KEY)
    assert "src/cache_operator/webhooks/plain_defaulting.py" in deletion.files
    assert "src/cache_operator/webhooks/plain_defaulting.py" in files_of(tmp_path)
    deletion.execute()
    assert files_of(tmp_path) == before
    assert not (tmp_path / "src/cache_operator/api/cache").exists()


def test_changed_files_stop_the_deletion(tmp_path: Path) -> None:
    """They are named, and nothing is deleted until the user has taken them away."""
    project = cache_project(tmp_path, PLAIN)
    file = tmp_path / "src/cache_operator/controllers/plain.py"
    file.write_text(file.read_text() + "# mine\n")
    before = files_of(tmp_path)
    with pytest.raises(
        ConfigError, match=r"files with your changes: src/cache_operator/controllers/plain\.py; nothing was"
    ):
        plan_delete_api(project, *PLAIN_KEY)
    assert files_of(tmp_path) == before
    file.unlink()
    plan_delete_api(project, *PLAIN_KEY).execute()
    assert not Project.find(tmp_path).file.resources


def test_version_that_another_needs_is_kept(tmp_path: Path) -> None:
    """A file that imports the class is named; the newer version can be deleted, with its conversion."""
    project = cache_project(tmp_path, PLAIN)
    before = files_of(tmp_path)
    project = create_api(project, dataclasses.replace(PLAIN, version="v1", controller=False)).project
    with pytest.raises(ConfigError, match=r"got src/cache_operator/api/cache/v1/plain\.py; nothing was deleted"):
        plan_delete_api(project, *PLAIN_KEY)
    plan_delete_api(project, "cache", "v1", "Plain").execute()
    assert files_of(tmp_path) == before


def test_webhooks_are_deleted_one_by_one(tmp_path: Path) -> None:
    """The others stay, and PROJECT follows."""
    project = create_webhooks(cache_project(tmp_path, PLAIN), WEBHOOKS).project
    deletion = plan_delete_webhooks(project, *PLAIN_KEY, types=("defaulting",), conversion=False)
    assert deletion.files == ["src/cache_operator/webhooks/plain_defaulting.py", "tests/test_plain_defaulting.py"]
    project = deletion.execute()
    (entry,) = project.file.resources
    assert entry.webhooks is not None
    assert (entry.webhooks.defaulting, entry.webhooks.validation) == (False, True)
    with pytest.raises(ConfigError, match="expected a defaulting webhook of Plain v1alpha1, got none"):
        plan_delete_webhooks(project, *PLAIN_KEY, types=("defaulting",), conversion=False)


def test_kind_of_kubernetes_is_deleted_by_its_group(tmp_path: Path) -> None:
    """The flags of `create` name it for `delete`, too."""
    pod = dataclasses.replace(PLAIN, group="core", version="v1", kind="Pod", resource=False)
    ingress = dataclasses.replace(pod, group="networking", kind="Ingress")
    project = cache_project(tmp_path, pod, ingress)
    project = plan_delete_api(project, "core", "v1", "Pod").execute()
    assert [entry.kind for entry in project.file.resources] == ["Ingress"]
    assert not plan_delete_api(project, "networking", "v1", "Ingress").execute().file.resources


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: Issuer, plural: issuers}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}
"""
MODELS = "src/cache_operator/models"


@pytest.fixture
def issuer(tmp_path_factory: pytest.TempPathFactory) -> NewApi:
    """A kind of another project, by its CRD."""
    file = tmp_path_factory.mktemp("crds") / "issuers.yaml"
    file.write_text(CRD)
    return NewApi(group="cert-manager.io", version="v1", kind="Issuer", resource=False, crd=file)


def test_classes_of_another_project_are_deleted_with_the_last_use(tmp_path: Path, issuer: NewApi) -> None:
    """Those of all versions, which the same command wrote, and the packages that held them."""
    project = cache_project(tmp_path)
    before = files_of(tmp_path)
    project = create_api(project, issuer).project
    second = dataclasses.replace(issuer, controller_name="second", crd=None)
    project = create_api(project, second).project
    webhooks = NewWebhooks(group="cert-manager.io", version="v1", kind="Issuer", types=("validation",))
    project = create_webhooks(project, webhooks).project
    kept = plan_delete_webhooks(project, "cert-manager.io", "v1", "Issuer", types=("validation",), conversion=False)
    assert not [each for each in kept.files if each.startswith(MODELS)]
    deletion = plan_delete_api(project, "cert-manager.io", "v1", "Issuer")
    assert {f"{MODELS}/cert_manager_io/v1.py", f"{MODELS}/cert_manager_io/v1beta1.py"} < set(deletion.files)
    deletion.execute()
    assert files_of(tmp_path) == before
    assert not (tmp_path / MODELS).exists()


def test_classes_of_another_project_that_are_used_or_edited_stay(tmp_path: Path, issuer: NewApi) -> None:
    """Each with the reason; the kind itself is deleted."""
    project = create_api(cache_project(tmp_path), issuer).project
    edited, used = tmp_path / MODELS / "cert_manager_io/v1beta1.py", tmp_path / "src/cache_operator/mine.py"
    edited.write_text(edited.read_text() + "# mine\n")
    used.write_text("from cache_operator.models.cert_manager_io.v1 import Issuer\n")
    deletion = plan_delete_api(project, "cert-manager.io", "v1", "Issuer")
    assert deletion.kept == [
        f"{MODELS}/cert_manager_io/v1.py: src/cache_operator/mine.py imports it",
        f"{MODELS}/cert_manager_io/v1beta1.py: it has your changes",
    ]
    assert not deletion.execute().file.resources
    assert {"__init__.py", "v1.py", "v1beta1.py"} == {each.name for each in edited.parent.glob("*.py")}


def test_mistyped_kind_is_recognized(tmp_path: Path) -> None:
    """By its group, version and name together; a kind that resembles nothing is not guessed."""
    project = cache_project(tmp_path, PLAIN)
    with pytest.raises(ConfigError, match=r"got Plian of cache/v1alpha1; did you mean Plain of cache/v1alpha1\? If"):
        plan_delete_api(project, "cache", "v1alpha1", "Plian")
    with pytest.raises(ConfigError, match=r"did you mean Plain of cache/v1alpha1\? If not, there"):
        plan_delete_webhooks(project, "cache", "v1alpha", "Plain", types=("defaulting",), conversion=False)
    with pytest.raises(ConfigError, match=r"did you mean Plain of cache/v1alpha1\? If not, create it"):
        create_webhooks(project, dataclasses.replace(WEBHOOKS, group="cahce"))
    with pytest.raises(ConfigError, match=r"did you mean Deployment of apps/v1\? If not, create it"):
        create_webhooks(project, dataclasses.replace(WEBHOOKS, group="apps", version="v1", kind="Deploymnet"))


def test_unknown_kind_is_refused(tmp_path: Path) -> None:
    """The error lists the kinds that there are."""
    project = cache_project(tmp_path, PLAIN)
    with pytest.raises(ConfigError, match="got Other of cache/v1alpha1; there are: cache/v1alpha1 Plain"):
        plan_delete_api(project, "cache", "v1alpha1", "Other")
