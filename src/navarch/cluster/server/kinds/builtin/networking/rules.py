"""Rules and columns of Services, endpoints, ingresses and network policies."""

from __future__ import annotations

from typing import Any, Final

from navarch.api.names import DNS_LABEL
from navarch.cluster.server.kinds.builtin.generic.columns import (
    NONE,
    UNKNOWN,
    UNSET,
    Ages,
    joined,
    labels,
    name_of,
    row,
    selectable,
    selector,
    some,
)
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules
from navarch.cluster.server.kinds.builtin.networking.checks import (
    address_name_faults,
    check_endpoints,
    check_network_policy,
    check_new_slice,
    check_service_range_update,
    check_slice,
    check_slice_update,
    endpoints_warnings,
    slice_warnings,
)
from navarch.cluster.server.kinds.builtin.networking.defaults import (
    create_service,
    default_endpoint_slice,
    default_endpoints,
    default_ingress_class,
    default_network_policy,
    default_service,
    update_service,
)
from navarch.cluster.server.kinds.builtin.networking.ingresses import (
    check_ingress,
    check_ingress_class,
    check_ingress_class_update,
    check_ingress_status,
    check_new_ingress,
    ingress_warnings,
)
from navarch.cluster.server.kinds.builtin.networking.services import (
    check_service,
    check_service_update,
    service_status,
    service_warnings,
)
from navarch.cluster.server.wire.request import Json


def service_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, type, cluster address, external address, ports, age; selector."""
    spec = value["spec"]
    return [
        name_of(value),
        spec.get("type", ""),
        (spec.get("clusterIPs") or [NONE])[0],
        _external(value),
        joined((_port(each) for each in spec.get("ports") or ()), NONE),
        ages.of(value),
        labels(spec.get("selector")),
    ]


def _port(port: Json) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', '')}"


def _external(value: Json) -> str:
    spec, own = value["spec"], value["spec"].get("externalIPs") or ()
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return joined(own, NONE)
        case "LoadBalancer":
            given = balancer_addresses(value)
            return joined([*given, *own], "<pending>")
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return UNKNOWN


def balancer_addresses(value: Json) -> list[str]:
    """The addresses of its load balancer, sorted."""
    ingress = (value.get("status", {}).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({found for each in ingress if (found := each.get("ip") or each.get("hostname"))})


def endpoints_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, addresses with ports, age."""
    parts = [
        _address(address.get("ip", ""), port)
        for subset in value.get("subsets") or ()
        for port in subset.get("ports") or (None,)
        for address in subset.get("addresses") or ()
    ]
    empty = "" if value.get("subsets") else NONE
    return [name_of(value), some(parts, empty), ages.of(value)]


def _address(address: str, port: Json | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"


def ingress_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, class, hosts, address, ports, age."""
    spec = value["spec"]
    hosts = [each["host"] for each in spec.get("rules") or () if each.get("host")]
    return [
        name_of(value),
        spec.get("ingressClassName") or NONE,
        some(hosts, "*"),
        joined(balancer_addresses(value)),
        "80, 443" if spec.get("tls") else "80",
        ages.of(value),
    ]


def ingress_class_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, controller, parameters, age."""
    parameters = value["spec"].get("parameters")
    shown = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [name_of(value), value["spec"].get("controller", ""), shown, ages.of(value)]


def ip_address_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, what it belongs to, age (for which the table has no column)."""
    parent = value["spec"].get("parentRef") or {}
    resource = (
        joined((parent.get("resource", ""), parent["group"])) if parent.get("group") else parent.get("resource", "")
    )
    place = "/".join(part for part in (parent.get("namespace"), parent.get("name")) if part)
    return [name_of(value), f"{resource.replace(',', '.')}/{place}", ages.of(value)]


def slice_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, address type, ports, endpoints, age."""
    ports = [_slice_port(each) for each in value.get("ports") or ()]
    addresses = [address for each in value.get("endpoints") or () for address in each.get("addresses") or ()]
    return [name_of(value), value.get("addressType", ""), some(ports, UNSET), some(addresses, UNSET), ages.of(value)]


def _slice_port(port: Json) -> str:
    return str(port["port"]) if port.get("port") is not None else port.get("name") or "*"


service_fields: Final = selectable("spec.clusterIP", "spec.type")

RULES: Final[dict[tuple[str, str], Rules]] = {
    ("v1", "services"): Rules(
        default=default_service,
        create=create_service,
        update=update_service,
        check=check_service,
        check_update=check_service_update,
        check_status=service_status,
        warnings=service_warnings,
        name_faults=DNS_LABEL.faults,
        fields=service_fields,
        cells=service_cells,
        creates_on_update=True,
        returns_deleted=True,
        storage_prefix="services/specs",
    ),
    ("v1", "endpoints"): Rules(
        default=default_endpoints,
        check=check_endpoints,
        warnings=endpoints_warnings,
        cells=endpoints_cells,
        creates_on_update=True,
        storage_prefix="services/endpoints",
    ),
    ("discovery.k8s.io/v1", "endpointslices"): Rules(
        default=default_endpoint_slice,
        check=check_slice,
        check_new=check_new_slice,
        check_update=check_slice_update,
        warnings=slice_warnings,
        counts_generation=True,
        counts_labels=True,
        empty_lists=(("endpoints",), ("ports",)),
        cells=slice_cells,
    ),
    ("networking.k8s.io/v1", "ingresses"): Rules(
        check=check_ingress,
        check_new=check_new_ingress,
        check_status=check_ingress_status,
        warnings=ingress_warnings,
        counts_generation=True,
        cells=ingress_cells,
        storage_prefix="ingress",
    ),
    ("networking.k8s.io/v1", "ingressclasses"): Rules(
        default=default_ingress_class,
        check=check_ingress_class,
        check_update=check_ingress_class_update,
        counts_generation=True,
        cells=ingress_class_cells,
    ),
    ("networking.k8s.io/v1", "networkpolicies"): Rules(
        default=default_network_policy,
        check=check_network_policy,
        counts_generation=True,
        cells=row(lambda value: selector(value["spec"].get("podSelector"))),
    ),
    ("networking.k8s.io/v1", "servicecidrs"): Rules(
        check_update=check_service_range_update,
        cells=row(lambda value: joined(value["spec"].get("cidrs") or ())),
    ),
    ("networking.k8s.io/v1", "ipaddresses"): Rules(
        name_faults=address_name_faults,
        cells=ip_address_cells,
    ),
}
