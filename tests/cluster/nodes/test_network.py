"""Pods find each other by name, and services by their own address."""

from __future__ import annotations

import asyncio
import errno
import random
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

import pytest

from cluster.nodes.machines import BLOCKS, Machine, shell
from machine_limits import needs_namespaces
from navarch._base.clock import SystemClock
from navarch.client import MergePatch
from navarch.cluster.nodes.network.addresses import LoopbackBlock
from navarch.cluster.nodes.network.hosts_file import hosts_text, names_of
from navarch.cluster.nodes.network.proxies import TcpProxies, UdpProxies
from navarch.cluster.nodes.network.routes import host_ports, routes
from navarch.k8s.core.v1 import Container, ContainerPort, Node, Pod, PodSpec, Service, ServicePort, ServiceSpec
from navarch.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from navarch.testing.cluster import Cluster

_SELDOM = 250
"""The first block of those that nobody else takes as long as there are others."""


def _service(name: str, address: str, *ports: int, namespace: str = "default") -> Service:
    listed = [ServicePort(port=port, name=f"p{port}", protocol="TCP") for port in ports]
    return Service(name=name, namespace=namespace, spec=ServiceSpec(cluster_ip=address, ports=listed))


def _slice(service: str, port: EndpointPort, *endpoints: Endpoint, namespace: str = "default") -> EndpointSlice:
    labels = {"kubernetes.io/service-name": service}
    return EndpointSlice(
        name=f"{service}-1",
        namespace=namespace,
        labels=labels,
        address_type="IPv4",
        endpoints=list(endpoints),
        ports=[port],
    )


def _endpoint(address: str, hostname: str | None = None, **conditions: bool) -> Endpoint:
    return Endpoint(addresses=[address], hostname=hostname, conditions=EndpointConditions(**conditions))


def test_names_are_kubernetes_own() -> None:
    """A service has its names in all namespaces, a short one in its own; pods behind headless ones have theirs."""
    services = [_service("web", "127.9.0.1", 80), _service("db", "None", 5432, namespace="data")]
    port = EndpointPort(name="p5432", port=5432)
    slices = [
        _slice(
            "db",
            port,
            _endpoint("127.9.128.1", "db-0", ready=True),
            _endpoint("127.9.128.2", ready=False),
            namespace="data",
        )
    ]
    pod = Pod(name="me-0", namespace="data", spec=PodSpec(containers=[], hostname="me-0", subdomain="me"))
    text = hosts_text(pod, "127.9.128.9", names_of(services, slices))
    lines = text.splitlines()
    assert "127.9.128.9\tme-0.me.data.svc.cluster.local me-0.me.data.svc me-0" in lines
    assert "127.9.0.1\tweb.default.svc.cluster.local web.default.svc web.default" in lines
    assert "127.9.128.1\tdb.data.svc.cluster.local db.data.svc db.data db" in lines
    assert "127.9.128.1\tdb-0.db.data.svc.cluster.local db-0.db.data.svc db-0.db.data db-0.db" in lines
    assert "127.9.128.2" not in text


def test_services_lead_to_pods_that_are_ready() -> None:
    """A port leads to ready pods by its name; terminating pods serve only while there is no other."""
    services = [_service("web", "127.9.0.1", 80), _service("far", "10.0.0.9", 80), _service("none", "None", 80)]
    port = EndpointPort(name="p80", port=8080)
    ready, ending = (
        _endpoint("127.9.128.1", ready=True),
        _endpoint("127.9.128.2", ready=False, serving=True, terminating=True),
    )
    assert routes(services, [_slice("web", port, ready, ending)]) == {("127.9.0.1", 80): [("127.9.128.1", 8080)]}
    assert routes(services, [_slice("web", port, ending)]) == {("127.9.0.1", 80): [("127.9.128.2", 8080)]}
    assert routes(services, []) == {("127.9.0.1", 80): []}


def test_node_ports_lead_to_the_same_pods() -> None:
    """A service with a node port has a listener on every node."""
    port = ServicePort(port=80, name="p80", node_port=30080)
    service = Service(name="web", namespace="default", spec=ServiceSpec(cluster_ip="127.9.0.1", ports=[port]))
    slices = [_slice("web", EndpointPort(name="p80", port=8080), _endpoint("127.9.128.9", ready=True))]
    pods = [("127.9.128.9", 8080)]
    assert routes([service], slices, ["127.9.128.1", "127.9.128.2"]) == {
        ("127.9.0.1", 80): pods,
        ("127.9.128.1", 30080): pods,
        ("127.9.128.2", 30080): pods,
    }


def test_host_ports_lead_from_a_node_to_its_pod() -> None:
    """Each protocol has its own routes; pods of unknown nodes have none."""
    ports = [
        ContainerPort(container_port=80, host_port=8080),
        ContainerPort(container_port=53, protocol="UDP", host_port=5353),
    ]
    container = Container(name="main", image="x", ports=[*ports, ContainerPort(container_port=9)])
    pods = [
        (Pod(name=node, spec=PodSpec(containers=[container], node_name=node)), address)
        for node, address in (("one", "127.9.128.7"), ("lost", "127.9.128.8"))
    ]
    nodes = {"one": "127.9.128.1", "two": "127.9.128.2"}
    assert host_ports(pods, nodes) == {("127.9.128.1", 8080): [("127.9.128.7", 80)]}
    assert host_ports(pods, nodes, protocol="UDP") == {("127.9.128.1", 5353): [("127.9.128.7", 53)]}


@pytest.mark.cluster(nodes=1)
async def test_pod_is_reached_at_its_host_port_while_it_is_there(cluster: Cluster) -> None:
    """The host port is open at the address of the pod's node alone."""
    ports = [ContainerPort(container_port=11211, host_port=31211)]
    spec = PodSpec(
        containers=[Container(name="main", image="memcached", ports=ports)], termination_grace_period_seconds=0
    )
    await cluster.create(Pod(name="cache", spec=spec))
    node = await cluster.until(Node, "node-1", lambda node: node.status.addresses)
    assert node.status.addresses is not None
    ask = partial(_version, node.status.addresses[0].address, 31211)
    answer = await cluster.eventually(ask, bool, what="an answer")
    assert answer is not None
    assert answer.startswith(b"VERSION ")
    await cluster.client.delete(Pod, "cache")
    await cluster.eventually(ask, lambda answer: answer is None, what="nobody at the port")


async def _version(address: str, port: int) -> bytes | None:
    """What memcached answers; nothing if it does not yet, None if nobody listens."""
    try:
        reader, writer = await asyncio.open_connection(address, port)
    except ConnectionRefusedError:
        return None
    try:
        writer.write(b"version\r\n")
        return await reader.readline()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_no_two_clusters_have_the_same_addresses() -> None:
    """A block belongs to one cluster until it is closed."""
    one, two = LoopbackBlock.take(_SELDOM), LoopbackBlock.take(_SELDOM)
    try:
        assert one.number != two.number
        addresses = {one.address() for _ in range(300)} | {two.address() for _ in range(300)}
        assert len(addresses) == 600
        assert not one.services.overlaps(two.services)
    finally:
        one.close()
        two.close()
    again = LoopbackBlock.take(one.number)
    again.close()
    assert again.number == one.number


@pytest.mark.cluster(nodes=1)
async def test_pods_find_services_and_each_other_by_name(cluster: Cluster) -> None:
    """Names appear in running pods, lead to a proxy at the service's address or to the pods themselves, and go again."""
    await cluster.create(_headed("cache", None, "NodePort"))
    await cluster.create(_headed("each", "None"))
    cache = PodSpec(containers=[Container(name="main", image="memcached")], hostname="cache-0", subdomain="each")
    await cluster.create(Pod(name="cache-0", labels={"app": "cache"}, spec=cache))
    ask = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 60); s.sendall(b'version\\r\\n'); print(s.recv(99))"
    node = await cluster.until(Node, "node-1", lambda node: node.status.addresses)
    assert node.status.addresses is not None
    door = (await cluster.get(Service, "cache")).spec.ports
    assert door is not None
    assert door[0].node_port is not None
    for number, (host, port) in enumerate(
        [
            ("cache", 8080),
            ("cache.default.svc.cluster.local", 8080),
            ("cache-0.each", 11211),
            (node.status.addresses[0].address, door[0].node_port),
        ]
    ):
        container = Container(name="main", image="python", args=["-c", ask, host, str(port)])
        spec = PodSpec(containers=[container], restart_policy="OnFailure")
        await cluster.create(Pod(name=f"client-{number}", spec=spec))
        await cluster.eventually(partial(cluster.get, Pod, f"client-{number}"), _has_succeeded, timeout=60)


def _has_succeeded(pod: Pod) -> bool:
    return pod.status.phase == "Succeeded"


def _headed(name: str, address: str | None, kind: str | None = None) -> Service:
    port = ServicePort(port=8080, target_port=11211)
    spec = ServiceSpec(cluster_ip=address, type=kind, selector={"app": "cache"}, ports=[port])
    return Service(name=name, spec=spec)


_CALL = """
import os, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
headers = {"Authorization": "Bearer " + open(f"{folder}/token").read()}
for host in (os.environ["KUBERNETES_SERVICE_HOST"], "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"):
    url = f"https://{host}:{os.environ['KUBERNETES_SERVICE_PORT']}/api/v1/namespaces/default/pods/me"
    try:
        urllib.request.urlopen(urllib.request.Request(url, headers=headers), context=context, timeout=60)
    except urllib.error.HTTPError as error:
        assert error.code == 403 and b"system:serviceaccount:default:default" in error.read()
"""


@pytest.fixture(params=[0, 1024])
def first_port(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first port that this machine lets proxies listen on, if it is not a higher one anyway."""
    listen = asyncio.start_server

    async def start_server(serve: Callable[..., Awaitable[None]], host: str, port: int) -> asyncio.Server:
        if port < request.param:
            raise PermissionError(errno.EACCES, "Permission denied")
        return await listen(serve, host, port)

    monkeypatch.setattr("navarch.cluster.nodes.network.proxies.asyncio.start_server", start_server)


@pytest.mark.cluster(nodes=1)
@pytest.mark.usefixtures("first_port")
async def test_pods_reach_the_api_server(http_cluster: Cluster) -> None:
    """A pod reaches it with the token and certificate of its files, at the address and port of its environment and by
    the server's names, also where nobody may listen on port 443.
    """
    container = Container(name="main", image="python", args=["-c", _CALL])
    container.termination_message_policy = "FallbackToLogsOnError"
    await http_cluster.create(Pod(name="me", spec=PodSpec(containers=[container], restart_policy="Never")))
    pod = await http_cluster.eventually(
        lambda: http_cluster.get(Pod, "me"), lambda pod: pod.status.phase in {"Succeeded", "Failed"}, timeout=60
    )
    assert pod.status.phase == "Succeeded", pod.status.container_statuses


async def test_a_proxy_passes_over_pods_that_refuse() -> None:
    """The proxy tries the next pod after a refusal; bytes pass both ways until both ends have closed."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    block = LoopbackBlock.take(BLOCKS)
    server = await asyncio.start_server(answer, block.address(), 0)
    good = server.sockets[0].getsockname()
    proxies = TcpProxies(random.Random(1))
    service = (block.address(), 8080)
    try:
        await proxies.follow({service: [(block.address(), 1), good]})
        for _ in range(5):
            async with asyncio.timeout(30):
                reader, writer = await asyncio.open_connection(*service)
                writer.write(b"word")
                writer.write_eof()
                assert await reader.read() == b"WORD"
                writer.close()
        await proxies.follow({})
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*service)
    finally:
        await proxies.close()
        server.close()
        await server.wait_closed()
        block.close()


class _Echo(asyncio.DatagramProtocol):
    """Answers in capitals, with its own name in front."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        self._transport.sendto(self._name + data.upper(), address)


async def _ask(address: tuple[str, int], *words: bytes) -> list[bytes]:
    """The answers to each word, asked from one place."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setblocking(False)
        asking.connect(address)
        answers = []
        async with asyncio.timeout(30):
            for word in words:
                await loop.sock_sendall(asking, word)
                answers.append(await loop.sock_recv(asking, 100))
        return answers


async def test_datagrams_are_carried_both_ways() -> None:
    """A client keeps its pod while that exists, and gets another one afterwards."""
    loop, block = asyncio.get_running_loop(), LoopbackBlock.take(BLOCKS)
    datagrams, service = UdpProxies(SystemClock(), random.Random(1)), (block.address(), 5353)
    pods = [(block.address(), 5353), (block.address(), 5353)]
    servers = [
        (await loop.create_datagram_endpoint(lambda name=name: _Echo(name), local_addr=pod))[0]  # type: ignore[misc]
        for pod, name in zip(pods, (b"a", b"b"), strict=True)
    ]
    try:
        datagrams.follow({service: pods})
        first, second = await _ask(service, b"one", b"two")
        assert first[1:] + second[1:] == b"ONETWO"
        assert first[:1] == second[:1]
        datagrams.follow({service: pods[1:]})
        assert await _ask(service, b"three") == [b"bTHREE"]
    finally:
        datagrams.close()
        block.close()
        for server in servers:
            server.close()


async def test_aliases_are_in_the_hosts_file(machine: Machine) -> None:
    """hostAliases and the pod's own hostname are in its hosts file."""
    pod = await machine.run(
        shell("sleep 100"), host_aliases=[{"ip": "127.1.2.3", "hostnames": ["far", "away"]}], hostname="me"
    )
    text = await machine.output(pod, "cat", "/etc/hosts")
    assert "127.1.2.3\tfar away\n" in text
    assert f"{pod.status.pod_ip}\tme\n" in text
    await machine.cluster.client.patch(Pod, "pod", MergePatch({"metadata": {"labels": {"x": "y"}}}))


@needs_namespaces
async def test_a_pod_has_a_hostname_of_its_own(machine: Machine) -> None:
    """Programs are told the pod's hostname, not the machine's."""
    pod = await machine.run(shell("sleep 100"), hostname="me")
    assert await machine.output(pod, "hostname") == "me\n"
