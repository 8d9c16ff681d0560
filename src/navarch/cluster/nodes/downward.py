"""What a pod can be told of itself: fields of its object, and its resources."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from navarch.api import Quantity
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import Container, Pod, ResourceFieldSelector

__all__ = ["Place", "field_value", "resource_value"]

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")


class Place:
    """Where a pod runs: what is known of it before its status says so."""

    def __init__(self, node_address: str, address: str, allocatable: Mapping[str, str]) -> None:
        self.node_address = node_address
        self.address = address
        self.allocatable = allocatable


def field_value(pod: Pod, place: Place, path: str) -> str:
    """The text of a field, for the environment or a file; raises `ContainerError` for one that cannot be had."""
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        return str(getattr(pod.metadata, subscript[1]).get(subscript[2], ""))
    if path in {"metadata.labels", "metadata.annotations"}:
        return _lines(getattr(pod.metadata, path.removeprefix("metadata.")))
    plain = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name or "",
        "spec.serviceAccountName": pod.spec.service_account_name or "",
        "status.hostIP": place.node_address,
        "status.hostIPs": place.node_address,
        "status.podIP": place.address,
        "status.podIPs": place.address,
    }
    if path not in plain:
        raise ContainerError(f"unsupported fieldPath: {path}")
    return plain[path]


def _lines(values: Mapping[str, str]) -> str:
    """Labels and annotations as a file shows them: one to a line, quoted as Go does."""
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def resource_value(containers: Mapping[str, Container], own: str, selector: ResourceFieldSelector, place: Place) -> str:
    """What a container may use, or asks for, in units of the divisor; limits default to all that the node has."""
    container = containers[selector.container_name or own]
    kind, _, name = selector.resource.partition(".")
    known = (getattr(container.resources, kind, None) if container.resources else None) or {}
    value = known.get(name)
    if value is None:
        value = Quantity(place.allocatable.get(name, "0") if kind == "limits" else "0")
    divisor = selector.divisor
    unit = divisor if divisor is not None and divisor.decimal else Quantity("1")
    return str(math.ceil(value.decimal / unit.decimal))
