"""Endpoints of a service: the older form, with all addresses in one object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from navarch.cluster.controllers.services.backends import HEADLESS, Backend, Port, Ports, is_headless
from navarch.k8s.core.v1 import EndpointAddress, EndpointPort, EndpointSubset, Service

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


def _wire(port: Port) -> EndpointPort:
    return EndpointPort(
        name=port.name or None, protocol=port.protocol, port=port.number, app_protocol=port.app_protocol
    )
