"""What a service leads to: pods, their addresses and ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from navarch.k8s.core.v1 import ObjectReference, Pod, Service, ServicePort

__all__ = ["HEADLESS", "Backend", "Port", "address_of", "backends", "has_pods", "is_headless", "is_ready", "ports_of"]

HEADLESS: Final = "service.kubernetes.io/headless"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a service, with the number that it has in a pod."""

    name: str
    protocol: str
    number: int
    app_protocol: str | None


@dataclass(frozen=True, slots=True)
class Backend:
    """One pod of a service: how it is reached, and whether it is ready."""

    pod: Pod
    address: str
    ports: tuple[Port, ...]
    is_ready: bool
    is_leaving: bool
    hostname: str | None

    def reference(self) -> ObjectReference:
        """The pod, as endpoints name it."""
        return ObjectReference(kind="Pod", namespace=self.pod.namespace, name=self.pod.name, uid=self.pod.metadata.uid)


def has_pods(service: Service) -> bool:
    """Whether the service leads to pods that it selects; where others lead is somebody else's to say."""
    return bool(service.spec.selector) and service.spec.type != "ExternalName"


def is_headless(service: Service) -> bool:
    """Whether the service has no address of its own."""
    return service.spec.cluster_ip == "None"


def backends(service: Service, pods: Iterable[Pod], family: str) -> Iterator[Backend]:
    """The pods that can be reached by addresses of that family; those that have ended cannot."""
    for pod in pods:
        address = address_of(pod, family)
        if address and pod.status.phase not in _FINISHED:
            yield Backend(
                pod=pod,
                address=address,
                ports=ports_of(service, pod),
                is_ready=is_ready(pod),
                is_leaving=pod.metadata.deletion_timestamp is not None,
                hostname=_hostname(service, pod),
            )


def address_of(pod: Pod, family: str) -> str:
    """The pod's address of that family, `IPv4` or `IPv6`; empty if it has none."""
    addresses = [each.ip for each in pod.status.pod_ips or ()] or [pod.status.pod_ip or ""]
    return next((each for each in addresses if each and (":" in each) == (family == "IPv6")), "")


def is_ready(pod: Pod) -> bool:
    """Whether the pod says so."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())


def _hostname(service: Service, pod: Pod) -> str | None:
    """A pod that names the service as its domain has a name of its own there."""
    return pod.spec.hostname if pod.spec.hostname and pod.spec.subdomain == service.name else None


def ports_of(service: Service, pod: Pod) -> tuple[Port, ...]:
    """The ports of the service that the pod has."""
    found = ((port, _number(port, pod)) for port in service.spec.ports or ())
    return tuple(
        Port(port.name or "", port.protocol or "TCP", number, port.app_protocol)
        for port, number in found
        if number is not None
    )


def _number(port: ServicePort, pod: Pod) -> int | None:
    """A port of containers may be meant by its name."""
    target = port.target_port
    if not isinstance(target, str):
        return target or port.port
    sidecars = [each for each in pod.spec.init_containers or () if each.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for named in container.ports or ():
            if named.name == target and (named.protocol or "TCP") == (port.protocol or "TCP"):
                return named.container_port
    return None
