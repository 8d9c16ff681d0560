"""The objects of a fresh cluster: namespaces, RBAC roles, priority classes and the service `kubernetes`.

`scripts/fresh_cluster.py` stores `bootstrap_objects` as templates; `bootstrap_storage` copies these into an empty storage.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from navarch._base.clock import Clock
from navarch.api import format_time, truncate_to_seconds
from navarch.cluster.server.pipeline.authorization.rbac import bootstrap_roles
from navarch.cluster.server.wire.request import Json
from navarch.cluster.storage import Storage
from navarch.cluster.storage.file import FileStorage
from navarch.cluster.storage.memory import MemoryStorage

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
    """Returns the objects, namespaces first, since the others need them."""
    return [
        *(_object("v1", "Namespace", name) for name in NAMESPACES),
        *bootstrap_roles(),
        *(_priority_class(name) for name in _PRIORITIES),
        *(_object("v1", "ServiceAccount", "default", namespace) for namespace in NAMESPACES),
        *_api_server_service(),
    ]


def _object(api_version: str, kind: str, name: str, namespace: str = "", **rest: Json | str | int | list[Json]) -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _priority_class(name: str) -> Json:
    value, description = _PRIORITIES[name]
    return _object("scheduling.k8s.io/v1", "PriorityClass", name, value=value, description=description)


def _api_server_service() -> list[Json]:
    """Returns the service `kubernetes` with its address and endpoints."""
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
    subsets, ends = api_server_endpoints(_ADDRESS, _PORT)
    endpoints = _object("v1", "Endpoints", "kubernetes", "default", **subsets)
    endpoints["metadata"]["labels"] = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    slice_ = _object("discovery.k8s.io/v1", "EndpointSlice", "kubernetes", "default", addressType="IPv4", **ends)
    slice_["metadata"]["labels"] = {"kubernetes.io/service-name": "kubernetes"}
    return [endpoints, slice_]


def api_server_endpoints(address: str, port: int) -> tuple[Json, Json]:
    """Returns the address of the server as fields of the Endpoints and of the EndpointSlice of its service."""
    named: Json = {"name": "https", "port": port, "protocol": "TCP"}
    subset: Json = {"addresses": [{"ip": address}], "ports": [named]}
    end: Json = {"addresses": [address], "conditions": {"ready": True}}
    return {"subsets": [subset]}, {"endpoints": [end], "ports": [named]}


FRESH: Final = Path(__file__).parent / "data" / "fresh.jsonl"
TEMPLATE_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)


class _Template(NamedTuple):
    """A stored object; `_instantiated` replaces its uid and its creation time."""

    key: str
    value: bytes
    uid: bytes


class _UidMetadata(msgspec.Struct):
    uid: str


class _UidObject(msgspec.Struct):
    metadata: _UidMetadata


class _StoredLine(msgspec.Struct):
    """A line of the file."""

    key: str
    value: msgspec.Raw


async def bootstrap_storage(storage: Storage, clock: Clock, rng: random.Random, services: str = SERVICES) -> None:
    """Writes the objects of a fresh cluster into an empty storage; does not touch one with namespaces.

    Services get addresses of the range `services`.
    """
    if (await storage.page("/registry/namespaces/", limit=1)).items:
        return
    now = format_time(truncate_to_seconds(clock.now())).encode()
    templates = _templates() if services == SERVICES else [_with_service_range(each, services) for each in _templates()]
    await asyncio.gather(*(storage.put(each.key, _instantiated(each, now, rng), expected=0) for each in templates))
    if isinstance(storage, MemoryStorage | FileStorage):  # an etcd may have other users
        await storage.compact(await storage.revision())


def _with_service_range(template: _Template, services: str) -> _Template:
    """Replaces the default service range, and its first address, by those of `services`."""
    first = str(next(ipaddress.ip_network(services).hosts()))
    value = template.value.replace(f'"{SERVICES}"'.encode(), f'"{services}"'.encode())
    value = value.replace(f'"{CLUSTER_IP}"'.encode(), f'"{first}"'.encode())
    return template._replace(key=template.key.replace(CLUSTER_IP, first), value=value)


def _instantiated(template: _Template, now: bytes, rng: random.Random) -> bytes:
    uid = str(uuid.UUID(int=rng.getrandbits(128), version=4)).encode()
    return template.value.replace(template.uid, uid).replace(_then(), now)


def _then() -> bytes:
    return format_time(TEMPLATE_TIME).encode()


@cache
def _templates() -> tuple[_Template, ...]:
    kept = msgspec.json.Decoder(_StoredLine).decode_lines(FRESH.read_bytes())
    return tuple(_template(each.key, bytes(each.value)) for each in kept)


def _template(key: str, value: bytes) -> _Template:
    return _Template(key, value, msgspec.json.decode(value, type=_UidObject).metadata.uid.encode())
