"""Updates the Endpoints and EndpointSlices of services when their pods change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Final

from navarch._base.clock import Clock
from navarch.api import Key
from navarch.cache import Cached, Entry
from navarch.cache.lookup import Lookup
from navarch.cluster.controllers.services.backends import MOST, backends, has_pods, labels_of, subsets
from navarch.cluster.controllers.services.endpoint_slices import (
    MANAGED_BY,
    MANAGER,
    SliceChanges,
    UnchangedSlice,
    changes,
    endpoint,
)
from navarch.cluster.controllers.services.endpoint_slices import labels_of as slice_labels
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.triggers import ByMetadata
from navarch.errors import AlreadyExists
from navarch.k8s.core.v1 import Endpoints, Node, Pod, Service
from navarch.k8s.discovery.v1 import EndpointSlice
from navarch.operator import Operator

_SECONDS_PER_POD: Final = 0.001
_MOST_SECONDS: Final = 1.0


class Pace:
    """The last write of each service, and the delay before the next one."""

    def __init__(self) -> None:
        self._written: dict[Key, float] = {}

    def left(self, service: Key, pods: int, clock: Clock) -> float:
        """For how many more seconds a service with so many pods is to be left alone; 0 if it may be written."""
        pause = min(pods * _SECONDS_PER_POD, _MOST_SECONDS)
        return max(self._written.get(service, -pause) + pause - clock.monotonic(), 0.0)

    def wrote(self, service: Key, clock: Clock) -> None:
        """It was written now."""
        self._written[service] = clock.monotonic()


_ZONE: Final = "topology.kubernetes.io/zone"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_SLICES: Final = Cached(EndpointSlice, labels=f"{MANAGED_BY}={MANAGER}")


def declare_endpoints(operator: Operator) -> None:
    """Adds both controllers."""
    services_of = ByMetadata(_services_of)
    slices_written, endpoints_written = Pace(), Pace()

    @operator.controller(Service, owns=(_SLICES,), watches={Pod: services_of}, reads=(Node,), name="endpointslice")
    async def keep_slices(service: Service, ctx: Context) -> Result | None:
        """A pod without a node that is there leads nowhere."""
        if not has_pods(service):
            return None
        selected = await ctx.list(Pod, labels=service.spec.selector)
        if left := slices_written.left(ctx.key, len(selected), ctx.client.clock):
            return Result(after=left)
        nodes = {node.name: node.labels.get(_ZONE, "") for node in await ctx.list(Node)}
        pods = [pod for pod in selected if service.spec.publish_not_ready_addresses or pod.spec.node_name in nodes]
        if await _slices_written(service, pods, nodes, ctx):
            slices_written.wrote(ctx.key, ctx.client.clock)
        return None

    @operator.controller(Service, watches={Pod: services_of, Endpoints: ByMetadata(_same_name)}, name="endpoints")
    async def keep_endpoints(service: Service, ctx: Context) -> Result | None:
        if not has_pods(service):
            return None
        pods = await ctx.list(Pod, labels=service.spec.selector)
        if left := endpoints_written.left(ctx.key, len(pods), ctx.client.clock):
            return Result(after=left)
        if await _endpoints_written(ctx, _endpoints(service, pods)):
            endpoints_written.wrote(ctx.key, ctx.client.clock)
        return None


async def _slices_written(service: Service, pods: list[Pod], zones: Mapping[str, str], ctx: Context) -> bool:
    """Returns True if anything was to be written."""
    existing, is_written = ctx.owned(EndpointSlice), False
    kept = UnchangedSlice(service.namespace, service.name, slice_labels(service))
    for family in service.spec.ip_families or ["IPv4"]:
        wanted = [(each.ports, endpoint(service, each, zones)) for each in backends(service, pods, family)]
        own = [each for each in existing if each.address_type == family]
        found = changes(kept, family, wanted, own)
        is_written = is_written or found != SliceChanges()
        await carry_out(ctx, kept, found)
    return is_written


def _endpoints(service: Service, pods: list[Pod]) -> Endpoints:
    found = list(backends(service, pods, (service.spec.ip_families or ["IPv4"])[0]))
    return Endpoints(
        name=service.name,
        namespace=service.namespace,
        labels=labels_of(service),
        annotations={_OVER_CAPACITY: "truncated"} if len(found) > MOST else {},
        subsets=subsets(service, found),
    )


async def carry_out(ctx: Context, kept: UnchangedSlice, wanted: SliceChanges) -> None:
    """Makes, changes and deletes slices."""
    for new in wanted.create:
        await ctx.create(new)
    for old, new in wanted.update:
        gone = dict.fromkeys(set(old.labels or {}) - set(kept.labels))
        metadata = {"labels": {**gone, **kept.labels}}
        await ctx.patch(old, {"endpoints": new.endpoints, "ports": new.ports, "metadata": metadata})
    for old in wanted.delete:
        await ctx.delete(old)


async def _endpoints_written(ctx: Context, wanted: Endpoints) -> bool:
    """Returns True if anything was to be written. They are not owned by their service, but go with it by name."""
    known = await ctx.get(Endpoints, wanted.name)
    if known is None:
        with contextlib.suppress(AlreadyExists):
            await ctx.create(wanted, owned=False)
        return True
    if (known.subsets or [], known.labels) == (wanted.subsets, wanted.labels):
        return False
    gone = dict.fromkeys(known.labels.keys() - wanted.labels.keys())
    over = {_OVER_CAPACITY: wanted.annotations.get(_OVER_CAPACITY)}
    metadata = {"labels": {**gone, **wanted.labels}, "annotations": over}
    await ctx.patch(known, {"subsets": wanted.subsets, "metadata": metadata})
    return True


def _services_of(entry: Entry, lookup: Lookup) -> Iterable[Key]:
    labels = entry.labels
    for service in lookup.list(Service, namespace=entry.key.namespace):
        selector = service.spec.selector
        if selector and selector.items() <= labels.items():
            yield Key(service.namespace, service.name)


def _same_name(entry: Entry, lookup: Lookup) -> Iterable[Key]:  # noqa: ARG001 - the form of a mapping
    return (entry.key,)
