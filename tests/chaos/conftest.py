"""Ways to reach the rig's API server that can be broken."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import rig
from chaos.faults import FaultyTransport
from chaos.proxy import FaultyProxy, connected, proxy_to, reached_through
from navarch._base.clock import SystemClock
from navarch.client import Client, Options, load
from navarch.client.http import HttpTransport


@pytest.fixture
async def proxy(rig_cluster: rig.Cluster) -> AsyncIterator[FaultyProxy]:
    """A proxy in front of the API server."""
    async with proxy_to(rig_cluster.url) as proxy:
        yield proxy


@pytest.fixture
async def proxied(client: Client, proxy: FaultyProxy, rig_cluster: rig.Cluster) -> AsyncIterator[Client]:
    """A client of the administrator by way of the proxy, in the namespace of `client`."""
    config = reached_through(proxy, load(rig_cluster.kubeconfig))
    async with connected(config, client.options.namespace) as proxied:
        yield proxied


@pytest.fixture
async def wire(rig_cluster: rig.Cluster) -> AsyncIterator[FaultyTransport]:
    """A transport to the API server, with faults."""
    clock = SystemClock()
    wire = FaultyTransport(HttpTransport(load(rig_cluster.kubeconfig), clock), clock)
    yield wire
    await wire.close()


@pytest.fixture
def faulty(client: Client, wire: FaultyTransport) -> Client:
    """A client by way of the faults, in the namespace of `client`."""
    return Client(wire, Options(namespace=client.options.namespace))
