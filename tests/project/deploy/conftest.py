"""Deployments on two engines: the embedded cluster, in `make test`, and a real Kubernetes, in `make e2e`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

import rig
from navarch.client import Client, connect, load
from navarch.cluster.embedded.components import ComponentOptions
from navarch.project.deploy.release import Release, release_of
from navarch.project.generate import load_deployment
from navarch.testing.cluster import in_process
from project.deploy.deployments import remove_traces
from project.small_project import forgotten_code, write_project


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", ["embedded", pytest.param("real", marks=pytest.mark.real)])


@pytest.fixture(scope="session")
def packed_release(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The release of the small project, rendered once."""
    with forgotten_code():
        project = write_project(tmp_path_factory.mktemp("project"))
        return msgspec.json.encode(release_of(load_deployment(project)))


@pytest.fixture
def release(packed_release: bytes) -> Release:
    """A copy of it, which a test may change."""
    return msgspec.json.decode(packed_release, type=Release)


@pytest.fixture
async def client(engine: str, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A cluster with controllers and no nodes, without traces of a deployment at the end."""
    if engine == "embedded":
        async with in_process(ComponentOptions()) as cluster:
            yield cluster.client
        return
    found: rig.Cluster = request.getfixturevalue("rig_cluster")
    async with connect(load(found.kubeconfig)) as connected:
        yield connected
        await remove_traces(connected)
