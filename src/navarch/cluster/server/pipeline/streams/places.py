"""Where a pod runs, and which of its containers is meant."""

from __future__ import annotations

from typing import Final

import msgspec

from navarch.cluster.server.pipeline.endpoints.call import Call
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, not_found

__all__ = ["Host", "container_of", "host_of", "node_host", "pod_of"]

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_PREFERRED: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_PORT: Final = 10250


class Host(msgspec.Struct, frozen=True):
    """The node of a pod, and where Kubernetes would reach it."""

    name: str
    address: str

    @property
    def unreachable(self) -> str:
        """What is said when it does not answer."""
        return f"dial tcp {self.address}: connect: connection refused"


async def pod_of(call: Call) -> Json:
    """The pod that the request names; refuses with 404."""
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    return found.value


def container_of(pod: Json, name: str) -> str:
    """The container of that name, or the only one; refuses with 400 if it is not clear which is meant."""
    pod_name, spec = pod["metadata"]["name"], pod["spec"]
    names = [container["name"] for kind in _LISTS for container in spec.get(kind) or ()]
    if name:
        if name not in names:
            raise bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    if len(spec["containers"]) > 1:
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]")
    return str(spec["containers"][0]["name"])


async def host_of(call: Call, pod: Json) -> Host | None:
    """The node of the pod, None if it has none yet; refuses if that node is not there, or nobody knows where."""
    name = pod["spec"].get("nodeName", "")
    if not name:
        return None
    return await _host(call, name, "pods")


async def node_host(call: Call, name: str) -> Host:
    """The node of that name; refuses if it is not there, or nobody knows where."""
    return await _host(call, name, "nodes")


async def _host(call: Call, name: str, missed: str) -> Host:
    nodes = call.kernel.catalog.find("", "v1", "nodes")
    assert nodes is not None, "nodes are always served"
    stored = await call.kernel.registry.find(nodes, "", name)
    if stored is None:
        raise not_found("", missed, name)
    return Host(name, _address(stored.value))


def _address(node: Json) -> str:
    status = node.get("status") or {}
    known = {each["type"]: each["address"] for each in status.get("addresses") or ()}
    address = next((known[kind] for kind in _PREFERRED if kind in known), "")
    if not address:
        raise StatusError(500, "", f"no preferred addresses found; known addresses: [{' '.join(known.values())}]")
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or _PORT
    return f"{address}:{port}"
