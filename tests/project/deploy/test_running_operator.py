"""A deployed operator that runs: as a process on a node of the embedded cluster, with webhooks and its own roles."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

import navarch
from navarch.client import Client
from navarch.cluster.embedded.components import ComponentOptions
from navarch.errors import ApiError, DeployError
from navarch.project.deploy.deployer import deploy_release, plan
from navarch.project.deploy.release import Release, release_of
from navarch.project.deploy.revisions import RevisionHistory
from navarch.project.deploy.rollback import choose_revision, release_to_restore
from navarch.project.deploy.status import deployment_state
from navarch.project.generate import load_deployment
from navarch.testing.cluster import over_https
from project.deploy.deployments import (
    MEMCACHED,
    NAMESPACE,
    PROJECT,
    memcached,
    objects_of,
    undeployed,
)
from project.deployments import AS_ROOT
from project.small_project import CONTROLLER, PACKAGE, write_project

SECONDS = 120.0
CLEANUP = """

@reconcile.cleanup
async def clean(memcached: Memcached, ctx: Context) -> None:
    pass
"""


def running_release(root: Path) -> Release:
    """The release of a project with a webhook and a cleanup, which this machine's user may run."""
    project = write_project(root, webhook=True)
    (root / CONTROLLER).write_text((root / CONTROLLER).read_text() + CLEANUP)
    if os.geteuid() == 0:
        (root / "config/patches").mkdir()
        (root / "config/patches/as_root.yaml").write_text(AS_ROOT)
    return release_of(load_deployment(project))


def images(root: Path, file: Path) -> Path:
    """The image `controller` is this machine's Python; there is no other."""
    paths = [str(root / "src"), *(str(Path(each.__file__ or "").parents[1]) for each in (navarch, msgspec))]
    image = {"name": "controller", "argv": [sys.executable, "-m", PACKAGE], "env": {"PYTHONPATH": ":".join(paths)}}
    broken = {"name": "broken", "argv": [sys.executable, "-c", "raise SystemExit('expected a port, got none')"]}
    file.write_bytes(msgspec.json.encode([image, broken]))
    return file


async def deploy(client: Client, release: Release, wait: float = SECONDS) -> None:
    await deploy_release(client, await plan(client, release), wait=wait)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_operator_works_after_deploy_and_leaves_nothing_after_undeploy(tmp_path: Path) -> None:
    """A bad image and a crash are reported with their causes and rolled back; finalizers end before the operator does."""
    root = tmp_path / "project"
    release = running_release(root)
    async with over_https(ComponentOptions(nodes=1, images=images(root, tmp_path / "images.json"))) as cluster:
        client = cluster.client
        await cluster.eventually(
            lambda: objects_of(client),
            lambda found: {"nodes /node-1", "storageclasses.storage.k8s.io /standard"} <= found,
            timeout=SECONDS,
            what="a cluster that has started",
        )
        before = await objects_of(client)
        await deploy(client, release)
        state = await deployment_state(client, PROJECT, NAMESPACE)
        assert (state.ready, state.webhooks, state.obstacle, state.faults) == (2, "answering", "", [])
        assert state.leader.startswith("cache-operator-controller-manager")

        await client.create(memcached("small"))
        large = memcached("large")
        large["spec"]["size"] = 10
        with pytest.raises(ApiError, match="expected a size of at most 9"):
            await client.create(large)
        await cluster.eventually(
            lambda: client.get(MEMCACHED, "small", namespace="default"),
            lambda found: found.metadata["finalizers"] and found["status"]["nodes"] == ["small-0"],
            timeout=SECONDS,
            what="a reconciled Memcached",
        )

        with pytest.raises(
            DeployError, match=r"image: Pod .*registry.example.com/none:v1[\s\S]*remedy: push the image"
        ):
            await deploy(client, release.with_image("registry.example.com/none:v1"), wait=10.0)
        with pytest.raises(DeployError, match=r"crash: Pod [\s\S]*expected a port, got none[\s\S]*navarch rollback"):
            await deploy(client, release.with_image("broken:v1"), wait=10.0)
        known = await RevisionHistory(client, PROJECT, NAMESPACE).read()
        assert [each.state for each in known] == ["deployed", "failed", "failed"]
        restored, _ = await release_to_restore(client, known, choose_revision(known, 1))
        await deploy(client, restored)

        found = await undeployed(client, delete_crds=True, seconds=SECONDS)
        assert found.counts()["ValidatingWebhookConfiguration"] == 1
        assert found.counts()["Lease"] == 1
        assert await objects_of(client) == before
