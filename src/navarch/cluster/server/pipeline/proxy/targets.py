"""Resolves the target of a proxy: `[scheme:]name[:port]` of a pod, a service or a node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from navarch.api.strconv import go_quoted
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.streams.node_access import NodeDirectory, node_host
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, not_found

_PORTS: Final = {"http": 80, "https": 443}
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_LARGEST_PORT: Final = 65535
KUBELET: Final = "10250"
"""The port of a node at which it answers itself."""


class ProxyTarget(msgspec.Struct, frozen=True):
    """Who answers: over `https`, any certificate is taken, as Kubernetes does. Without a port it is the scheme's own."""

    scheme: str
    address: str
    port: int | None

    @property
    def authority(self) -> str:
        """The address as a URL has it."""
        return self.address if self.port is None else f"{self.address}:{self.port}"


class NamedTarget(NamedTuple):
    """A name taken apart."""

    scheme: str
    name: str
    port: str


def unavailable(message: str) -> StatusError:
    """503: it cannot be had now."""
    return StatusError(503, "ServiceUnavailable", message)


def wanted(call: ResourceCall) -> NamedTarget:
    """What the request names; refuses with 400 what makes no sense."""
    parts = call.info.name.split(":")
    scheme, name, port = {1: ("", *parts, ""), 2: ("", *parts), 3: parts}.get(len(parts), ("", "", ""))
    if not name or scheme not in {"", *_PORTS}:
        raise bad_request(f"invalid {call.resource.singular} request {go_quoted(call.info.name)}")
    return NamedTarget(scheme, name, port)


async def place_of(nodes: NodeDirectory, call: ResourceCall, asked: NamedTarget) -> ProxyTarget:
    """Who is to answer; refuses if there is nobody."""
    if call.resource.plural == "pods":
        return await _pod(nodes, call, asked)
    if call.resource.plural == "services":
        return await _service(nodes, call, asked)
    return await _node(nodes, call, asked)


async def _pod(nodes: NodeDirectory, call: ResourceCall, asked: NamedTarget) -> ProxyTarget:
    pod = (await call.kernel.registry.get(call.resource, call.info.namespace, asked.name)).value
    declared = [port for each in pod["spec"]["containers"] for port in each.get("ports") or ()]
    port = asked.port or (str(declared[0]["containerPort"]) if declared else "")
    if not (pod.get("status") or {}).get("podIP"):
        raise bad_request("address not allowed")
    return _in_pod(nodes, pod, asked.scheme, _port_number(port) if port else None)


async def _service(nodes: NodeDirectory, call: ResourceCall, asked: NamedTarget) -> ProxyTarget:
    port = await _port_name(call, asked)
    stored = await call.kernel.registry.find(_kind(call, "endpoints"), call.info.namespace, asked.name)
    if stored is None:
        raise not_found("", "services", asked.name)
    subsets = stored.value.get("subsets") or []
    if not subsets:
        raise unavailable(f"no endpoints available for service {go_quoted(asked.name)}")
    for subset in _from_anywhere(call, subsets):
        for number in [each["port"] for each in subset.get("ports") or () if each.get("name", "") == port]:
            for address in _from_anywhere(call, subset.get("addresses") or []):
                if (pod := await _pod_at(call, address)) is not None:
                    return _in_pod(nodes, pod, asked.scheme, number)
    raise unavailable(f"no endpoints available for service {go_quoted(call.info.name)}")


async def _port_name(call: ResourceCall, asked: NamedTarget) -> str:
    """A port may be named by its number, too."""
    if not _NUMBER.fullmatch(asked.port):
        return asked.port
    service = (await call.kernel.registry.get(call.resource, call.info.namespace, asked.name)).value
    number = int(asked.port)
    named = [each.get("name", "") for each in service["spec"].get("ports") or () if each["port"] == number]
    if not named:
        raise unavailable(f"no service port {number} found for service {go_quoted(asked.name)}")
    return str(named[0])


async def _pod_at(call: ResourceCall, address: Json) -> Json | None:
    """The pod of an endpoint. Others lead nowhere: whoever may write endpoints must not reach what only the server can."""
    target = address.get("targetRef") or {}
    if target.get("namespace") != call.info.namespace:
        return None
    found = await call.kernel.registry.find(_kind(call, "pods"), call.info.namespace, target.get("name", ""))
    addresses = ((found.value.get("status") or {}).get("podIPs") or ()) if found else ()
    return found.value if found and any(each["ip"] == address["ip"] for each in addresses) else None


async def _node(nodes: NodeDirectory, call: ResourceCall, asked: NamedTarget) -> ProxyTarget:
    host = await node_host(call, asked.name)
    node = nodes.find(asked.name)
    if node is None:
        raise unavailable(f"error trying to reach service: {host.unreachable}")
    return ProxyTarget(asked.scheme or "http", node.address, _port_number(asked.port) if asked.port else None)


def _in_pod(nodes: NodeDirectory, pod: Json, scheme: str, port: int | None) -> ProxyTarget:
    """Where its node has put it: what is written in its status is not gone by, since many may write that."""
    node = nodes.find(pod["spec"].get("nodeName", ""))
    address = node.pod_address(pod["metadata"]["uid"]) if node is not None else ""
    place = ProxyTarget(scheme or "http", address or pod["status"]["podIP"], port)
    if not address:
        number = port or _PORTS[place.scheme]
        raise unavailable(
            f"error trying to reach service: dial tcp {place.address}:{number}: connect: no route to host"
        )
    return place


def _port_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_LARGEST_PORT))):
        raise unavailable(f"error trying to reach service: dial tcp: lookup tcp/{text}: unknown port")
    if not 0 < int(text) <= _LARGEST_PORT:
        raise unavailable(f"error trying to reach service: dial tcp: address {text}: invalid port")
    return int(text)


def _kind(call: ResourceCall, plural: str) -> ResourceType:
    found = call.kernel.catalog.find("", "v1", plural)
    assert found is not None, f"{plural} are always served"
    return found


def _from_anywhere(call: ResourceCall, several: list[Json]) -> Iterator[Json]:
    """All of them, beginning with any."""
    begin = call.kernel.rng.randrange(len(several)) if several else 0
    yield from (*several[begin:], *several[:begin])
