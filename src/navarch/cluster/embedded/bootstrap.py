"""What a fresh control plane has before anybody asks it for anything."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.pipeline.authorization.rbac import bootstrap_roles
from navarch.cluster.server.wire.request import Json

__all__ = ["CLUSTER_IP", "SERVICES", "bootstrap_objects", "own_endpoints"]

NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
CLUSTER_IP: Final = "10.0.0.1"
SERVICES: Final = "10.0.0.0/24"
_PORT: Final = 6443
_ADDRESS: Final = "127.0.0.1"
_PRIORITIES: Final = {
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
}


def bootstrap_objects() -> list[Json]:
    """Namespaces first, since the rest needs them."""
    return [
        *(_object("v1", "Namespace", name) for name in NAMESPACES),
        *bootstrap_roles(),
        *(_priority_class(name) for name in _PRIORITIES),
        *(_object("v1", "ServiceAccount", "default", namespace) for namespace in NAMESPACES),
        *_own_service(),
    ]


def _object(api_version: str, kind: str, name: str, namespace: str = "", **rest: Json | str | int | list[Json]) -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _priority_class(name: str) -> Json:
    value, description = _PRIORITIES[name]
    return _object("scheduling.k8s.io/v1", "PriorityClass", name, value=value, description=description)


def _own_service() -> list[Json]:
    """The service `kubernetes`, with its address, and where it leads."""
    labels: Json = {"component": "apiserver", "provider": "kubernetes"}
    port: Json = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": _PORT}
    spec: Json = {"clusterIP": CLUSTER_IP, "clusterIPs": [CLUSTER_IP], "type": "ClusterIP", "ports": [port]}
    service = _object("v1", "Service", "kubernetes", "default", spec=spec)
    service["metadata"]["labels"] = labels
    cidr: Json = {"cidrs": [SERVICES]}
    return [
        _object("networking.k8s.io/v1", "ServiceCIDR", "kubernetes", spec=cidr),
        _address(),
        service,
        *_endpoints(),
    ]


def _address() -> Json:
    parent: Json = {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}}
    address = _object("networking.k8s.io/v1", "IPAddress", CLUSTER_IP, spec=parent)
    address["metadata"]["labels"] = {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    return address


def _endpoints() -> list[Json]:
    subsets, ends = own_endpoints(_ADDRESS, _PORT)
    endpoints = _object("v1", "Endpoints", "kubernetes", "default", **subsets)
    endpoints["metadata"]["labels"] = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    slice_ = _object("discovery.k8s.io/v1", "EndpointSlice", "kubernetes", "default", addressType="IPv4", **ends)
    slice_["metadata"]["labels"] = {"kubernetes.io/service-name": "kubernetes"}
    return [endpoints, slice_]


def own_endpoints(address: str, port: int) -> tuple[Json, Json]:
    """Where the server is reached, as it stands in the Endpoints and in the EndpointSlice of its service."""
    named: Json = {"name": "https", "port": port, "protocol": "TCP"}
    subset: Json = {"addresses": [{"ip": address}], "ports": [named]}
    end: Json = {"addresses": [address], "conditions": {"ready": True}}
    return {"subsets": [subset]}, {"endpoints": [end], "ports": [named]}
