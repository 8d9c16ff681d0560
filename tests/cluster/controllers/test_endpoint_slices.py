"""Which slices a service should have, with as few changes as possible to those it has."""

from __future__ import annotations

import itertools

from navarch.api import ObjectMeta
from navarch.cluster.controllers.services.backends import BackendPort, Ports, backends, subsets
from navarch.cluster.controllers.services.endpoint_slices import SliceChanges, UnchangedSlice, changes
from navarch.k8s.core.v1 import (
    Container,
    ContainerPort,
    ObjectReference,
    Pod,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
    Service,
    ServicePort,
    ServiceSpec,
)
from navarch.k8s.discovery.v1 import Endpoint, EndpointSlice

KEPT = UnchangedSlice("default", "web", {"app": "web"})
HTTP = Ports([BackendPort("http", "TCP", 8080, None)])
ADMIN = Ports([BackendPort("admin", "TCP", 9090, None)])
_names = itertools.count(1)


def endpoint(number: int) -> Endpoint:
    return Endpoint(addresses=[f"10.0.{number // 250}.{number % 250}"], target_ref=ObjectReference(uid=str(number)))


def wanted(*numbers: int, ports: Ports = HTTP) -> list[tuple[Ports, Endpoint]]:
    return [(ports, endpoint(number)) for number in numbers]


def stored(found: SliceChanges) -> list[EndpointSlice]:
    """The new slices as the server has them."""
    for each in found.create:
        each.metadata = ObjectMeta(name=f"web-{next(_names)}", labels=dict(KEPT.labels))
    return found.create


def content(found: EndpointSlice) -> list[int]:
    return [int(each.target_ref.uid or 0) for each in found.endpoints or () if each.target_ref is not None]


def test_service_without_endpoints_has_one_empty_slice() -> None:
    """It is made once, and stays."""
    slices = stored(changes(KEPT, "IPv4", [], []))
    assert [content(each) for each in slices] == [[]]
    assert changes(KEPT, "IPv4", [], slices) == SliceChanges()


def test_endpoints_fill_slices() -> None:
    """A hundred in each."""
    found = changes(KEPT, "IPv4", wanted(*range(250)), [])
    assert [len(content(each)) for each in found.create] == [100, 100, 50]


def test_same_endpoints_change_nothing() -> None:
    """In whichever order they come."""
    slices = stored(changes(KEPT, "IPv4", wanted(*range(150)), []))
    assert changes(KEPT, "IPv4", wanted(*reversed(range(150))), slices) == SliceChanges()


def test_new_endpoint_takes_the_place_of_an_old_one() -> None:
    """Only the slice that changes anyway is written."""
    slices = stored(changes(KEPT, "IPv4", wanted(*range(200)), []))
    found = changes(KEPT, "IPv4", wanted(*range(150), *range(151, 200), 500), slices)
    assert (found.create, found.delete) == ([], [])
    assert [(old.name, 500 in content(new), 150 in content(new)) for old, new in found.update] == [
        (slices[1].name, True, False)
    ]


def test_slice_that_is_empty_goes() -> None:
    """But for the last one."""
    slices = stored(changes(KEPT, "IPv4", wanted(*range(101)), []))
    found = changes(KEPT, "IPv4", wanted(*range(100)), slices)
    assert ([each.name for each in found.delete], found.update) == ([slices[1].name], [])
    found = changes(KEPT, "IPv4", [], slices[:1])
    assert [(old.name, content(new), new.ports) for old, new in found.update] == [(slices[0].name, [], [])]
    assert (found.create, found.delete) == ([], [])


def test_slice_that_would_go_becomes_one_that_would_come() -> None:
    """As the empty one of a service does when its first pods are there: there are never two, nor none."""
    empty = stored(changes(KEPT, "IPv4", [], []))
    found = changes(KEPT, "IPv4", [*wanted(1), *wanted(2, ports=ADMIN)], empty)
    assert (len(found.create), found.delete) == (1, [])
    ((old, new),) = found.update
    assert old is empty[0]
    assert ([port.port for port in new.ports or ()], content(new)) == ([9090], [2])


def test_endpoints_with_other_ports_are_in_other_slices() -> None:
    """The ports of a slice hold for all of it."""
    both = [*wanted(1), *wanted(2, ports=ADMIN)]
    slices = stored(changes(KEPT, "IPv4", both, []))
    assert sorted(((each.ports or [])[0].port, content(each)) for each in slices) == [(8080, [1]), (9090, [2])]
    found = changes(KEPT, "IPv4", wanted(1, 2), slices)
    assert [content(new) for _, new in found.update] == [[1, 2]]
    assert len(found.delete) == 1


def test_labels_are_kept_up_to_date() -> None:
    """A slice whose labels differ is written."""
    slices = stored(changes(KEPT, "IPv4", wanted(1), []))
    other = UnchangedSlice("default", "web", {"app": "other"})
    assert [content(new) for _, new in changes(other, "IPv4", wanted(1), slices).update] == [[1]]


def pod(name: str, *addresses: str, ready: bool = True, port: str = "web", phase: str = "Running") -> Pod:
    container = Container(name="main", ports=[ContainerPort(name=port, container_port=8080)])
    condition = PodCondition(type="Ready", status="True" if ready else "False")
    status = PodStatus(phase=phase, pod_ips=[PodIP(ip=each) for each in addresses], conditions=[condition])
    return Pod(name=name, spec=PodSpec(containers=[container]), status=status)


SERVICE = Service(
    name="web",
    spec=ServiceSpec(ports=[ServicePort(name="http", port=80, target_port="web"), ServicePort(name="plain", port=81)]),
)


def test_pods_are_reached_by_their_family() -> None:
    """Those without an address of it, and those that have ended, are not."""
    pods = [pod("both", "10.0.0.1", "fd00::1"), pod("none"), pod("ended", "10.0.0.2", phase="Failed")]
    assert [each.address for each in backends(SERVICE, pods, "IPv4")] == ["10.0.0.1"]
    assert [each.address for each in backends(SERVICE, pods, "IPv6")] == ["fd00::1"]


def test_named_port_that_a_pod_lacks_is_left_out() -> None:
    """The others are there; a port without a target is the same in the pod."""
    (found,) = backends(SERVICE, [pod("other", "10.0.0.1", port="other")], "IPv4")
    assert [(port.name, port.number) for port in found.ports] == [("plain", 81)]


def test_subsets_tell_ready_addresses_from_others() -> None:
    """Those with the same ports are together."""
    pods = [pod("one", "10.0.0.1"), pod("two", "10.0.0.2", ready=False), pod("three", "10.0.0.3", port="other")]
    found = subsets(SERVICE, backends(SERVICE, pods, "IPv4"))
    assert [
        (
            [each.ip for each in subset.addresses or ()],
            [each.ip for each in subset.not_ready_addresses or ()],
            [port.name for port in subset.ports or ()],
        )
        for subset in found
    ] == [(["10.0.0.3"], [], ["plain"]), (["10.0.0.1"], ["10.0.0.2"], ["http", "plain"])]
