"""A real node: kubelet, containerd and runc, confined so that nothing of them can remain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rig import asking, kubeconfig, nodefiles, programs, traces
from rig.certificates import Authority
from rig.cluster import Cluster
from rig.errors import RigError
from rig.folders import SOURCE
from rig.image import write_archive
from rig.nodefiles import CONTAINERD_SOCKET, DNS_READY_PORT, NODE_NAME, PROXY_HEALTH_PORT, NodePlan
from rig.nodeinit import COVERED
from rig.process import CLEAN_ENVIRONMENT, Daemon
from rig.traces import Network
from rig.waiting import wait_for

READY_LIMIT = 120.0


def check_possible(folder: Path) -> None:
    """Raise RigError if no node can run here."""
    if os.geteuid() != 0:
        raise RigError("a node runs real containers and needs root; without --node the rig does not")
    if any(folder.is_relative_to(covered) for covered in COVERED):
        raise RigError(f"the folder of a cluster with a node cannot lie in {', '.join(COVERED)}, got {folder}")


def plan(folder: Path, authority: Authority) -> NodePlan:
    """Make the network and the control group, and write the node's files."""
    network = traces.make_network(folder)
    serving = authority.serving("kubelet", [network.node, NODE_NAME])
    node_plan = NodePlan(folder, network, traces.make_control_group(folder), authority.pair.certificate, serving)
    for part in ("cni", "registries"):
        (folder / part).mkdir()
    (folder / "cni" / "10-navarch-rig.conflist").write_text(json.dumps(nodefiles.cni(node_plan)))
    (folder / "containerd.toml").write_text(nodefiles.containerd(node_plan))
    (folder / "kubelet.yaml").write_text(json.dumps(nodefiles.kubelet(node_plan)))
    (folder / "resolv.conf").touch()  # no name server: a pod's question must not leave the machine either
    return node_plan


def start(stack: ExitStack, node_plan: NodePlan, authority: Authority, cluster: Cluster) -> None:
    """Start the node and wait until pods can be placed on it; it is stopped when the stack unwinds."""
    folder = node_plan.folder

    def access(name: str, user: str, group: str) -> Path:
        credentials = kubeconfig.certificate_user(authority.client(name, user, [group]))
        config = kubeconfig.document(cluster.url, cluster.ca_file, credentials)
        return kubeconfig.write(folder / f"kubeconfig-{name}.yaml", config)

    node = _Confined(folder, cluster)
    stack.callback(node.stop)
    node.start(node_plan.network)
    node.run("containerd", ["containerd", "--config", str(folder / "containerd.toml")])
    node.await_result("containerd to answer", lambda: node.call("ctr", "version"), "containerd")
    node.load_image(write_archive(folder / "probe.tar", programs.PROBE.path))
    kubelet_access = access("node", f"system:node:{NODE_NAME}", "system:nodes")
    node.run("kubelet", nodefiles.kubelet_command(node_plan, programs.KUBELET.path, kubelet_access))
    _start_services(node, node_plan, access)
    node.await_result(f"node {NODE_NAME} to be ready", lambda: is_ready(cluster), "kubelet")
    node.await_result("kube-proxy to be ready", lambda: _answers(node_plan, PROXY_HEALTH_PORT, "healthz"), "kube-proxy")
    node.await_result("CoreDNS to be ready", lambda: _answers(node_plan, DNS_READY_PORT, "ready"), "coredns")


def _start_services(node: _Confined, node_plan: NodePlan, access: Callable[[str, str, str], Path]) -> None:
    """Start what makes services work: kube-proxy for their addresses, CoreDNS for their names."""
    config = node_plan.folder / "kube-proxy.yaml"
    config.write_text(json.dumps(nodefiles.proxy(node_plan, access("proxy", "system:kube-proxy", "system:nodes"))))
    node.run("kube-proxy", [str(programs.PROXY.path), f"--config={config}"])
    corefile = node_plan.folder / "Corefile"
    corefile.write_text(nodefiles.dns(node_plan, access("dns", "rig-dns", "system:masters")))
    node.run("coredns", [str(programs.DNS.path), "-conf", str(corefile)])
    objects = {"apiVersion": "v1", "kind": "List", "items": nodefiles.dns_service(node_plan)}
    node.cluster.kubectl("create", "--filename=-", stdin=json.dumps(objects))


def _answers(node_plan: NodePlan, port: int, path: str) -> bool:
    return asking.get(f"http://{node_plan.network.node}:{port}/{path}") is not None


def is_ready(cluster: Cluster) -> bool:
    """Tell whether the node reports ready and the controllers have seen it (they take a taint away)."""
    body = cluster.get(f"/api/v1/nodes/{NODE_NAME}")
    return body is not None and takes_pods(json.loads(body))


def takes_pods(node: dict[str, Any]) -> bool:
    """Tell whether a node is ready and has no taint that keeps pods away."""
    ready = {"type": "Ready", "status": "True"}
    conditions = node.get("status", {}).get("conditions", [])
    return not node["spec"].get("taints") and any(ready.items() <= condition.items() for condition in conditions)


class _Confined:
    """The node's namespaces, seen from outside: process 1 and what to run beside it."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.cluster = cluster
        self._folder = folder
        namespaces = ["unshare", "--mount", "--propagation=private", "--net", "--pid", "--fork", "--kill-child=KILL"]
        process_1 = [sys.executable, "-I", "-S", str(SOURCE / "nodeinit.py"), str(folder / "scratch")]
        log = cluster.log("node")
        self.daemon = Daemon("the node", [*namespaces, *process_1], log, stdin=subprocess.PIPE)

    def start(self, network: Network) -> None:
        """Start process 1, and join its network with this machine's."""
        self.daemon.start()
        traces.attach_node(self._folder, network, int(self._process_1()))

    def stop(self) -> None:
        """Close process 1's input: it ends, and the kernel ends the rest."""
        self.daemon.close_input()
        self.daemon.stop()

    def run(self, name: str, command: list[str]) -> None:
        """Have process 1 start a program that stays."""
        order = {"command": command, "log": str(self.cluster.log(name))}
        self.daemon.tell(json.dumps(order) + "\n")

    def await_result(self, what: str, probe: Callable[[], bool], program: str) -> None:
        """Wait for something that a program of the node brings about; its log explains a failure."""
        log = self.cluster.log(program)
        wait_for(what, probe, seconds=READY_LIMIT, daemon=self.daemon, log=log)

    def call(self, *command: str) -> bool:
        """Run a program inside to its end; tell whether it succeeded."""
        return self._enter(*command).returncode == 0

    def load_image(self, archive: Path) -> None:
        """Give an image archive to containerd, where Kubernetes' runtime looks for images."""
        done = self._enter(
            "ctr", "--address", CONTAINERD_SOCKET, "--namespace=k8s.io", "images", "import", str(archive)
        )
        if done.returncode != 0:
            raise RigError(f"containerd did not take {archive}: {done.stderr.strip()}")

    def _enter(self, *command: str) -> subprocess.CompletedProcess[str]:
        target = ["nsenter", f"--target={self._process_1()}", "--mount", "--net", "--pid"]
        return subprocess.run(
            [*target, *command], env=CLEAN_ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
        )

    def _process_1(self) -> str:
        """Find process 1 as this machine numbers it: the only child of `unshare`."""
        unshare = self.daemon.process.pid
        children = Path(f"/proc/{unshare}/task/{unshare}/children")
        return wait_for("the node's namespaces", lambda: children.read_text().strip(), seconds=10, daemon=self.daemon)
