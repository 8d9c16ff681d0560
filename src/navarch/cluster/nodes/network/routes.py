"""Routes of services and host ports: which pods are behind each address and port. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence

from navarch.cluster.nodes.network.hosts_file import SERVICE_LABEL
from navarch.k8s.core.v1 import ContainerPort, Pod, Service, ServicePort
from navarch.k8s.discovery.v1 import EndpointSlice

Address = tuple[str, int]


def host_ports(
    pods: Iterable[tuple[Pod, str]], nodes: Mapping[str, str], *, protocol: str = "TCP"
) -> dict[Address, list[Address]]:
    """Returns the routes of the host ports of pods, from the addresses of pods and of nodes by name.

    Ignores `hostIP`: a node has one address.
    """
    return {
        (nodes[pod.spec.node_name or ""], port.host_port): [(address, port.container_port)]
        for pod, address in pods
        if (pod.spec.node_name or "") in nodes
        for port in _wanted(pod)
        if (port.protocol or "TCP") == protocol and port.host_port
    }


def wants_host_ports(pod: Pod) -> bool:
    """Returns whether the pod has host ports."""
    return any(_wanted(pod))


def _wanted(pod: Pod) -> Iterator[ContainerPort]:
    for container in (*pod.spec.containers, *(pod.spec.init_containers or ())):
        yield from (port for port in container.ports or () if port.host_port)


def routes(
    services: Iterable[Service], slices: Iterable[EndpointSlice], nodes: Sequence[str] = (), *, protocol: str = "TCP"
) -> dict[Address, list[Address]]:
    """Returns the routes of the ports and node ports of services: to ready pods or, if there are none, to terminating
    pods that still serve.
    """
    parts: dict[tuple[str, str], list[EndpointSlice]] = {}
    for part in slices:
        parts.setdefault((part.namespace, part.labels.get(SERVICE_LABEL, "")), []).append(part)
    found: dict[Address, list[Address]] = {}
    for service in services:
        own = parts.get((service.namespace, service.name), [])
        for port in service.spec.ports or []:
            if (port.protocol or "TCP") == protocol and _is_proxied(service.spec.cluster_ip or ""):
                found |= dict.fromkeys(_places(service, port, nodes), _behind(own, port.name or ""))
    return found


def _places(service: Service, port: ServicePort, nodes: Sequence[str]) -> list[Address]:
    """Returns the addresses of a service port: the cluster IP, and the node port on each node."""
    on_nodes = [(node, port.node_port) for node in nodes if port.node_port]
    return [(service.spec.cluster_ip or "", port.port), *on_nodes]


def _is_proxied(address: str) -> bool:
    """Returns whether the address is a loopback address of this machine."""
    return address not in {"", "None"} and ipaddress.ip_address(address).is_loopback


def _behind(parts: Iterable[EndpointSlice], name: str) -> list[Address]:
    ready: list[Address] = []
    ending: list[Address] = []
    for part in parts:
        port = next((known.port for known in part.ports or [] if (known.name or "") == name), None)
        for endpoint in part.endpoints or [] if port is not None else []:
            conditions = endpoint.conditions
            addresses = [(address, port or 0) for address in endpoint.addresses]
            if conditions is None or conditions.ready is not False:
                ready += addresses
            elif conditions.serving and conditions.terminating:
                ending += addresses
    return ready or ending
