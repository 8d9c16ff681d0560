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
CLUSTER_DOMAIN = "cluster.local"
REGISTRY_NAME = "registry.test:5000"
"""How the names of images begin that the node pulls from the rig's own registry."""
PROXY_HEALTH_PORT = 10256
DNS_READY_PORT = 8181
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

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{plan.folder}/registries"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{plan.folder}/cni"
"""


def registry_hosts(url: str) -> str:
    """Return containerd's file about one registry: images are pulled from the URL, and from nowhere else."""
    return f"""\
server = "{url}"

[host."{url}"]
capabilities = ["pull", "resolve"]
"""


def cni(plan: NodePlan) -> dict[str, Any]:
    """Return the pod network: routes to pods, services and this machine, none to the world, and no translation.

    Each pod has a cable of its own to the node: packets between two pods pass the node's routing, and so kube-proxy's
    rules, in both directions, without the kernel's module that shows a bridge's packets to iptables.
    """
    network = plan.network
    pods = {"subnet": str(network.pods), "rangeStart": str(network.pods[10]), "gateway": str(network.pods[1])}
    routes = [{"dst": str(network.services)}, {"dst": str(network.link)}]
    addresses = {
        "type": "host-local",
        "dataDir": str(plan.folder / "addresses"),
        "ranges": [[pods]],
        "routes": routes,
    }
    return {"cniVersion": "0.4.0", "name": "navarch-rig", "plugins": [{"type": "ptp", "ipam": addresses}]}


def proxy(plan: NodePlan, kubeconfig: Path) -> dict[str, Any]:
    """Return kube-proxy's configuration; the limits on connections are the whole machine's and stay as they are."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": NODE_NAME,
        "bindAddress": plan.network.node,
        "clusterCIDR": str(plan.network.pods),
        "nodePortAddresses": ["primary"],
        "conntrack": {"maxPerCore": 0, "min": 0},
        "healthzBindAddress": f"{plan.network.node}:{PROXY_HEALTH_PORT}",
    }


def dns(plan: NodePlan, kubeconfig: Path) -> str:
    """Return CoreDNS's configuration: it answers for the cluster's names and addresses, and refuses all others."""
    return f"""\
{CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
    errors
    ready {plan.network.node}:{DNS_READY_PORT}
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
    }}
}}
"""


def dns_service(plan: NodePlan) -> list[dict[str, Any]]:
    """Return the service kube-dns, whose endpoint is the node itself."""
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    metadata = {"namespace": "kube-system", "name": "kube-dns"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": plan.network.dns, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata | {"labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [plan.network.node], "nodeName": NODE_NAME, "conditions": {"ready": True}}],
    }
    return [service, endpoints]


def kubelet(plan: NodePlan) -> dict[str, Any]:
    """Return the kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "podLogsDir": str(plan.folder / "pods"),
        "volumePluginDir": str(plan.folder / "volume-plugins"),
        "resolvConf": str(plan.folder / "resolv.conf"),
        "clusterDNS": [plan.network.dns],
        "clusterDomain": CLUSTER_DOMAIN,
        **_serving(plan),
        **_resources(plan),
    }


def _serving(plan: NodePlan) -> dict[str, Any]:
    """Serve on the bridge, to the API server only, and leave iptables to kube-proxy."""
    return {
        "address": plan.network.node,
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
        f"--node-ip={plan.network.node}",
    ]
