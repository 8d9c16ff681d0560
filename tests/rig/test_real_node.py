"""The rig's real node: what needs a kubelet and containers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rig
from rig import folders, ports, programs
from rig.waiting import wait_for

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="a node runs containers and needs root")]

Leftovers = Callable[[Path], list[str]]

SETTINGS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")

OWNER = """
import sys, rig
with rig.running(node=True) as cluster:
    cluster.kubectl("run", "probe", "--image=" + rig.PROBE_IMAGE, "--image-pull-policy=Never")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/probe", "--timeout=60s")
    print(cluster.folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[rig.Cluster]:
    """One cluster with a node."""
    with rig.running(node=True) as cluster:
        yield cluster


def start_pod(cluster: rig.Cluster, name: str, *arguments: str, **container: Any) -> None:
    """Run the probe in a pod and wait until it is ready."""
    image = {"name": "probe", "image": rig.PROBE_IMAGE, "imagePullPolicy": "Never", "args": list(arguments)}
    spec = {"containers": [image | container], "terminationGracePeriodSeconds": 1}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(pod))
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s", seconds=70)


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


def test_pods_reach_each_other_but_not_the_world(cluster: rig.Cluster) -> None:
    """A pod's only route is its own bridge, so no packet of it can leave the machine."""
    start_pod(cluster, "routes", "pause")
    table = cluster.kubectl("exec", "routes", "--", "/probe", "read", "/proc/net/route").splitlines()[1:]
    assert [line.split()[2] for line in table] == ["00000000"]
    assert all(line.split()[1] != "00000000" for line in table)


def test_failed_container_reports_its_exit_code(cluster: rig.Cluster) -> None:
    """The kubelet tells the API server how a container ended."""
    run = ["run", "fails", f"--image={rig.PROBE_IMAGE}", "--image-pull-policy=Never", "--restart=Never"]
    cluster.kubectl(*run, "--", "exit", "3")
    path = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
    code = wait_for("the container to end", lambda: cluster.kubectl("get", "pod", "fails", "-o", path), seconds=60)
    assert code == "3"


def test_node_leaves_nothing_and_changes_nothing(leftovers: Leftovers) -> None:
    """Containers, mounts, interface, control groups and kernel settings are as they were."""
    before = [_setting(name) for name in SETTINGS]
    with rig.running(node=True) as cluster:
        start_pod(cluster, "probe", "pause")
        during = leftovers(cluster.folder)
        assert [_setting(name) for name in SETTINGS] == before
    assert any(found.startswith("interface") for found in during)
    assert leftovers(cluster.folder) == []
    assert [_setting(name) for name in SETTINGS] == before


def test_sigkill_of_the_owner_ends_every_container(leftovers: Leftovers) -> None:
    """The node's containers and mounts die with the process that started it, however that dies."""
    environment = {**os.environ, "PYTHONPATH": str(folders.SOURCE.parent)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        owner.send_signal(signal.SIGKILL)
    wait_for("everything to be gone", lambda: not leftovers(folder), seconds=60)


def _setting(name: str) -> str:
    return (Path("/proc/sys") / name).read_text()
