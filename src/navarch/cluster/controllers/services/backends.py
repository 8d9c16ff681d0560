"""Backends of a service: the addresses and ports of its pods, and the subsets of its Endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from navarch.k8s.core.v1 import (
    EndpointAddress,
    EndpointPort,
    EndpointSubset,
    ObjectReference,
    Pod,
    Service,
    ServicePort,
)

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_MANAGER: Final = "endpoint-controller"
MOST: Final = 1000
"""How many addresses there are at most."""


def labels_of(service: Service) -> dict[str, str]:
    """The service's own, and who keeps them."""
    own = {key: value for key, value in (service.labels or {}).items() if key != HEADLESS}
    return {**own, **({HEADLESS: ""} if is_headless(service) else {}), MANAGED_BY: _MANAGER}


def subsets(service: Service, backends: Iterable[Backend]) -> list[EndpointSubset]:
    """Addresses by the ports that they have, ready ones and others; those that are leaving are left out, unless the
    service wants all of them. Beyond the most, ready ones are kept first.
    """
    publishes = bool(service.spec.publish_not_ready_addresses)
    listed = [each for each in backends if each.ports or (is_headless(service) and not service.spec.ports)]
    listed = [each for each in listed if publishes or not each.is_leaving]
    listed.sort(key=lambda each: (not (publishes or each.is_ready), each.address))
    groups: dict[Ports, list[Backend]] = {}
    for backend in listed[:MOST]:
        groups.setdefault(backend.ports, []).append(backend)
    return [_subset(ports, group, publishes=publishes) for ports, group in sorted(groups.items(), key=_order)]


def _order(item: tuple[Ports, list[Backend]]) -> list[tuple[int, str, str]]:
    return [(port.number, port.protocol, port.name) for port in item[0]]


def _subset(ports: Ports, backends: list[Backend], *, publishes: bool) -> EndpointSubset:
    ready = [_address(each) for each in backends if publishes or each.is_ready]
    unready = [_address(each) for each in backends if not (publishes or each.is_ready)]
    return EndpointSubset(
        addresses=ready or None, not_ready_addresses=unready or None, ports=[_wire(port) for port in ports] or None
    )


def _address(backend: Backend) -> EndpointAddress:
    return EndpointAddress(
        ip=backend.address,
        hostname=backend.hostname,
        node_name=backend.pod.spec.node_name,
        target_ref=backend.reference(),
    )


def _wire(port: BackendPort) -> EndpointPort:
    return EndpointPort(
        name=port.name or None, protocol=port.protocol, port=port.number, app_protocol=port.app_protocol
    )


HEADLESS: Final = "service.kubernetes.io/headless"
_Name = tuple[str, str]
"""Of a port of a container, with its protocol."""
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


class BackendPort(NamedTuple):
    """One port of a service, with its number in a pod."""

    name: str
    protocol: str
    number: int
    app_protocol: str | None


class Ports(tuple[BackendPort, ...]):  # noqa: SLOT001 - the hash is kept in it
    """The ports of a service in some of its pods; hashed once, since thousands of pods share them."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Backend:
    """One pod of a service: its addresses, and whether it is ready."""

    pod: Pod
    address: str
    ports: Ports
    is_ready: bool
    is_leaving: bool
    hostname: str | None

    def reference(self) -> ObjectReference:
        """The pod, as endpoints name it."""
        return ObjectReference(kind="Pod", namespace=self.pod.namespace, name=self.pod.name, uid=self.pod.metadata.uid)


def has_pods(service: Service) -> bool:
    """Returns True if the service leads to pods that it selects; where others lead is somebody else's to say."""
    return bool(service.spec.selector) and service.spec.type != "ExternalName"


def is_headless(service: Service) -> bool:
    """Returns True if the service has no address of its own."""
    return service.spec.cluster_ip == "None"


def backends(service: Service, pods: Iterable[Pod], family: str) -> Iterator[Backend]:
    """The pods that can be reached by addresses of that family; those that have ended cannot."""
    numbering = _Numbering(service.spec.ports or ())
    for pod in pods:
        address = address_of(pod, family)
        if address and pod.status.phase not in _FINISHED:
            yield Backend(
                pod=pod,
                address=address,
                ports=numbering.ports_of(pod),
                is_ready=is_ready(pod),
                is_leaving=pod.metadata.deletion_timestamp is not None,
                hostname=_hostname(service, pod),
            )


def address_of(pod: Pod, family: str) -> str:
    """The pod's address of that family, `IPv4` or `IPv6`; empty if it has none."""
    addresses = [each.ip for each in pod.status.pod_ips or ()] or [pod.status.pod_ip or ""]
    return next((each for each in addresses if each and (":" in each) == (family == "IPv6")), "")


def is_ready(pod: Pod) -> bool:
    """Returns True if the pod says so."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())


def _hostname(service: Service, pod: Pod) -> str | None:
    """A pod that names the service as its domain has a name of its own there."""
    return pod.spec.hostname if pod.spec.hostname and pod.spec.subdomain == service.name else None


class _Numbering:
    """Resolves the ports of a service in its pods; pods with the same numbers share the result."""

    def __init__(self, ports: Sequence[ServicePort]) -> None:
        self._ports = ports
        self._names = frozenset(port.target_port for port in ports if isinstance(port.target_port, str))
        self._found: dict[tuple[tuple[_Name, int], ...], Ports] = {}

    def ports_of(self, pod: Pod) -> Ports:
        numbers = self._numbers(pod)
        key = tuple(numbers.items())
        if key not in self._found:
            self._found[key] = Ports(_numbered(self._ports, numbers))
        return self._found[key]

    def _numbers(self, pod: Pod) -> dict[_Name, int]:
        """Ports of containers that the service means by their names; the first of a name counts."""
        numbers: dict[_Name, int] = {}
        if not self._names:
            return numbers
        sidecars = [each for each in pod.spec.init_containers or () if each.restart_policy == "Always"]
        for container in (*pod.spec.containers, *sidecars):
            for port in container.ports or ():
                if port.name in self._names:
                    numbers.setdefault((port.name, port.protocol or "TCP"), port.container_port)
        return numbers


def _numbered(ports: Iterable[ServicePort], numbers: Mapping[_Name, int]) -> Iterator[BackendPort]:
    for port in ports:
        target, protocol = port.target_port, port.protocol or "TCP"
        number = numbers.get((target, protocol)) if isinstance(target, str) else target or port.port
        if number is not None:
            yield BackendPort(port.name or "", protocol, number, port.app_protocol)
