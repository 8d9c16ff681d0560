"""docs/etcd-layout.md, executed on the embedded cluster with an etcd and on a real Kubernetes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from docs.pages import module_of
from etcd_members import running_etcd
from navarch.client import Client, connect, load
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.storage.etcd import EtcdStorage
from navarch.etcd import EtcdClient, EtcdOptions
from rig.tools import old_etcd

SECONDS = 60.0


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def both_clients(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Client, EtcdClient]]:
    """A client of the API server, and one of its etcd."""
    if request.param == "real":
        rig_cluster = request.getfixturevalue("rig_cluster")
        options = EtcdOptions(endpoints=(rig_cluster.etcd_url,))
        async with connect(load(rig_cluster.kubeconfig)) as client, EtcdClient(options) as etcd:
            yield client, etcd
        return
    with running_etcd(old_etcd, tmp_path) as members:
        options = EtcdOptions(endpoints=members.urls)
        async with EmbeddedCluster(EtcdStorage(options)) as cluster, EtcdClient(options) as etcd:
            yield cluster.client(), etcd


async def test_page_is_true_from_top_to_bottom(both_clients: tuple[Client, EtcdClient], tmp_path: Path) -> None:
    """Every function on it, one after the other."""
    page = module_of("etcd-layout.md", tmp_path)
    examples = [each for each in vars(page).values() if inspect.iscoroutinefunction(each)]
    assert len(examples) == 7
    async with asyncio.timeout(SECONDS):
        for example in examples:
            await example(*both_clients)
