"""Computes the EndpointSlices of a service, with few changes to existing slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from navarch.api import ObjectMeta
from navarch.cluster.controllers.services.backends import HEADLESS, Backend, BackendPort, Ports, is_headless
from navarch.k8s.core.v1 import Service
from navarch.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"
MOST: Final = 100
"""How many endpoints a slice has at most."""


@dataclass(frozen=True, slots=True)
class UnchangedSlice:
    """The owner of slices, and their labels."""

    namespace: str
    name: str
    labels: Mapping[str, str]


@dataclass(slots=True)
class SliceChanges:
    """The slices to create, to update (old and new) and to delete."""

    create: list[EndpointSlice] = field(default_factory=list)
    update: list[tuple[EndpointSlice, EndpointSlice]] = field(default_factory=list)
    delete: list[EndpointSlice] = field(default_factory=list)

    def reuse(self) -> None:
        """Lets slices that would go become those that would come: nobody sees both, or neither, meanwhile."""
        while self.create and self.delete:
            self.update.append((self.delete.pop(0), self.create.pop()))


def labels_of(service: Service) -> dict[str, str]:
    """The service's own, and what says whose slice it is."""
    own = {
        key: value for key, value in (service.labels or {}).items() if key not in {HEADLESS, SERVICE_NAME, MANAGED_BY}
    }
    headless = {HEADLESS: ""} if is_headless(service) else {}
    return {**own, **headless, SERVICE_NAME: service.name, MANAGED_BY: MANAGER}


def endpoint(service: Service, backend: Backend, zones: Mapping[str, str]) -> Endpoint:
    """One pod as an endpoint; `zones` has those of nodes."""
    publishes = bool(service.spec.publish_not_ready_addresses)
    node = backend.pod.spec.node_name
    return Endpoint(
        addresses=[backend.address],
        conditions=EndpointConditions(
            ready=publishes or (backend.is_ready and not backend.is_leaving),
            serving=backend.is_ready,
            terminating=backend.is_leaving,
        ),
        hostname=backend.hostname,
        node_name=node,
        target_ref=backend.reference(),
        zone=zones.get(node or "") or None,
    )


def changes(
    kept: UnchangedSlice,
    family: str,
    wanted: Iterable[tuple[Ports, Endpoint]],
    existing: Iterable[EndpointSlice],
) -> SliceChanges:
    """What is to be done so that the slices of one family have just these endpoints.

    Endpoints stay in the slice that they are in. Where something is taken out of a slice, what is new goes there first; so
    few slices change. A service without endpoints has one empty slice, which becomes that of its first endpoints.
    """
    found = SliceChanges()
    groups: dict[Ports, dict[str, Endpoint]] = {}
    for ports, each in wanted:
        groups.setdefault(ports, {})[_uid(each)] = each
    if not groups:
        groups[Ports()] = {}
    by_ports: dict[Ports, list[EndpointSlice]] = {}
    for old in existing:
        by_ports.setdefault(_ports_of(old), []).append(old)
    for ports, endpoints in groups.items():
        _SliceGroup(kept, family, ports).settle(endpoints, by_ports.pop(ports, []), found, is_alone=len(groups) == 1)
    found.delete.extend(old for unwanted in by_ports.values() for old in unwanted)
    found.reuse()
    return found


@dataclass(frozen=True, slots=True)
class _SliceGroup:
    """The slices of one set of ports."""

    kept: UnchangedSlice
    family: str
    ports: Ports

    def settle(
        self, endpoints: dict[str, Endpoint], slices: list[EndpointSlice], found: SliceChanges, *, is_alone: bool
    ) -> None:
        new = dict(endpoints)
        kept = [[new.pop(_uid(each)) for each in old.endpoints or () if _uid(each) in new] for old in slices]
        for _, content in sorted(zip(slices, kept, strict=True), key=_is_untouched):
            _fill(content, new)
        self._decide(slices, kept, found, has_spare=is_alone and not endpoints)
        while new or (is_alone and not slices and not endpoints and not found.create):
            fresh: list[Endpoint] = []
            _fill(fresh, new)
            found.create.append(self._slice(fresh))

    def _decide(
        self, slices: list[EndpointSlice], kept: list[list[Endpoint]], found: SliceChanges, *, has_spare: bool
    ) -> None:
        """Empty slices go, but for one where the service has no endpoints at all."""
        for old, content in zip(slices, kept, strict=True):
            if not content and not has_spare:
                found.delete.append(old)
                continue
            has_spare = has_spare and bool(content)
            if content != (old.endpoints or []) or dict(old.labels or {}) != self.kept.labels:
                found.update.append((old, self._slice(content)))

    def _slice(self, content: list[Endpoint]) -> EndpointSlice:
        return EndpointSlice(
            metadata=ObjectMeta(
                generate_name=f"{self.kept.name}-", namespace=self.kept.namespace, labels=dict(self.kept.labels)
            ),
            address_type=self.family,
            endpoints=content,
            ports=[_wire(port) for port in self.ports],
        )


def _is_untouched(pair: tuple[EndpointSlice, list[Endpoint]]) -> bool:
    """Those that change anyway come first when new endpoints look for a place."""
    old, content = pair
    return content == (old.endpoints or [])


def _fill(content: list[Endpoint], new: dict[str, Endpoint]) -> None:
    while new and len(content) < MOST:
        content.append(new.pop(next(iter(new))))


def _uid(each: Endpoint) -> str:
    return (each.target_ref.uid if each.target_ref is not None else None) or ",".join(each.addresses)


def _ports_of(found: EndpointSlice) -> Ports:
    return Ports(
        BackendPort(port.name or "", port.protocol or "TCP", port.port or 0, port.app_protocol)
        for port in found.ports or ()
    )


def _wire(port: BackendPort) -> EndpointPort:
    return EndpointPort(name=port.name, protocol=port.protocol, port=port.number, app_protocol=port.app_protocol)
