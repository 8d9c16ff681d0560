"""A project's installation on an embedded cluster whose one node runs the operator as this machine's Python."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

import navarch
from navarch.api import Dynamic, Kind
from navarch.cluster.embedded.components import ComponentOptions
from navarch.k8s.core.v1 import Pod
from navarch.project.generate import load_deployment
from navarch.project.kustomize import installed
from navarch.project.project import Project
from navarch.testing import Cluster
from navarch.testing.cluster import over_https
from project.small_project import PACKAGE

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


@asynccontextmanager
async def deployed(
    project: Project, folder: Path, *, prepare: Callable[[list[Dynamic]], list[Dynamic]] = list
) -> AsyncIterator[Cluster]:
    """A cluster with one node on which the image of the operator is this machine's Python, and the installation on it.

    `prepare` adds what others would bring.
    """
    images = folder / "images.json"
    if os.geteuid() == 0:
        (project.root / "config/patches").mkdir()
        (project.root / "config/patches/as_root.yaml").write_text(AS_ROOT)
    paths = [str(project.root / "src"), *(str(Path(each.__file__ or "").parents[1]) for each in (navarch, msgspec))]
    image = {"name": "controller", "argv": [sys.executable, "-m", PACKAGE], "env": {"PYTHONPATH": ":".join(paths)}}
    images.write_bytes(msgspec.json.encode([image]))
    async with over_https(ComponentOptions(nodes=1, images=images)) as cluster:
        for each in prepare(objects(project)):
            await cluster.apply(each)
        yield cluster


async def replicas(cluster: Cluster) -> list[str]:
    """What became of the operator's pods."""
    pods = await cluster.list(Pod, namespace=NAMESPACE)
    states = [each for pod in pods for each in pod.status.container_statuses or []]
    return ["ready" if each.ready else f"{each.last_state} {each.state}" for each in states]


async def ready(cluster: Cluster) -> None:
    """Returns when both replicas are ready."""
    await cluster.eventually(
        lambda: replicas(cluster), lambda found: found == ["ready"] * 2, timeout=SECONDS, what="two replicas ready"
    )


def memcached(name: str, size: int) -> Dynamic:
    """One of the project's objects."""
    metadata = {"name": name, "namespace": "default"}
    return Dynamic(
        {"apiVersion": MEMCACHED.api_version, "kind": "Memcached", "metadata": metadata, "spec": {"size": size}}
    )
