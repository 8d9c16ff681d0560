"""Checks of Nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.checks.common import NOT_NEGATIVE, address_range, choice, label_name
from navarch.cluster.server.kinds.builtin.checks.pod_spec import EFFECTS
from navarch.cluster.server.objects.metadata import value_faults
from navarch.cluster.server.wire.causes import duplicate, forbidden, invalid, required
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["check_node", "check_node_status", "check_node_update"]

_ONCE: Final = 'node updates may not change {} except from "" to valid'
_ONE_EACH: Final = "may specify no more than one CIDR for each IP family"
_PAIR: Final = "taints must be unique by key and effect pair"
_FAMILIES: Final = 2


def check_node(value: Json) -> Iterator[Cause]:
    """A Node."""
    yield from _check_taints(value["spec"].get("taints") or [])
    yield from _check_resources(value.get("status") or {})
    ranges = value["spec"].get("podCIDRs") or []
    faults = [cause for index, text in enumerate(ranges) for cause in address_range(text, f"spec.podCIDRs[{index}]")]
    yield from faults
    if not faults and len(ranges) > 1 and not _is_pair(ranges):
        yield invalid("spec.podCIDRs", ranges, _ONE_EACH)


def check_node_status(value: Json, old: Json) -> Iterator[Cause]:
    """The status of a Node."""
    yield from _check_resources(value.get("status") or {})
    yield from check_node_update(value, old)


def _check_resources(status: Json) -> Iterator[Cause]:
    for name in ("capacity", "allocatable"):
        for resource, amount in (status.get(name) or {}).items():
            if Quantity(amount) < 0:
                yield invalid(f"status.{name}.{resource}", amount, NOT_NEGATIVE)


def _is_pair(ranges: list[str]) -> bool:
    versions = [ipaddress.ip_network(each, strict=False).version for each in ranges]
    return len(ranges) == _FAMILIES and len({*versions}) == _FAMILIES


def _check_taints(taints: list[Json]) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        place = f"metadata.taints[{index}]"
        key, text, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
        yield from label_name(key, f"{place}.key")
        if faults := value_faults(text):
            yield invalid(f"{place}.value", text, ";".join(faults))
        if not effect:
            yield required(f"{place}.effect")
        else:
            yield from choice(effect, f"{place}.effect", EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": text, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            found = duplicate(place, shown)
            yield Cause(found.field, found.reason, f"{found.message}: {_PAIR}")
        seen.add((key, effect))


def check_node_update(value: Json, old: Json) -> Iterator[Cause]:
    """Where a node is, and the addresses of its pods, are given once; it has each of its own once."""
    spec, before, seen = value["spec"], old["spec"], list[Json]()
    for index, address in enumerate((value.get("status") or {}).get("addresses") or ()):
        if address in seen:
            shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            yield duplicate(f"status.addresses[{index}]", shown)
        seen.append(address)
    ranges = before.get("podCIDRs")
    if ranges and (spec.get("podCIDRs") or []) != ranges:
        yield forbidden("spec.podCIDRs", _ONCE.format("podCIDR"))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        yield forbidden("spec.providerID", _ONCE.format("providerID"))
