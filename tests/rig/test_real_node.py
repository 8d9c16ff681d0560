"""The rig's real node: what needs a kubelet and containers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rig
from probe_pods import start_pod
from rig import folders, ports, programs
from rig.waiting import wait_for

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="a node runs containers and needs root")]

Leftovers = Callable[[Path], list[str]]

SETTINGS = (
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/route_localnet",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_tcp_timeout_established",
)
"""What a kubelet or a kube-proxy sets, on the machine where it runs."""

OWNER = """
import sys, rig
with rig.running(node=True) as cluster:
    cluster.kubectl("run", "probe", "--image=" + rig.PROBE_IMAGE, "--image-pull-policy=Never")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/probe", "--timeout=60s")
    print(cluster.folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def cluster(node_cluster: rig.Cluster) -> rig.Cluster:
    """One cluster with a node."""
    return node_cluster


def test_logs_hold_every_line(cluster: rig.Cluster) -> None:
    """A thousand printed lines are a thousand lines of log."""
    start_pod(cluster, "lines", "lines", "1000")
    wait_for("the last line", lambda: "line 999\n" in cluster.kubectl("logs", "lines"), seconds=60)
    assert cluster.kubectl("logs", "lines").splitlines() == [f"line {number}" for number in range(1000)]


def test_logs_can_be_followed(cluster: rig.Cluster) -> None:
    """Lines arrive while the container runs."""
    start_pod(cluster, "tick", "tick")
    follow = [str(programs.KUBECTL.path), f"--kubeconfig={cluster.kubeconfig}", "logs", "--follow", "tick"]
    with subprocess.Popen(follow, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(20)]
        process.terminate()
    assert lines == [f"tick {number}\n" for number in range(20)]


def test_exec_carries_streams_and_exit_codes(cluster: rig.Cluster) -> None:
    """Input, output and the exit code pass through the API server."""
    start_pod(cluster, "exec", "pause")
    assert cluster.kubectl("exec", "exec", "--", "/probe", "echo", "a", "b") == "a b\n"
    assert cluster.kubectl("exec", "--stdin", "exec", "--", "/probe", "cat", stdin="through") == "through"
    with pytest.raises(rig.RigError, match="exit code 7"):
        cluster.kubectl("exec", "exec", "--", "/probe", "exit", "7")


def test_attach_reaches_the_running_program(cluster: rig.Cluster) -> None:
    """What is written to an attached container comes back from its program."""
    start_pod(cluster, "attach", "cat", stdin=True, stdinOnce=True)
    assert cluster.kubectl("attach", "--stdin", "attach", stdin="hello\n") == "hello\n"


def test_port_forward_reaches_the_pod(cluster: rig.Cluster) -> None:
    """Bytes sent to the forwarded port are echoed by the pod."""
    start_pod(cluster, "serve", "serve", "7777", readinessProbe={"tcpSocket": {"port": 7777}, "periodSeconds": 1})
    forward = [str(programs.KUBECTL.path), f"--kubeconfig={cluster.kubeconfig}", "port-forward", "pod/serve"]
    with (
        ports.reserved(1) as [port],
        subprocess.Popen([*forward, f"{port}:7777"], stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        assert "Forwarding from 127.0.0.1" in process.stdout.readline()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"ping")
            assert connection.recv(4) == b"ping"
        process.terminate()


def test_failed_container_reports_its_exit_code(cluster: rig.Cluster) -> None:
    """The kubelet tells the API server how a container ended."""
    run = ["run", "fails", f"--image={rig.PROBE_IMAGE}", "--image-pull-policy=Never", "--restart=Never"]
    cluster.kubectl(*run, "--", "exit", "3")
    path = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
    code = wait_for("the container to end", lambda: cluster.kubectl("get", "pod", "fails", "-o", path), seconds=60)
    assert code == "3"


def test_node_leaves_nothing_and_changes_nothing(leftovers: Leftovers) -> None:
    """Containers, mounts, interfaces, routes, control groups, packet rules and kernel settings are as they were."""
    before = _machine()
    with rig.running(node=True) as cluster:
        start_pod(cluster, "probe", "pause")
        during = leftovers(cluster.folder)
        assert _machine() == before
    assert len([found for found in during if found.startswith("interface")]) == 2
    assert leftovers(cluster.folder) == []
    assert _machine() == before
    assert _routes(cluster) == ""


def test_sigkill_of_the_owner_ends_every_container(leftovers: Leftovers) -> None:
    """The node's containers, mounts and network die with the process that started it, however that dies."""
    before = _machine()
    environment = {**os.environ, "PYTHONPATH": str(folders.SOURCE.parent)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        owner.send_signal(signal.SIGKILL)
    wait_for("everything to be gone", lambda: not leftovers(folder), seconds=60)
    assert _machine() == before


def _machine() -> dict[str, str]:
    """What a node must not change: the packet rules, without their counters, and the settings of the machine itself."""
    files = {name: Path("/proc/sys") / name for name in SETTINGS}
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout.splitlines()
    kept = [re.sub(r" \[\d+:\d+\]$", "", line) for line in rules if not line.startswith("#")]
    return {name: file.read_text() for name, file in files.items() if file.exists()} | {"rules": "\n".join(kept)}


def _routes(cluster: rig.Cluster) -> str:
    """The machine's routes to a cluster; an address of it is in their gateways and their ranges."""
    addresses = f"{cluster.machine_address}/22"
    return subprocess.run(["ip", "route", "show", "root", addresses], capture_output=True, text=True, check=True).stdout
