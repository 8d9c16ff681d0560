"""The configuration files of a node's programs: pure functions from a plan to their content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig.certificates import Pair
from rig.image import PROBE_IMAGE
from rig.packages import CNI_PLUGINS
from rig.traces import Network

NODE_NAME = "rig-node"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
"""In the node's own /run, which nobody outside sees; so the path is short however long the cluster's folder is."""


@dataclass(frozen=True)
class NodePlan:
    """What the files are made from."""

    folder: Path
    network: Network
    control_group: str
    ca_file: Path
    serving: Pair


def containerd(plan: NodePlan) -> str:
    """Return containerd's configuration."""
    return f"""\
version = 2
root = "{plan.folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
path = "{plan.folder}/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PROBE_IMAGE}"
# Without this runc dies with "can't get final child's PID from pipe" where a negative score is not allowed.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{plan.folder}/cni"
"""


def cni(plan: NodePlan) -> dict[str, Any]:
    """Return the pod network: addresses on the bridge, no gateway, no translation, no forwarding."""
    pods = {"subnet": str(plan.network.subnet), "rangeStart": str(plan.network.subnet[10])}
    addresses = {"type": "host-local", "dataDir": str(plan.folder / "addresses"), "ranges": [[pods]]}
    bridge = {"type": "bridge", "bridge": plan.network.bridge, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "navarch-rig", "plugins": [bridge]}


def kubelet(plan: NodePlan) -> dict[str, Any]:
    """Return the kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "podLogsDir": str(plan.folder / "pods"),
        "volumePluginDir": str(plan.folder / "volume-plugins"),
        "resolvConf": str(plan.folder / "resolv.conf"),
        **_serving(plan),
        **_resources(plan),
    }


def _serving(plan: NodePlan) -> dict[str, Any]:
    """Serve on the bridge, to the API server only, and leave the machine's iptables alone."""
    return {
        "address": plan.network.address,
        "healthzPort": 0,
        "tlsCertFile": str(plan.serving.certificate),
        "tlsPrivateKeyFile": str(plan.serving.key),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(plan.ca_file)},
        },
        "authorization": {"mode": "Webhook"},
        "makeIPTablesUtilChains": False,
    }


def _resources(plan: NodePlan) -> dict[str, Any]:
    """Account in a control group of our own, and never evict or collect: the machine's disk is not ours."""
    return {
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{plan.control_group}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
    }


def kubelet_command(plan: NodePlan, program: Path, kubeconfig: Path) -> list[str]:
    """Return the kubelet's command line."""
    return [
        str(program),
        f"--config={plan.folder / 'kubelet.yaml'}",
        f"--kubeconfig={kubeconfig}",
        f"--root-dir={plan.folder / 'kubelet'}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={plan.network.address}",
    ]
