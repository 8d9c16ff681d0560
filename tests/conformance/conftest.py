"""The same tests on two engines: the embedded cluster, in `make test`, and a real Kubernetes, in `make e2e`.

A test that asks for a fixture of the rig, or is marked `real`, needs what only that has: nodes, controllers, etcd. Tests in
which much depends on the store run on the embedded cluster with each of its stores.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rig
from conformance.pod_sites import Served, Site, embedded_site, real_site, served_site
from etcd_members import running_etcd
from gadgets import compact
from namespaces import in_new_namespace
from navarch.client import Client, Config, connect, load
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.storage import Storage
from navarch.cluster.storage.etcd import EtcdStorage
from navarch.cluster.storage.file import FileStorage
from navarch.etcd import EtcdOptions
from navarch.testing.cluster import Cluster, in_process, over_https
from rig.tools import old_etcd

_RIG = frozenset({"rig_cluster", "rig_cluster_with_node"})
_STORES = ("on a file", "on etcd")
_ON_EVERY_STORE = frozenset({"test_read", "test_list", "test_write", "test_watch"})
_WITH_KUBECTL = frozenset({"test_installation_kubectl", "test_pods_kubectl", "test_webhooks_kubectl"})
"""kubectl itself comes from the rig."""

Compacting = Callable[[str], Awaitable[None]]
"""Lets the store forget what happened before a revision."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" not in metafunc.fixturenames:
        return
    real = pytest.param("real", marks=pytest.mark.real)
    marks = [mark.name for mark in metafunc.definition.iter_markers()]
    has_stores = (
        metafunc.module.__name__.rpartition(".")[2] in _ON_EVERY_STORE and "config" not in metafunc.fixturenames
    )
    embedded: list[Any] = ["embedded", *(_store_cases(metafunc) if has_stores else ())]
    if metafunc.module.__name__.rpartition(".")[2] in _WITH_KUBECTL:
        embedded = [pytest.param("embedded", marks=pytest.mark.real)]
    metafunc.parametrize("engine", [real] if _needs_rig(metafunc, marks) else [*embedded, real])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and any(name in _RIG for name in item.fixturenames):
            item.add_marker(pytest.mark.real)


def _store_cases(metafunc: pytest.Metafunc) -> list[Any]:
    """Reads are the same on every store, and a file is the storage in memory with a log: `make test` has writes and
    watches on etcd, `make e2e` all of them on both.
    """
    depends_on_store = metafunc.module.__name__.endswith(("write", "watch"))
    return [
        pytest.param(store, marks=[] if depends_on_store and store == "on etcd" else [pytest.mark.long])
        for store in _STORES
    ]


def _needs_rig(metafunc: pytest.Metafunc, marks: list[str]) -> bool:
    return "real" in marks or any(name in _RIG for name in metafunc.fixturenames)


@pytest.fixture
def rig_or_none(engine: str, request: pytest.FixtureRequest) -> rig.Cluster | None:
    """The real cluster, if that is the engine."""
    found: rig.Cluster | None = request.getfixturevalue("rig_cluster") if engine == "real" else None
    return found


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an etcd, whatever is in it."""
    with running_etcd(old_etcd, tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster.urls[0]


@pytest.fixture
async def embedded(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster | None]:
    """A fresh embedded cluster, if that is the engine; over HTTPS for a test that makes clients of its own."""
    if engine == "real":
        yield None
        return
    if engine in _STORES:
        async with EmbeddedCluster(await _opened(engine, request, tmp_path)) as made:
            yield Cluster(made.client(), made)
        return
    async with over_https() if "config" in request.fixturenames else in_process() as cluster:
        yield cluster


async def _opened(engine: str, request: pytest.FixtureRequest, folder: Path) -> Storage:
    """What tests leave in etcd stays there, as on a real cluster: to fill an empty one takes a second."""
    if engine == "on a file":
        return await FileStorage.open(folder)
    return EtcdStorage(EtcdOptions(endpoints=(request.getfixturevalue("etcd"),)))


@pytest.fixture
def config(rig_or_none: rig.Cluster | None, embedded: Cluster | None) -> Config:
    """How to reach the cluster with a token."""
    if rig_or_none is not None:
        return load(rig_or_none.kubeconfig)
    assert embedded is not None
    assert embedded.access is not None
    return embedded.access.config(embedded.access.token)


@pytest.fixture
def certificate_config(config: Config, rig_or_none: rig.Cluster | None, embedded: Cluster | None) -> Config:
    """The same administrator with a client certificate."""
    if rig_or_none is not None:
        return load(rig_or_none.certificate_kubeconfig)
    assert embedded is not None
    assert embedded.access is not None
    return embedded.access.config()


@pytest.fixture
async def client(rig_or_none: rig.Cluster | None, embedded: Cluster | None) -> AsyncIterator[Client]:
    """A client whose default namespace is new and goes with the test."""
    if embedded is not None:
        async with in_new_namespace(embedded.client) as client:
            yield client
        return
    assert rig_or_none is not None
    async with connect(load(rig_or_none.kubeconfig)) as connected, in_new_namespace(connected) as client:
        yield client


@pytest.fixture
def rig_with_node_or_none(engine: str, request: pytest.FixtureRequest) -> rig.Cluster | None:
    """The real cluster that has a node, if that is the engine."""
    found: rig.Cluster | None = request.getfixturevalue("rig_cluster_with_node") if engine == "real" else None
    return found


@pytest.fixture
async def site(rig_with_node_or_none: rig.Cluster | None, tmp_path: Path) -> AsyncIterator[Site]:
    """A cluster with a node on which the probe can run."""
    if rig_with_node_or_none is not None:
        async with real_site(rig_with_node_or_none) as made:
            yield made
        return
    async with embedded_site(tmp_path) as made:
        yield made


@pytest.fixture
def served(rig_with_node_or_none: rig.Cluster | None, tmp_path: Path) -> Iterator[Served]:
    """The same for programs that block."""
    with served_site(rig_with_node_or_none, tmp_path) as made:
        yield made


@pytest.fixture
def node_client(site: Site) -> Client:
    """A client of that cluster."""
    return site.client


@pytest.fixture
def compacting(rig_or_none: rig.Cluster | None, embedded: Cluster | None) -> Compacting:
    """Lets the store forget what happened before a revision."""

    async def compacted(revision: str) -> None:
        if rig_or_none is not None:
            compact(rig_or_none, revision)
        else:
            assert embedded is not None
            await embedded.compact(revision)

    return compacted
