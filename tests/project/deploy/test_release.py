"""A release has the objects of the project, with the image and the namespace that were asked for, everywhere."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from navarch.errors import ConfigError, InvalidValueError
from navarch.project.deploy.release import MANAGED_BY, OWNER, Release, release_of, with_overrides
from navarch.project.generate import load_deployment
from navarch.project.project import Project
from project.deploy.deployments import DEPLOYMENT, NAMESPACE
from project.small_project import write_project

PATCHES = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {DEPLOYMENT}, namespace: {NAMESPACE}}}
spec:
  template:
    spec:
      containers:
      - {{name: manager, image: "patched:v1"}}
---
target: {{kind: Namespace, name: {NAMESPACE}}}
patch:
- {{op: add, path: /metadata/labels/team, value: caches}}
"""
DIGEST = "registry.example.com/cache@sha256:" + "a" * 64


def patched(root: Path, settings: str = "") -> Project:
    """A project with webhooks, and with patches that name its namespace."""
    project = write_project(root, settings=settings, webhook=True)
    (root / "config/patches").mkdir()
    (root / "config/patches/all.yaml").write_text(PATCHES)
    return project


def released(project: Project, *, image: str = "", namespace: str = "") -> Release:
    return release_of(load_deployment(with_overrides(project, image=image, namespace=namespace)), image=image)


@pytest.mark.parametrize("certificates", ["self", "cert-manager"])
def test_another_namespace_is_in_every_object(tmp_path: Path, certificates: str) -> None:
    """In subjects, webhooks, certificates and the user's patches; the files of the project stay as they are."""
    project = patched(tmp_path, f'certificates = "{certificates}"')
    release = released(project, namespace="shop")
    assert NAMESPACE not in msgspec.json.encode(release).decode()
    (namespace,) = [each for each in release.objects if each["kind"] == "Namespace"]
    assert (namespace["metadata"]["name"], namespace["metadata"]["labels"]["team"]) == ("shop", "caches")
    assert release.image == "patched:v1"
    assert (release.lease, release.lease_namespace) == ("cache-operator", "shop")
    assert (release.certificates == "") == (certificates == "cert-manager")
    assert Project.find(tmp_path).settings.namespace == NAMESPACE


def test_image_overrides_settings_and_patches(tmp_path: Path) -> None:
    """A digest is an image as well."""
    project = patched(tmp_path)
    release = released(project, image=DIGEST)
    (deployment,) = [each for each in release.objects if each["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == release.image == DIGEST


def test_objects_have_the_marks_of_their_deployment_but_crds(tmp_path: Path) -> None:
    """CRDs are the same as those of `navarch install`."""
    for each in released(write_project(tmp_path)).objects:
        metadata = each["metadata"]
        marks = (metadata.get("labels", {}).get(MANAGED_BY), metadata.get("annotations", {}).get(OWNER))
        is_crd = each["kind"] == "CustomResourceDefinition"
        assert marks == ((None, None) if is_crd else ("navarch", f"{NAMESPACE}/cache-operator"))


@pytest.mark.parametrize(
    ("image", "namespace", "text"),
    [("UPPER/case", "", "lower case"), ("cache@sha256:1", "", "64 hexadecimal"), ("", "a b", "expected a DNS label")],
)
def test_invalid_overrides_are_refused(tmp_path: Path, image: str, namespace: str, text: str) -> None:
    """Before the code of the project is loaded."""
    with pytest.raises(InvalidValueError, match=text):
        with_overrides(write_project(tmp_path), image=image, namespace=namespace)


def test_patch_that_removes_the_deployment_is_named(tmp_path: Path) -> None:
    """There would be no operator to wait for."""
    project = patched(tmp_path)
    (tmp_path / "config/patches/all.yaml").write_text(
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {DEPLOYMENT}}}\n$patch: delete\n"
    )
    with pytest.raises(ConfigError, match=f"expected the deployment to have the Deployment {DEPLOYMENT}"):
        released(project)
