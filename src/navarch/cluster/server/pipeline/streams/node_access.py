"""Finds the node and the container of a request, and checks that its user may reach them."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.pipeline.authorization.authorizer import attributes_of
from navarch.cluster.server.pipeline.endpoints.call import RequestAuthorizer, ResourceCall
from navarch.cluster.server.pipeline.streams.upgrades import is_upgrade
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, forbidden, not_found
from navarch.cluster.streams import NodePage, PodStreams

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_PREFERRED: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_PORT: Final = 10250


class ClusterNode(PodStreams, Protocol):
    """One node, with what it has beside its containers."""

    def pod_address(self, pod_uid: str) -> str:
        """Where the node has put the pod; empty if it is not on the node."""
        ...

    @property
    def address(self) -> str:
        """The node's own address."""
        ...

    def page(self, path: str) -> NodePage:
        """What the node itself answers."""
        ...


class NodeDirectory(Protocol):
    """The nodes that the server can reach."""

    def find(self, name: str) -> ClusterNode | None:
        """The node of that name; None if it cannot be reached."""
        ...


class _NoNodes:
    def find(self, name: str) -> ClusterNode | None:  # noqa: ARG002 - there is none
        return None


NO_NODES: Final[NodeDirectory] = _NoNodes()
"""For a server that reaches none."""


class NodeAccess(msgspec.Struct, frozen=True):
    """The way to the nodes of a cluster."""

    nodes: NodeDirectory
    authorizer: RequestAuthorizer

    def check_create(self, call: ResourceCall) -> None:
        """Refuses with 403 whoever may not `create`: a WebSocket is opened by a GET, but it is no reading."""
        info = replace(attributes_of(call.request, call.info), verb="create")
        if self.authorizer.why_not(call.user, info) is not None:
            raise forbidden(call.resource.group, call.resource.plural, call.info.name, "")

    async def node(self, call: ResourceCall, pod: Json) -> PodStreams:
        """The node of a pod; refuses if it has none, if it does not answer, or if nobody wants to talk with it."""
        host = await host_of(call, pod)
        if host is None:
            raise bad_request(f"pod {call.info.name} does not have a host assigned")
        if not is_upgrade(call.request):
            raise bad_request("Upgrade request required")
        found = self.nodes.find(host.name)
        if found is None:
            raise StatusError(500, "", f"error dialing backend: {host.unreachable}")
        return found


class NodeAddress(msgspec.Struct, frozen=True):
    """The node of a pod, and where Kubernetes would reach it."""

    name: str
    address: str

    @property
    def unreachable(self) -> str:
        """What is said when it does not answer."""
        return f"dial tcp {self.address}: connect: connection refused"


async def pod_of(call: ResourceCall) -> Json:
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


async def host_of(call: ResourceCall, pod: Json) -> NodeAddress | None:
    """The node of the pod, None if it has none yet; refuses if that node is not there, or nobody knows where."""
    name = pod["spec"].get("nodeName", "")
    if not name:
        return None
    return await _host(call, name, "pods")


async def node_host(call: ResourceCall, name: str) -> NodeAddress:
    """The node of that name; refuses if it is not there, or nobody knows where."""
    return await _host(call, name, "nodes")


async def _host(call: ResourceCall, name: str, missed: str) -> NodeAddress:
    nodes = call.kernel.catalog.find("", "v1", "nodes")
    assert nodes is not None, "nodes are always served"
    stored = await call.kernel.registry.find(nodes, "", name)
    if stored is None:
        raise not_found("", missed, name)
    return NodeAddress(name, _address(stored.value))


def _address(node: Json) -> str:
    status = node.get("status") or {}
    known = {each["type"]: each["address"] for each in status.get("addresses") or ()}
    address = next((known[kind] for kind in _PREFERRED if kind in known), "")
    if not address:
        raise StatusError(500, "", f"no preferred addresses found; known addresses: [{' '.join(known.values())}]")
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or _PORT
    return f"{address}:{port}"
