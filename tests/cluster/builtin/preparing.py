"""What our strategies make of an object, to be compared with the real server's answer."""

from __future__ import annotations

import copy
import random
from datetime import datetime
from functools import cache
from typing import Any

from cluster.builtin.record import NAMESPACE, updated
from navarch._base.clock import ManualClock
from navarch.api.times import parse_time
from navarch.cluster.server.kinds.builtin import builtin_types
from navarch.cluster.server.kinds.builtin.networking.allocator import ServiceAllocator
from navarch.cluster.server.objects.metadata import version_faults
from navarch.cluster.server.objects.types import Catalog, ResourceType, WriteContext
from navarch.cluster.server.wire.request import User
from navarch.errors import Cause

Json = dict[str, Any]
USER = User("rig-admin", "rig-admin", ("system:masters", "system:authenticated"))
OPERATION = WriteContext(user=USER, namespace=NAMESPACE)
LONG_AGO = "2026-01-02T03:04:05Z"
KUBERNETES: Json = {
    "metadata": {"namespace": "default", "name": "kubernetes"},
    "spec": {"type": "ClusterIP", "clusterIPs": ["10.0.0.1"]},
}


def resource_of(value: Json) -> ResourceType:
    """The type of an object."""
    found = _catalog().of_kind(value["apiVersion"], value["kind"])
    assert found is not None, f"expected a type for {value['apiVersion']} {value['kind']}"
    return found


@cache
def _catalog() -> Catalog:
    clock = ManualClock()
    addresses = ServiceAllocator(clock, random.Random(0))
    addresses.changed(None, KUBERNETES)
    return Catalog(builtin_types(clock, addresses))


def created(sent: Json, moment: str = LONG_AGO, uid: str = "u") -> tuple[Json, list[Cause], list[str]]:
    """What is stored of an object that was sent, the faults, and the warnings."""
    value = copy.deepcopy(sent)
    resource = resource_of(value)
    assert not resource.schema.faults(value), f"expected {value} to fit its types"
    resource.schema.unknown_fields(value)
    _place(value, resource)
    resource.strategy.default(value)
    value["metadata"] |= {"creationTimestamp": moment, "uid": uid}
    value["metadata"].pop("generation", None)
    resource.strategy.prepare_create(value, OPERATION)
    faults = resource.strategy.validate_create(value)
    return value, faults, resource.strategy.warnings(value, None)


def replaced(sent: Json, patch: Json) -> tuple[Json, list[Cause], list[str]]:
    """The same for an update of an object that was created before."""
    old, faults, _ = created(sent)
    assert not faults, f"expected {sent} to be valid, got {faults}"
    old["metadata"]["resourceVersion"] = "1"
    value = updated(old, patch)
    resource = resource_of(old)
    resource.schema.unknown_fields(value)
    unversioned = [] if resource.unconditional_update else version_faults(value)
    value["metadata"] |= {
        name: old["metadata"][name] for name in ("uid", "creationTimestamp", "generation") if name in old["metadata"]
    }
    resource.strategy.default(value)
    resource.strategy.prepare_update(value, old, OPERATION)
    faults = resource.strategy.validate_update(value, old)
    return value, [*unversioned, *faults], resource.strategy.warnings(value, old)


def cells(value: Json) -> list[Any]:
    """The row of an object that has just been created."""
    now = parse_time(value["metadata"]["creationTimestamp"])
    return _catalog_at(now, value).strategy.cells(value)


def _catalog_at(now: datetime, value: Json) -> ResourceType:
    found = Catalog(builtin_types(ManualClock(now))).of_kind(value["apiVersion"], value["kind"])
    assert found is not None
    return found


def _place(value: Json, resource: ResourceType) -> None:
    """What the core does before a strategy sees an object."""
    metadata = value.setdefault("metadata", {})
    if resource.namespaced:
        metadata.setdefault("namespace", NAMESPACE)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName']}abcde"
