"""discovery/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from typing import Annotated

from navarch.api import ListSet, Model, Object
from navarch.k8s.core.v1 import ObjectReference

__all__ = [
    "Endpoint",
    "EndpointConditions",
    "EndpointHints",
    "EndpointPort",
    "EndpointSlice",
    "ForNode",
    "ForZone",
]


class EndpointConditions(Model):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForNode(Model):
    name: str


class ForZone(Model):
    name: str


class EndpointHints(Model):
    for_nodes: list[ForNode] | None = None
    for_zones: list[ForZone] | None = None


class Endpoint(Model):
    addresses: Annotated[list[str], ListSet()]
    conditions: EndpointConditions | None = None
    deprecated_topology: dict[str, str] | None = None
    hints: EndpointHints | None = None
    hostname: str | None = None
    node_name: str | None = None
    target_ref: ObjectReference | None = None
    zone: str | None = None


class EndpointPort(Model):
    app_protocol: str | None = None
    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(Object, group="discovery.k8s.io", version="v1", plural="endpointslices", has_status=False):
    address_type: str
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None
