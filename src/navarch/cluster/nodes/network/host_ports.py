"""Ports of pods at the addresses of their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from navarch.cluster.nodes.network.proxies import Address
from navarch.k8s.core.v1 import ContainerPort, Pod

__all__ = ["host_ports", "wants_host_ports"]


def host_ports(
    pods: Iterable[tuple[Pod, str]], nodes: Mapping[str, str], *, protocol: str = "TCP"
) -> dict[Address, list[Address]]:
    """Where the ports lead to that pods, given with their addresses, want on their nodes, given with theirs.

    A `hostIP` is not looked at: a node has one address.
    """
    return {
        (nodes[pod.spec.node_name or ""], port.host_port): [(address, port.container_port)]
        for pod, address in pods
        if (pod.spec.node_name or "") in nodes
        for port in _wanted(pod)
        if (port.protocol or "TCP") == protocol and port.host_port
    }


def wants_host_ports(pod: Pod) -> bool:
    """Whether the pod wants any."""
    return any(_wanted(pod))


def _wanted(pod: Pod) -> Iterator[ContainerPort]:
    for container in (*pod.spec.containers, *(pod.spec.init_containers or ())):
        yield from (port for port in container.ports or () if port.host_port)
