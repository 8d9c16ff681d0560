"""What is wrong with the status of some kinds, written by whoever looks after their objects."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from navarch.api.names import DNS_SUBDOMAIN
from navarch.cluster.server.kinds.builtin.checks.conditions import check_conditions
from navarch.cluster.server.wire.causes import forbidden, invalid, required, unsupported
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = [
    "budget_status",
    "daemon_set_status",
    "deployment_status",
    "job_status",
    "not_negative",
    "replica_set_status",
    "service_status",
    "stateful_set_status",
]

_DEPLOYED = ("updatedReplicas", "readyReplicas", "availableReplicas")
_OF_SET = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_REPLICATED = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_ON_NODES = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)
_COUNTED = ("succeeded", "failed")
_MODES = ("Proxy", "VIP")


def deployment_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that fit together."""
    status = value.get("status") or {}
    yield from _not_fewer_collisions(status, old)
    yield from not_negative(
        status, "observedGeneration", "replicas", *_DEPLOYED, "unavailableReplicas", "collisionCount"
    )
    yield from _not_more(status, _DEPLOYED, "replicas", "status.replicas")
    yield from _not_more(status, ("availableReplicas",), "readyReplicas", "readyReplicas")


def stateful_set_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that fit together."""
    status = value.get("status") or {}
    yield from _not_fewer_collisions(status, old)
    yield from not_negative(status, "replicas", *_OF_SET, "observedGeneration", "collisionCount")
    yield from _not_more(status, _OF_SET, "replicas", "status.replicas")
    yield from _not_more(status, ("availableReplicas",), "readyReplicas", "status.readyReplicas")


def replica_set_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Counts that fit together."""
    status = value.get("status") or {}
    yield from not_negative(status, "replicas", *_REPLICATED, "observedGeneration")
    yield from _not_more(status, _REPLICATED, "replicas", "status.replicas")
    yield from _not_more(status, ("availableReplicas",), "readyReplicas", "readyReplicas")


def daemon_set_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that can be."""
    yield from _not_fewer_collisions(value.get("status") or {}, old)
    yield from not_negative(value.get("status") or {}, *_ON_NODES)


def budget_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Counts that can be, and conditions that say what they have to."""
    status = value.get("status") or {}
    yield from check_conditions(status.get("conditions") or (), "status.conditions")
    yield from not_negative(status, "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def job_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that only grow."""
    status, before = value.get("status") or {}, old.get("status") or {}
    yield from not_negative(status, "active", *_COUNTED)
    for name in _COUNTED:
        if status.get(name, 0) < before.get(name, 0):
            yield invalid(f"status.{name}", status.get(name, 0), f"cannot decrease the {name} counter")


def service_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Only a load balancer has addresses of one."""
    ingress = ((value.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    field = "status.loadBalancer.ingress"
    if ingress and value["spec"].get("type") != "LoadBalancer":
        yield forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for index, each in enumerate(ingress):
        yield from _balancer_address(each, f"{field}[{index}]")


def _balancer_address(ingress: Json, path: str) -> Iterator[Cause]:
    address, mode, host = ingress.get("ip", ""), ingress.get("ipMode"), ingress.get("hostname", "")
    if address and not _is_address(address):
        yield invalid(f"{path}.ip", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    if mode is None:
        if address:
            yield required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif not address:
        yield forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    elif mode not in _MODES:
        yield unsupported(f"{path}.ipMode", mode, _MODES)
    if host:
        yield from (invalid(f"{path}.hostname", host, said) for said in DNS_SUBDOMAIN.faults(host))
    if host and _is_address(host):
        yield invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def not_negative(status: Json, *names: str) -> Iterator[Cause]:
    """Counts that are none below zero."""
    for name in names:
        if (status.get(name) or 0) < 0:
            yield invalid(f"status.{name}", status[name], "must be greater than or equal to 0")


def _not_fewer_collisions(status: Json, old: Json) -> Iterator[Cause]:
    before, now = (old.get("status") or {}).get("collisionCount"), status.get("collisionCount")
    if before is not None and (now is None or now < before):
        yield invalid("status.collisionCount", now or 0, "cannot be decremented")


def _not_more(status: Json, names: tuple[str, ...], limit: str, told: str) -> Iterator[Cause]:
    for name in names:
        if status.get(name, 0) > status.get(limit, 0):
            yield invalid(f"status.{name}", status.get(name, 0), f"cannot be greater than {told}")
