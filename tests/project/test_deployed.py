"""The rendered objects on an embedded cluster: all are accepted, and the Deployment runs with exactly its roles."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import navarch
from navarch.api import Dynamic, Kind
from navarch.cluster.embedded.components import ComponentOptions
from navarch.k8s.core.v1 import ConfigMap, Pod
from navarch.project.generate import load_deployment
from navarch.project.kustomize import installed
from navarch.project.project import Project
from navarch.testing import Cluster
from navarch.testing.cluster import over_https
from project.small_project import PACKAGE, write_project

NAMESPACE = "cache-operator-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:cache-operator-controller-manager"
OF_OTHERS = ("monitoring.coreos.com", "cert-manager.io")
MEMCACHED = Kind("cache.example.com", "v1alpha1", "Memcached", plural="memcacheds")
SECONDS = 120.0
AS_ROOT = """\
apiVersion: v1
kind: Namespace
metadata:
  name: cache-operator-system
  labels: {pod-security.kubernetes.io/enforce: baseline}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: cache-operator-controller-manager
spec:
  template:
    spec:
      securityContext: {runAsNonRoot: false, runAsUser: null, runAsGroup: null}
"""
"""On a machine whose tests run as root: nobody else need be able to run its Python."""


def objects(project: Project) -> list[Dynamic]:
    """The objects of the installation, without those of kinds that others define."""
    found = installed(load_deployment(project).manifests)
    return [Dynamic(each) for each in found if each["apiVersion"].partition("/")[0] not in OF_OTHERS]


@pytest.mark.parametrize("certificates", ["self", "cert-manager"])
async def test_every_object_is_accepted(certificates: str, cluster: Cluster, tmp_path: Path) -> None:
    """Also by the namespace itself, which demands restricted pods; a second apply changes nothing."""
    settings = f'certificates = "{certificates}"\nprometheus = true\nnetwork-policy = true'
    wanted = objects(write_project(tmp_path, settings=settings, webhook=True))
    for each in wanted:
        await cluster.apply(each)
    kinds = {each.kind for each in wanted}
    assert {"NetworkPolicy", "Deployment", "CustomResourceDefinition", "Service"} <= kinds
    assert ("ValidatingWebhookConfiguration" in kinds) == (certificates == "cert-manager")
    before = [await _version(cluster, each) for each in wanted]
    for each in wanted:
        await cluster.apply(each)
    assert [await _version(cluster, each) for each in wanted] == before


async def _version(cluster: Cluster, wanted: Dynamic) -> Any:
    kind = await cluster.client.discovery.kind_of(wanted)
    found = await cluster.client.get(kind, wanted.name, namespace=wanted.namespace or None)
    return found.metadata["generation"] if wanted.kind == "Deployment" else found.metadata["resourceVersion"]


@asynccontextmanager
async def deployed(project: Project, folder: Path) -> AsyncIterator[Cluster]:
    """A cluster with one node on which the image of the operator is this machine's Python, and the installation on it."""
    images = folder / "images.json"
    if os.geteuid() == 0:
        (project.root / "config/patches").mkdir()
        (project.root / "config/patches/as_root.yaml").write_text(AS_ROOT)
    paths = [str(project.root / "src"), *(str(Path(each.__file__ or "").parents[1]) for each in (navarch, msgspec))]
    image = {"name": "controller", "argv": [sys.executable, "-m", PACKAGE], "env": {"PYTHONPATH": ":".join(paths)}}
    images.write_bytes(msgspec.json.encode([image]))
    async with over_https(ComponentOptions(nodes=1, images=images)) as cluster:
        for each in objects(project):
            await cluster.apply(each)
        yield cluster


async def replicas(cluster: Cluster) -> list[str]:
    """What became of the operator's pods."""
    pods = await cluster.list(Pod, namespace=NAMESPACE)
    states = [each for pod in pods for each in pod.status.container_statuses or []]
    return ["ready" if each.ready else repr(each.last_state or each.state) for each in states]


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_deployment_runs_unchanged_with_exactly_its_roles(tmp_path: Path) -> None:
    """As its own ServiceAccount: two replicas are ready, one reconciles, webhooks answer, and nothing is refused."""
    project = write_project(tmp_path / "project", webhook=True)
    async with deployed(project, tmp_path) as cluster:
        await cluster.eventually(
            lambda: replicas(cluster), lambda found: found == ["ready"] * 2, timeout=SECONDS, what="two replicas ready"
        )
        await cluster.create(
            Dynamic(yaml.safe_load((project.root / "config/samples/cache_v1alpha1_memcached.yaml").read_text()))
        )
        await cluster.eventually(
            lambda: cluster.client.get(MEMCACHED, "memcached-sample"),
            lambda found: found.get("status", {}).get("nodes") == ["memcached-sample-0", "memcached-sample-1"],
            timeout=SECONDS,
            what="a reconciled Memcached",
        )
        assert (await cluster.get(ConfigMap, "memcached-sample")).data == {"size": "2"}
        large = {"apiVersion": MEMCACHED.api_version, "kind": "Memcached", "metadata": {"name": "large"}}
        with pytest.raises(navarch.errors.ApiError, match="expected a size of at most 9"):
            await cluster.create(Dynamic({**large, "spec": {"size": 10}}))
        assert not {record.uri for record in cluster.audit.records(user=ACCOUNT, code=403)}
