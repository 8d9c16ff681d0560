"""Pods share the machine's network stack, and yet each has its own ports, and none listens outside of loopback."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cluster.nodes.machines import Machine, end_of, long_while, processes_with, running_machine, shell
from navarch.k8s.core.v1 import Container, Node, Pod, Probe
from navarch.testing.cluster import in_process
from security import bare_kernel, port_programs

_OWN_PYTHON = (sys.executable, "-I", "-S")
_WITHOUT = (sys.executable, str(Path(bare_kernel.__file__)))
_SOMEBODY = ("unshare", "--map-user=1000", "--map-group=1000", "--")
_KINDS = {
    "as-started": _OWN_PYTHON,
    "not-root": (*_SOMEBODY, *_OWN_PYTHON),
    "no-namespaces": (*_WITHOUT, "unshare", "--", *_OWN_PYTHON),
    "no-namespaces-not-root": (*_SOMEBODY, *_WITHOUT, "unshare", "--", *_OWN_PYTHON),
    "no-pidfd-getfd": (*_WITHOUT, "pidfd_getfd", "--", *_OWN_PYTHON),
    "no-pidfd-getfd-no-namespaces": (*_WITHOUT, "pidfd_getfd", "unshare", "--", *_OWN_PYTHON),
}
_ASKED = ("as-started", "not-root", "no-namespaces", "no-namespaces-not-root")
_REFUSED = ("no-pidfd-getfd", "no-pidfd-getfd-no-namespaces")
_LEAST = ("no-namespaces-not-root", "no-pidfd-getfd")
"""The machines that allow least."""
_PYTHON_OF_ALL = "/usr/bin/python3"
_needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(_PYTHON_OF_ALL).exists(),
    reason=f"only root can become somebody else, who needs {_PYTHON_OF_ALL}",
)


def _kinds(*names: str, on_least: bool = False) -> pytest.MarkDecorator:
    """The kinds of machine that a test runs on: in `make test` the first, and with `on_least` the one that allows least."""
    can_unshare = shutil.which("unshare") is not None and os.geteuid() == 0
    skipped = pytest.mark.skipif(not can_unshare, reason="becomes somebody else with unshare, as root")
    others = {*names[1:]} - ({*_LEAST} if on_least else set())
    cases = [
        pytest.param(
            name,
            marks=[*([skipped] if "not-root" in name else []), *([pytest.mark.long] if name in others else [])],
        )
        for name in names
    ]
    return pytest.mark.parametrize("machine", cases, indirect=True)


@pytest.fixture
async def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Machine]:
    """A process node whose kernel allows its runtime what the name of its kind says."""
    monkeypatch.setattr("navarch.cluster.nodes.shim.runtime._PYTHON", _KINDS[getattr(request, "param", "as-started")])
    async with in_process() as cluster, running_machine(cluster, tmp_path) as made:
        yield made


def python(function: str, *args: str, name: str = "main", **fields: object) -> Container:
    """A container that runs a function of `port_programs`."""
    program = Path(port_programs.__file__)
    return Container(
        name=name,
        image="python",
        command=[sys.executable, str(program), function, *args],
        **fields,  # type: ignore[arg-type]
    )


class Socket(NamedTuple):
    """A socket as the kernel lists it."""

    protocol: str
    address: str
    port: int
    listens: bool


def sockets_of(token: str) -> list[Socket]:
    """The network sockets of the processes of this machine that have the text in their command line."""
    inodes = {inode for pid in processes_with(token) for inode in _inodes(pid)}
    return [socket for protocol in ("tcp", "tcp6", "udp", "udp6") for socket in _listed(protocol, inodes)]


def _inodes(pid: int) -> set[str]:
    found = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(path.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[len("socket:[") : -1])
    return found


def _listed(protocol: str, inodes: set[str]) -> list[Socket]:
    found = []
    for line in Path(f"/proc/net/{protocol}").read_text().splitlines()[1:]:
        words = line.split()
        if words[9] in inodes:
            packed, port = words[1].split(":")
            found.append(Socket(protocol, _address(packed), int(port, 16), words[3] == "0A"))
    return found


def _address(text: str) -> str:
    """As /proc/net has it: words of four bytes, in the machine's order."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    found = ipaddress.ip_address(b"".join(words))
    return str(getattr(found, "ipv4_mapped", None) or found)


def outside(sockets: list[Socket]) -> list[Socket]:
    """Those that can be reached from elsewhere."""
    return [socket for socket in sockets if not ipaddress.ip_address(socket.address).is_loopback]


def address_of(pod: Pod) -> str:
    """The pod's address."""
    assert pod.status.pod_ip is not None
    return pod.status.pod_ip


@_kinds(*_ASKED)
@pytest.mark.parametrize("address", ["0.0.0.0", "::", "127.0.0.1"])
async def test_pods_of_one_image_listen_on_the_same_port(machine: Machine, address: str) -> None:
    """Each answers its own sidecar at localhost and others at its own address; nothing is reached from elsewhere."""
    token = long_while()
    pods = {}
    for name in ("one", "two"):
        server = python("serve", address, "9090", name, token)
        sidecar = python("ask_and_stay", "localhost", "9090", name="sidecar")
        pods[name] = await machine.run(server, sidecar, name=name)
    for name, pod in pods.items():
        assert await _said_by_sidecar(machine, pod) == f"{name}\n"
        assert await _answer(address_of(pod), 9090) == name
    found = await asyncio.to_thread(sockets_of, token)
    assert outside(found) == []
    assert {socket.address for socket in found if socket.listens} == {address_of(pod) for pod in pods.values()}


async def _said_by_sidecar(machine: Machine, pod: Pod) -> str:
    return await machine.cluster.eventually(
        lambda: machine.log(pod, "sidecar"), bool, timeout=60, what=f"the sidecar of {pod.name} to have an answer"
    )


async def _answer(host: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


@_kinds(*_ASKED, on_least=True)
async def test_no_socket_is_bound_outside_of_loopback(machine: Machine) -> None:
    """However it is bound: by its first datagram, by `listen` alone, by a thread or a child, or after it was connected."""
    token = long_while()
    pod = await machine.run(python("open_every_socket", token))
    await machine.said(pod, "ready")
    assert "fault" not in await machine.log(pod)
    found = await asyncio.to_thread(sockets_of, token)
    assert outside(found) == []
    assert len(found) >= port_programs.OPENED
    own = address_of(pod)
    assert {socket.address for socket in found} == {own, "::1"}
    assert {(socket.protocol, socket.port) for socket in found} >= {("tcp", 9001), ("tcp6", 9002), ("udp", 9001)}


@_kinds("as-started", "no-namespaces-not-root", on_least=True)
async def test_addresses_and_ways_of_others_are_refused(machine: Machine) -> None:
    """As in a pod with a network of its own; ways to the network that nobody would be asked about are not there."""
    other = await machine.run(shell("sleep 100"), name="other")
    pod = await machine.ended(python("try_what_is_refused", address_of(other)))
    assert (await machine.log(pod), end_of(pod).exit_code) == ("", 0)


@_kinds("as-started", "no-namespaces")
async def test_thread_that_exchanges_sockets_and_addresses_binds_nothing_outside(machine: Machine) -> None:
    """While the node looks at a call, another thread puts another socket, or another address, in its place."""
    pod = await machine.ended(python("exchange_sockets"))
    assert (await machine.log(pod), end_of(pod).exit_code) == ("done\n", 0)


@_kinds(*_ASKED)
async def test_exec_reaches_the_listener_of_its_pod(machine: Machine) -> None:
    """By localhost; and what an exec leaves running still binds when the exec has ended."""
    token = long_while()
    pod = await machine.run(python("serve", "::", "9090", "mine", token))
    program = str(Path(port_programs.__file__))
    asked = await machine.output(pod, sys.executable, program, "ask_until_answered", "127.0.0.1", "9090")
    assert asked == "mine\n"
    await machine.output(pod, sys.executable, program, "serve_later", "0.0.0.0", "9091", "left", token)
    asked = await machine.output(pod, sys.executable, program, "ask_until_answered", "::1", "9091")
    assert asked == "left\n"
    assert outside(await asyncio.to_thread(sockets_of, token)) == []


@_kinds("as-started", "no-namespaces")
async def test_datagrams_to_localhost_reach_the_own_pod(machine: Machine) -> None:
    """Of a socket that is connected, and of one that is not."""
    for name in ("one", "two"):
        pod = await machine.run(python("collect", "8125"), python("send_datagrams", name, name="sidecar"), name=name)
        await machine.said(pod, f"{name} connected")
        assert set((await machine.log(pod)).split("\n")) <= {f"{name} sent", f"{name} connected", ""}


async def test_pod_that_binds_many_ports_takes_none_from_another(machine: Machine) -> None:
    """Of IPv6 alone, where the node has to remember which port is whose."""
    pod = await machine.run(python("serve_six_alone", "9090", "mine"), name="server")
    program = (sys.executable, str(Path(port_programs.__file__)))
    assert await machine.output(pod, *program, "ask_until_answered", "::1", "9090") == "mine\n"
    await machine.ended(python("bind_many_of_six_alone"), name="many")
    assert await machine.output(pod, *program, "ask_until_answered", "::1", "9090") == "mine\n"


async def test_localhost_leads_to_the_machine_where_the_pod_has_no_listener(machine: Machine) -> None:
    """A program of the machine, such as the API server, is reached as ever."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"machine")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = str(server.sockets[0].getsockname()[1])
        pod = await machine.ended(python("ask_until_answered", "localhost", port))
        assert await machine.log(pod) == "machine\n"


async def test_other_pods_see_the_address_of_the_pod(machine: Machine) -> None:
    """Inside the pod a connection to localhost comes from localhost."""
    token = long_while()
    server = await machine.run(python("serve_peers", "9090", token), name="server")
    local = await machine.output(
        server, sys.executable, str(Path(port_programs.__file__)), "ask_until_answered", "localhost", "9090"
    )
    assert local == "127.0.0.1\n"
    client = await machine.ended(python("ask_until_answered", address_of(server), "9090"), name="client")
    assert await machine.log(client) == f"{address_of(client)}\n"


async def test_probes_and_forwarded_ports_reach_a_listener_of_all_addresses(machine: Machine) -> None:
    """As those of a program that was told its pod's address."""
    probe = Probe(tcp_socket={"port": 9090}, period_seconds=1)  # type: ignore[arg-type]  # as in YAML
    pod = await machine.run(python("serve", "0.0.0.0", "9090", "mine", readiness_probe=probe))
    reader, writer = await machine.node.forward(pod.metadata.uid, 9090)
    assert await reader.read() == b"mine"
    writer.close()


@_kinds("as-started", "no-namespaces-not-root")
async def test_pod_on_the_network_of_its_node_listens_at_the_address_of_the_node(machine: Machine) -> None:
    """And not on those of the machine; a probe of localhost finds it there."""
    token = long_while()
    probe = Probe(tcp_socket={"host": "127.0.0.1", "port": 9001}, period_seconds=1)  # type: ignore[arg-type]  # as in YAML
    pod = await machine.run(python("open_every_socket", token, readiness_probe=probe), host_network=True)
    await machine.said(pod, "ready")
    found = await asyncio.to_thread(sockets_of, token)
    assert {socket.address for socket in found} - {"::1"} == {machine.node.address} == {pod.status.host_ip}


@_kinds("as-started", "no-namespaces")
async def test_static_programs_have_their_own_ports(machine: Machine) -> None:
    """Two etcd of one command: no library stands between a Go program and the kernel."""
    listen = ["--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://localhost:2379"]
    peers = ["--listen-peer-urls=http://localhost:2380"]
    probe = Probe(http_get={"path": "/health", "port": 2379}, period_seconds=1)  # type: ignore[arg-type]  # as in YAML
    volume, token = [{"name": "data", "emptyDir": {}}], long_while()
    for name in ("one", "two"):
        container = Container(
            name="main",
            image="etcd",
            args=["--data-dir=/data/etcd", f"--initial-cluster-token={token}", *listen, *peers],
            readiness_probe=probe,
            volume_mounts=[{"name": "data", "mountPath": "/data"}],  # type: ignore[list-item]  # as in YAML
        )
        await machine.run(container, name=name, volumes=volume)
    found = await asyncio.to_thread(sockets_of, token)
    assert outside(found) == []
    assert len({socket.address for socket in found if socket.listens and socket.port == 2379}) == 2


@_kinds("as-started", "no-namespaces")
async def test_call_that_waits_keeps_nobody_else_waiting(machine: Machine) -> None:
    """A connection to a listener that accepts none blocks its own thread; one that asks without end has its turns alone."""
    blocked = await machine.run(python("block_in_connect"), name="blocked")
    await machine.said(blocked, "blocking")
    flood = await machine.run(python("flood"), name="flood")
    await machine.said(flood, "flooding")
    pod = await machine.ended(
        python("serve_once", "9090"), python("ask_until_answered", "localhost", "9090", name="sidecar")
    )
    assert (await machine.log(pod, "sidecar"), end_of(pod).exit_code) == ("once\n", 0)
    assert "connected" not in await machine.log(blocked)


@_kinds(*_ASKED)
async def test_calls_that_make_no_sense_harm_nobody(machine: Machine) -> None:
    """They fail for whoever makes them; the node goes on."""
    token = long_while()
    bystander = await machine.run(python("serve", "::", "9090", "mine", token), name="bystander")
    pod = await machine.ended(*(python("call_with_nonsense", str(seed), name=f"c{seed}") for seed in range(2)))
    assert [end_of(pod, f"c{seed}").exit_code for seed in range(2)] == [0, 0]
    assert await _answer(address_of(bystander), 9090) == "mine"


@_kinds(*_ASKED)
async def test_node_keeps_no_socket_of_its_pods(machine: Machine) -> None:
    """Descriptors that it asked for are closed again, also of programs that were killed while they waited."""
    pod = await machine.run(python("serve", "::", "9090", "mine"))
    before = await asyncio.to_thread(_sockets_of_runtime, machine)
    for name in ("a", "b"):
        await machine.ended(python("open_and_leave"), name=name)
    await machine.output(pod, sys.executable, str(Path(port_programs.__file__)), "open_and_leave")
    await machine.cluster.eventually(
        lambda: asyncio.to_thread(_sockets_of_runtime, machine), lambda now: now <= before, what="as many descriptors"
    )


def _sockets_of_runtime(machine: Machine) -> int:
    return sum(len(_inodes(pid)) for pid in processes_with(str(machine.folder / "shim" / "root")))


@_kinds("as-started", "not-root", "no-namespaces")
async def test_unix_sockets_are_bound_as_ever(machine: Machine) -> None:
    """To paths as the container sees them, relative ones too, with its umask; and to names that are no paths."""
    pod = await machine.ended(python("bind_unix_sockets", working_dir="/tmp"))
    assert (await machine.log(pod), end_of(pod).exit_code) == ("done\n", 0)


@_needs_root
async def test_accounts_keep_what_they_may(machine: Machine) -> None:
    """Somebody else may listen on port 80, owns the Unix socket he binds and is known as who listens on it, and may still
    become root by a setuid program.
    """
    program = await asyncio.to_thread(Path(port_programs.__file__).read_text)
    container = Container(
        name="main",
        image="python",
        command=[_PYTHON_OF_ALL, "-c", program, "bind_as_somebody"],
        volume_mounts=[{"name": "data", "mountPath": "/data"}],  # type: ignore[list-item]  # as in YAML
        security_context={"runAsUser": 1234},  # type: ignore[arg-type]  # as in YAML
    )
    pod = await machine.ended(container, volumes=[{"name": "data", "emptyDir": {}}], security_context={"fsGroup": 2345})
    assert (await machine.log(pod), end_of(pod).exit_code) == ("1234 0o755 1234 0 NoNewPrivs:\t0\n", 0)


@_kinds(*_REFUSED)
async def test_container_binds_nothing_where_the_node_cannot_bind_for_it(machine: Machine) -> None:
    """Others run; the node and an event say so, and what the remedy is."""
    assert any("bind no sockets" in limit for limit in machine.shim.limits)
    node = await machine.cluster.get(Node, machine.node.name)
    assert "bind no sockets" in (node.metadata.annotations or {})["navarch.dev/limits"]
    token = long_while()
    pod = await machine.ended(python("serve", "0.0.0.0", "9090", "mine", token), name="refused")
    assert end_of(pod).exit_code == 1
    assert "PermissionError" in await machine.log(pod)
    assert "status.podIP" in await machine.noted("PortsRefused", "refused")
    pod = await machine.ended(shell("echo word"), name="silent")
    assert await machine.log(pod) == "word\n"


@_kinds(*_REFUSED)
async def test_container_gets_no_datagrams_where_the_node_cannot_bind_for_it(machine: Machine) -> None:
    """The first that a socket sends would bind it to every address."""
    pod = await machine.ended(python("try_datagrams"))
    assert (await machine.log(pod), end_of(pod).exit_code) == ("", 0)


@_kinds(*_REFUSED)
async def test_container_that_is_told_its_address_listens_there(machine: Machine) -> None:
    """Also where the node cannot bind for it."""
    env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    pod = await machine.run(python("serve", "$(POD_IP)", "9090", "mine", env=env))
    assert await _answer_soon(machine, address_of(pod), 9090) == "mine"
    assert "PortsRefused" not in await machine.reasons()


async def _answer_soon(machine: Machine, host: str, port: int) -> str:
    async def asked() -> str:
        try:
            return await _answer(host, port)
        except ConnectionRefusedError:
            return ""

    return await machine.cluster.eventually(asked, bool, timeout=60, what=f"an answer at {host}:{port}")
