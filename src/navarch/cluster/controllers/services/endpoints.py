"""Keeps Endpoints and EndpointSlices of services as their pods come, change and go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from navarch.api import Key
from navarch.cache import Cached, Entry
from navarch.cluster.controllers.services.backends import backends, has_pods
from navarch.cluster.controllers.services.slices import MANAGED_BY, MANAGER, Changes, Kept, changes, endpoint
from navarch.cluster.controllers.services.slices import labels_of as slice_labels
from navarch.cluster.controllers.services.subsets import MOST, labels_of, subsets
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.lookup import Lookup
from navarch.controller.triggers import ByMetadata
from navarch.errors import AlreadyExists
from navarch.k8s.core.v1 import Endpoints, Node, Pod, Service
from navarch.k8s.discovery.v1 import EndpointSlice
from navarch.operator import Operator

__all__ = ["carry_out", "declare"]

_ZONE: Final = "topology.kubernetes.io/zone"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_LOST_SECONDS: Final = 1.0
_SLICES: Final = Cached(EndpointSlice, labels=f"{MANAGED_BY}={MANAGER}")


def declare(operator: Operator) -> None:
    """Adds both controllers."""
    services_of = ByMetadata(_services_of)

    @operator.controller(Service, owns=(_SLICES,), watches={Pod: services_of}, reads=(Node,), name="endpointslice")
    async def keep_slices(service: Service, ctx: Context) -> Result | None:
        """A pod without a node that is there leads nowhere; the node may only be late."""
        if not has_pods(service):
            return None
        nodes = {node.name: node.labels.get(_ZONE, "") for node in await ctx.list(Node)}
        selected = await ctx.list(Pod, labels=service.spec.selector)
        pods = [pod for pod in selected if service.spec.publish_not_ready_addresses or pod.spec.node_name in nodes]
        existing = ctx.owned(EndpointSlice)
        kept = Kept(service.namespace, service.name, slice_labels(service))
        for family in service.spec.ip_families or ["IPv4"]:
            wanted = [(each.ports, endpoint(service, each, nodes)) for each in backends(service, pods, family)]
            own = [each for each in existing if each.address_type == family]
            await carry_out(ctx, kept, changes(kept, family, wanted, own))
        return Result(after=_LOST_SECONDS) if len(pods) < len(selected) else None

    @operator.controller(Service, watches={Pod: services_of, Endpoints: ByMetadata(_same_name)}, name="endpoints")
    async def keep_endpoints(service: Service, ctx: Context) -> None:
        if not has_pods(service):
            return
        pods = await ctx.list(Pod, labels=service.spec.selector)
        family = (service.spec.ip_families or ["IPv4"])[0]
        found = list(backends(service, pods, family))
        wanted = Endpoints(
            name=service.name, namespace=service.namespace, labels=labels_of(service), subsets=subsets(service, found)
        )
        if len(found) > MOST:
            wanted.annotations = {_OVER_CAPACITY: "truncated"}
        await _written(ctx, wanted)


async def carry_out(ctx: Context, kept: Kept, wanted: Changes) -> None:
    """Makes, changes and deletes slices."""
    for new in wanted.create:
        await ctx.create(new)
    for old, content in wanted.update:
        gone = dict.fromkeys(set(old.labels or {}) - set(kept.labels))
        await ctx.patch(old, {"endpoints": content, "metadata": {"labels": {**gone, **kept.labels}}})
    for old in wanted.delete:
        await ctx.delete(old)


async def _written(ctx: Context, wanted: Endpoints) -> None:
    """They are not owned by their service, but go with it by name."""
    known = await ctx.get(Endpoints, wanted.name)
    if known is None:
        try:
            await ctx.create(wanted, owned=False)
        except AlreadyExists:
            return
    elif (known.subsets or [], dict(known.labels or {})) != (wanted.subsets, dict(wanted.labels or {})):
        gone = dict.fromkeys(set(known.labels or {}) - set(wanted.labels or {}))
        metadata = {"labels": {**gone, **(wanted.labels or {})}}
        await ctx.patch(known, {"subsets": wanted.subsets, "metadata": metadata})


def _services_of(entry: Entry, lookup: Lookup) -> Iterable[Key]:
    labels = entry.labels
    for service in lookup.list(Service, namespace=entry.key.namespace):
        selector = service.spec.selector
        if selector and selector.items() <= labels.items():
            yield Key(service.namespace, service.name)


def _same_name(entry: Entry, lookup: Lookup) -> Iterable[Key]:  # noqa: ARG001 - the form of a mapping
    return (entry.key,)
