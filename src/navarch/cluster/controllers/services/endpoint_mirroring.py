"""Mirrors Endpoints that users write for a service without a selector to EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from navarch.api import Key
from navarch.cache import Cached, Entry
from navarch.cache.lookup import Lookup
from navarch.cluster.controllers.services.backends import MANAGED_BY as ENDPOINTS_MANAGED_BY
from navarch.cluster.controllers.services.backends import BackendPort, Ports
from navarch.cluster.controllers.services.endpoint_slices import MANAGED_BY, SERVICE_NAME, UnchangedSlice, changes
from navarch.cluster.controllers.services.endpoints import carry_out
from navarch.controller.context import Context
from navarch.controller.triggers import ByMetadata
from navarch.k8s.core.v1 import EndpointAddress, Endpoints, EndpointSubset, Service
from navarch.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointSlice
from navarch.operator import Operator

_MIRROR: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_SLICES: Final = Cached(EndpointSlice, labels=f"{MANAGED_BY}={_MIRROR}")


def declare_endpoint_mirroring(operator: Operator) -> None:
    """Adds the controller that mirrors Endpoints, and lets those of services that are gone go."""

    @operator.controller(
        Endpoints, owns=(_SLICES,), watches={Service: ByMetadata(_same_name)}, name="endpointslicemirroring"
    )
    async def mirror(endpoints: Endpoints, ctx: Context) -> None:
        service = await ctx.get(Service, endpoints.name)
        if service is None and ENDPOINTS_MANAGED_BY in endpoints.labels:
            await ctx.delete(endpoints)
            return
        labels = {key: value for key, value in endpoints.labels.items() if key != ENDPOINTS_MANAGED_BY}
        kept = UnchangedSlice(
            endpoints.namespace, endpoints.name, {**labels, SERVICE_NAME: endpoints.name, MANAGED_BY: _MIRROR}
        )
        existing = ctx.owned(EndpointSlice)
        if service is None or service.spec.selector or not _is_mirrored(endpoints):
            for old in existing:
                await ctx.delete(old)
            return
        for family in ("IPv4", "IPv6"):
            wanted = list(mirrored(endpoints, family))
            own = [each for each in existing if each.address_type == family]
            if wanted or own:
                await carry_out(ctx, kept, changes(kept, family, wanted, own))


def _is_mirrored(endpoints: Endpoints) -> bool:
    return endpoints.labels.get(_SKIP) != "true" and _LEADER not in endpoints.annotations


def mirrored(endpoints: Endpoints, family: str) -> Iterator[tuple[Ports, Endpoint]]:
    """Every address of that family, with its ports."""
    for subset in endpoints.subsets or ():
        ports = _ports(subset)
        for is_ready, addresses in ((True, subset.addresses), (False, subset.not_ready_addresses)):
            for address in addresses or ():
                if (":" in address.ip) == (family == "IPv6"):
                    yield ports, _endpoint(address, is_ready=is_ready)


def _ports(subset: EndpointSubset) -> Ports:
    return Ports(
        BackendPort(port.name or "", port.protocol or "TCP", port.port, port.app_protocol)
        for port in subset.ports or ()
    )


def _endpoint(address: EndpointAddress, *, is_ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[address.ip],
        conditions=EndpointConditions(ready=is_ready),
        hostname=address.hostname,
        node_name=address.node_name,
        target_ref=address.target_ref,
    )


def _same_name(entry: Entry, lookup: Lookup) -> Iterable[Key]:  # noqa: ARG001 - the form of a mapping
    return (entry.key,)
