"""What is wrong with the status of some kinds, written by whoever looks after their objects."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from navarch.cluster.server.causes import forbidden, invalid
from navarch.cluster.server.request import Json
from navarch.errors import Cause

__all__ = ["deployment_status", "job_status", "service_status", "stateful_set_status"]

_DEPLOYED = ("updatedReplicas", "readyReplicas", "availableReplicas")
_OF_SET = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_COUNTED = ("succeeded", "failed")


def deployment_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Counts that fit together."""
    status = value.get("status") or {}
    yield from _not_negative(
        status, "observedGeneration", "replicas", *_DEPLOYED, "unavailableReplicas", "collisionCount"
    )
    yield from _not_more(status, _DEPLOYED, "replicas", "status.replicas")
    yield from _not_more(status, ("availableReplicas",), "readyReplicas", "readyReplicas")


def stateful_set_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Counts that fit together."""
    status = value.get("status") or {}
    yield from _not_negative(status, "replicas", *_OF_SET, "observedGeneration", "collisionCount")
    yield from _not_more(status, _OF_SET, "replicas", "status.replicas")
    yield from _not_more(status, ("availableReplicas",), "readyReplicas", "status.readyReplicas")


def job_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that only grow."""
    status, before = value.get("status") or {}, old.get("status") or {}
    yield from _not_negative(status, "active", *_COUNTED)
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
        if each.get("ip") and not _is_address(each["ip"]):
            said = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid(f"{field}[{index}].ip", each["ip"], said)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _not_negative(status: Json, *names: str) -> Iterator[Cause]:
    for name in names:
        if status.get(name, 0) < 0:
            yield invalid(f"status.{name}", status[name], "must be greater than or equal to 0")


def _not_more(status: Json, names: tuple[str, ...], limit: str, told: str) -> Iterator[Cause]:
    for name in names:
        if status.get(name, 0) > status.get(limit, 0):
            yield invalid(f"status.{name}", status.get(name, 0), f"cannot be greater than {told}")
