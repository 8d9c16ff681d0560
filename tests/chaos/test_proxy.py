"""The proxy lets TLS pass and breaks what it is told to."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

import rig
from chaos.proxy import FaultyProxy, connected, reached_through
from chaos.waiting import until
from gadgets import CONFIG_MAP, config_map
from navarch.client import Client, RetryPolicy, load
from navarch.errors import ConnectError, DeadlineError, TlsError

pytestmark = pytest.mark.real

LIMIT = 60.0


def trying_once(proxy: FaultyProxy, cluster: rig.Cluster, client: Client) -> Client:
    """Another client in the same namespace, by way of the proxy."""
    config = reached_through(proxy, load(cluster.kubeconfig))
    return connected(config, client.options.namespace, retry=RetryPolicy(attempts=1)).using(timeout=LIMIT)


@pytest.fixture
async def proxied(client: Client, proxy: FaultyProxy, rig_cluster: rig.Cluster) -> AsyncIterator[Client]:
    async with trying_once(proxy, rig_cluster, client) as proxied:
        yield proxied


async def test_server_is_verified_through_the_proxy(proxy: FaultyProxy, rig_cluster: rig.Cluster) -> None:
    """It must show a certificate for the name that is asked for."""
    config = msgspec.structs.replace(load(rig_cluster.kubeconfig), tls_server_name="elsewhere.example.com")
    async with connected(reached_through(proxy, config), "default") as client:
        with pytest.raises(TlsError):
            await client.list(CONFIG_MAP)


async def test_requests_and_watches_pass(client: Client, proxied: Client, proxy: FaultyProxy) -> None:
    """With TLS verified from end to end; closing the client closes what the proxy holds."""
    async with proxied.watch(CONFIG_MAP, fields={"metadata.name": "a"}) as watch, asyncio.timeout(LIMIT):
        await proxied.create(config_map("a"))
        assert (await anext(watch)).object.name == "a"
        assert proxy.open == 2
    await proxied.close()
    await until(lambda: proxy.open == 0, "the proxy to have no connection left")


async def test_refused_connections_come_back_at_the_same_address(proxied: Client, proxy: FaultyProxy) -> None:
    """Nobody answers, then somebody does."""
    await proxy.refuse()
    with pytest.raises(ConnectError):
        await proxied.list(CONFIG_MAP)
    await proxy.pass_through()
    await proxied.list(CONFIG_MAP)


async def test_cut_connections_are_lost_and_replaced(client: Client, proxied: Client, proxy: FaultyProxy) -> None:
    """A watch goes on by a new one."""
    async with proxied.watch(CONFIG_MAP, fields={"metadata.name": "a"}) as watch, asyncio.timeout(LIMIT):
        proxy.cut_all()
        await client.create(config_map("a"))
        assert (await anext(watch)).object.name == "a"


async def test_black_hole_says_nothing(proxied: Client, proxy: FaultyProxy) -> None:
    """Old connections stay open and silent for good; new ones pass when it is over."""
    await proxied.list(CONFIG_MAP)
    proxy.black_hole()
    with pytest.raises(DeadlineError):
        await proxied.using(timeout=0.5).list(CONFIG_MAP)
    await proxy.pass_through()
    await proxied.list(CONFIG_MAP)


async def test_silenced_watch_hears_nothing_while_new_connections_pass(
    client: Client, proxied: Client, proxy: FaultyProxy, rig_cluster: rig.Cluster
) -> None:
    """Neither an event nor an end."""
    async with proxied.watch(CONFIG_MAP, fields={"metadata.name": "a"}) as watch:
        proxy.silence_all()
        await client.create(config_map("a"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await anext(watch)
        async with trying_once(proxy, rig_cluster, client) as other:
            assert (await other.get(CONFIG_MAP, "a")).name == "a"


async def test_delay_and_throttle_only_slow_down(proxied: Client, proxy: FaultyProxy) -> None:
    """What comes is the same."""
    await proxied.create(config_map("a", data={"k": "v" * 5000}))
    loop = asyncio.get_running_loop()
    for slow in ("delay", "throttle"):
        began = loop.time()
        proxy.delay, proxy.throttle = (0.1, 0) if slow == "delay" else (0.0, 20_000)
        assert len((await proxied.get(CONFIG_MAP, "a"))["data"]["k"]) == 5000
        assert loop.time() - began > 0.19
        await proxy.pass_through()
