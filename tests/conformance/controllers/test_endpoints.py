"""Where services lead: Endpoints and EndpointSlices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from conformance.controllers.nodes import some_nodes
from conformance.controllers.watching import for_a_while, until, until_gone
from navarch._base.clock import SystemClock
from navarch.api import ObjectMeta, format_time
from navarch.client import Client, MergePatch
from navarch.k8s.core.v1 import (
    Container,
    ContainerPort,
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Pod,
    PodSpec,
    Service,
    ServiceAccount,
    ServicePort,
    ServiceSpec,
)
from navarch.k8s.discovery.v1 import EndpointSlice

WEB = {"app": "web"}


pytestmark = pytest.mark.usefixtures("node")


@pytest.fixture
async def node(client: Client, controllers: None) -> AsyncIterator[str]:
    """The name of a node for pods, which can be made."""
    await until(lambda: client.get(ServiceAccount, "default"), lambda _: True, "an account for pods")
    async with some_nodes(client) as nodes:
        yield await nodes.add()


def service(name: str = "web", *, ports: list[ServicePort] | None = None, **spec: Any) -> Service:
    ports = [ServicePort(name="http", port=80, target_port=8080)] if ports is None else ports
    return Service(name=name, labels={"tier": "front"}, spec=ServiceSpec(**{"selector": WEB, "ports": ports, **spec}))


async def pod(
    client: Client, node: str, name: str, address: str, *, ready: bool = True, port: int = 8080, **spec: Any
) -> Pod:
    """A pod that says it runs at that address."""
    container = Container(name="main", image="none", ports=[ContainerPort(name="web", container_port=port)])
    new = Pod(metadata=ObjectMeta(name=name, labels=WEB), spec=PodSpec(containers=[container], **spec))
    await client.create(new)
    await client.bind(name, node)
    return await running(client, name, address, ready=ready)


async def running(client: Client, name: str, address: str, *, ready: bool = True, phase: str = "Running") -> Pod:
    now = format_time(SystemClock().now())
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}
    status = {"phase": phase, "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
    return await client.patch(Pod, name, MergePatch({"status": status}), subresource="status")


async def slices(client: Client, name: str = "web") -> list[EndpointSlice]:
    found = await client.list(EndpointSlice, labels={"kubernetes.io/service-name": name})
    return sorted(found, key=lambda each: each.name)


def conditions(found: list[EndpointSlice]) -> dict[str, tuple[bool | None, bool | None, bool | None]]:
    """Ready, serving and terminating, by address."""
    each_of = [each for one in found for each in one.endpoints or ()]
    return {
        each.addresses[0]: (each.conditions.ready, each.conditions.serving, each.conditions.terminating)
        for each in each_of
        if each.conditions is not None
    }


async def until_conditions(
    client: Client, expected: Mapping[str, tuple[bool | None, bool | None, bool | None]], name: str = "web"
) -> list[EndpointSlice]:
    return await until(
        lambda: slices(client, name), lambda found: found and conditions(found) == expected, f"slices with {expected}"
    )


def addresses(found: Endpoints) -> tuple[set[str], set[str]]:
    """Those that are ready, and the others."""
    subsets = found.subsets or []
    ready = {each.ip for subset in subsets for each in subset.addresses or ()}
    return ready, {each.ip for subset in subsets for each in subset.not_ready_addresses or ()}


async def until_addresses(client: Client, ready: set[str], others: set[str]) -> Endpoints:
    return await until(
        lambda: client.get(Endpoints, "web"), lambda found: addresses(found) == (ready, others), f"{ready} and {others}"
    )


async def test_service_leads_to_its_pods(client: Client, node: str) -> None:
    """One slice, from the first, with everything that is known of each pod, owned by the service; Endpoints of its name."""
    made = await client.create(service())
    (empty,) = await until(lambda: slices(client), lambda found: found, "a slice without endpoints")
    one = await pod(client, node, "one", "10.1.0.1")
    await pod(client, node, "two", "10.1.0.2", ready=False)
    expected = {"10.1.0.1": (True, True, False), "10.1.0.2": (False, False, False)}
    (found,) = await until_conditions(client, expected)
    assert (found.name, found.address_type) == (empty.name, "IPv4")
    assert found.labels == {
        "tier": "front",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert found.name.startswith("web-")
    owner = (found.metadata.owner_references or [])[0]
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == (made.metadata.uid, True, True)
    assert [(port.name, port.port, port.protocol) for port in found.ports or ()] == [("http", 8080, "TCP")]
    target = next(each.target_ref for each in found.endpoints or () if each.addresses == ["10.1.0.1"])
    assert target is not None
    assert (target.kind, target.name, target.uid, target.namespace) == ("Pod", "one", one.metadata.uid, one.namespace)
    assert {each.node_name for each in found.endpoints or ()} == {node}
    endpoints = await until_addresses(client, {"10.1.0.1"}, {"10.1.0.2"})
    assert endpoints.labels == {"tier": "front", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}


async def test_pods_come_change_and_go(client: Client, node: str) -> None:
    """Readiness is followed; a pod that is leaving still serves, though it is not ready; one that has ended is out."""
    await client.create(service())
    for number in (1, 2):
        await pod(client, node, f"pod-{number}", f"10.1.0.{number}")
    await until_conditions(client, {"10.1.0.1": (True, True, False), "10.1.0.2": (True, True, False)})
    await client.delete(Pod, "pod-1", grace_seconds=30)
    await until_conditions(client, {"10.1.0.1": (False, True, True), "10.1.0.2": (True, True, False)})
    await until_addresses(client, {"10.1.0.2"}, set())
    await client.delete(Pod, "pod-1", grace_seconds=0)
    await running(client, "pod-2", "10.1.0.2", ready=False)
    await until_conditions(client, {"10.1.0.2": (False, False, False)})
    await running(client, "pod-2", "10.1.0.2")
    await until_addresses(client, {"10.1.0.2"}, set())
    await running(client, "pod-2", "10.1.0.2", ready=False, phase="Succeeded")
    await until_conditions(client, {})
    await until_addresses(client, set(), set())


async def test_not_ready_addresses_are_published_if_asked_for(client: Client, node: str) -> None:
    """All are called ready, also those that are leaving; `serving` still says what they are."""
    await client.create(service(publish_not_ready_addresses=True, cluster_ip="None"))
    await pod(client, node, "one", "10.1.0.1", ready=False)
    found = await until_conditions(client, {"10.1.0.1": (True, False, False)})
    assert found[0].labels["service.kubernetes.io/headless"] == ""
    endpoints = await until_addresses(client, {"10.1.0.1"}, set())
    assert endpoints.labels["service.kubernetes.io/headless"] == ""
    await client.delete(Pod, "one", grace_seconds=30)
    await until_conditions(client, {"10.1.0.1": (True, False, True)})


async def test_pods_with_a_name_in_the_service_keep_it(client: Client, node: str) -> None:
    """`hostname` and `subdomain` give a pod of a StatefulSet its name."""
    await client.create(service(cluster_ip="None"))
    await pod(client, node, "web-0", "10.1.0.1", hostname="web-0", subdomain="web")
    await pod(client, node, "web-1", "10.1.0.2", hostname="web-1", subdomain="other")
    found = await until_conditions(client, {"10.1.0.1": (True, True, False), "10.1.0.2": (True, True, False)})
    names = {each.addresses[0]: each.hostname for one in found for each in one.endpoints or ()}
    assert names == {"10.1.0.1": "web-0", "10.1.0.2": None}
    endpoints = await until_addresses(client, {"10.1.0.1", "10.1.0.2"}, set())
    hostnames = {each.ip: each.hostname for subset in endpoints.subsets or () for each in subset.addresses or ()}
    assert hostnames == names


async def test_named_ports_are_looked_up_in_each_pod(client: Client, node: str) -> None:
    """Pods with different numbers are in different slices and subsets."""
    await client.create(service(ports=[ServicePort(name="http", port=80, target_port="web")]))
    await pod(client, node, "one", "10.1.0.1", port=8080)
    await pod(client, node, "two", "10.1.0.2", port=9090)
    found = await until_conditions(client, {"10.1.0.1": (True, True, False), "10.1.0.2": (True, True, False)})
    by_port = {(each.ports or [])[0].port: [one.addresses[0] for one in each.endpoints or ()] for each in found}
    assert by_port == {8080: ["10.1.0.1"], 9090: ["10.1.0.2"]}
    endpoints = await until_addresses(client, {"10.1.0.1", "10.1.0.2"}, set())
    assert {(each.ports or [])[0].port for each in endpoints.subsets or ()} == {8080, 9090}


async def test_service_without_pods_has_one_empty_slice(client: Client) -> None:
    """So whoever watches knows that there are none."""
    await client.create(service())
    found = await until(lambda: slices(client), lambda found: found, "a slice")
    assert [(each.endpoints or [], each.ports or []) for each in found] == [([], [])]
    await until_addresses(client, set(), set())


async def test_service_without_selector_is_left_alone(client: Client, node: str) -> None:
    """Somebody else says where it leads; what is written as Endpoints is shown as a slice."""
    await client.create(service(selector=None))
    await pod(client, node, "one", "10.1.0.1")
    await for_a_while(lambda: slices(client), lambda found: not found, "no slices", seconds=0.5)
    subset = EndpointSubset(
        addresses=[EndpointAddress(ip="192.168.7.1")],
        not_ready_addresses=[EndpointAddress(ip="192.168.7.2")],
        ports=[EndpointPort(name="http", port=8080)],
    )
    await client.create(Endpoints(name="web", subsets=[subset]))
    found = await until(lambda: slices(client), lambda found: found, "a mirrored slice")
    by_address = {each.addresses[0]: each.conditions.ready for each in found[0].endpoints or () if each.conditions}
    assert by_address == {"192.168.7.1": True, "192.168.7.2": False}
    managed_by = found[0].labels["endpointslice.kubernetes.io/managed-by"]
    assert managed_by == "endpointslicemirroring-controller.k8s.io"
    await client.delete(Endpoints, "web")
    await until(lambda: slices(client), lambda found: not found, "no slice any more")


async def test_slices_hold_a_hundred_endpoints(client: Client, node: str) -> None:
    """The next one goes to another slice; when one goes, only its slice changes."""
    await client.create(service())
    for number in range(101):
        await pod(client, node, f"pod-{number}", f"10.1.1.{number}")
    found = await until(
        lambda: slices(client), lambda found: sum(len(each.endpoints or ()) for each in found) == 101, "all endpoints"
    )
    assert all(len(each.endpoints or ()) <= 100 for each in found)
    before = {each.name: each.metadata.resource_version for each in found}
    small = min(found, key=lambda each: len(each.endpoints or ()))
    target = (small.endpoints or [])[0].target_ref
    assert target is not None
    await client.delete(Pod, target.name or "", grace_seconds=0)
    after = await until(
        lambda: slices(client), lambda found: sum(len(each.endpoints or ()) for each in found) == 100, "one less"
    )
    assert {each.name for each in after if each.metadata.resource_version == before[each.name]} == before.keys() - {
        small.name
    }


async def test_everything_goes_with_the_service(client: Client, node: str) -> None:
    """Slices because they are owned, Endpoints because of their name."""
    await client.create(service())
    await pod(client, node, "one", "10.1.0.1")
    await until_addresses(client, {"10.1.0.1"}, set())
    await client.delete(Service, "web")
    await until_gone(client, Endpoints, "web")
    await until(lambda: slices(client), lambda found: not found, "no slices")
