"""`PodInfo`: the fields of a pod that controllers and the scheduler need, decoded once, with its resource requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from navarch.api import Key, Quantity
from navarch.errors import InvalidValueError
from navarch.k8s.core.v1 import Affinity, Toleration, TopologySpreadConstraint

Amounts = Mapping[str, int]

CPU: Final = "cpu"
MEMORY: Final = "memory"
_LEAST: Final = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container that asks for nothing is taken to need when nodes are compared, though not when they are filtered."""


class _Resources(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None


class RequestingContainer(msgspec.Struct, rename="camel"):
    """The fields of a container that count for scheduling."""

    resources: _Resources = msgspec.field(default_factory=_Resources)
    restart_policy: str | None = None


class RequestingContainers(msgspec.Struct, rename="camel"):
    """The fields of a pod's spec that count for its requests."""

    containers: list[RequestingContainer] = []
    init_containers: list[RequestingContainer] | None = None
    overhead: dict[str, str | int | float] | None = None
    resources: _Resources | None = None


@lru_cache(maxsize=4096)
def _amount(name: str, text: str) -> int:
    try:
        quantity = Quantity(text)
    except InvalidValueError:
        return 0
    return quantity.milli_value if name == CPU else quantity.value


def amounts(quantities: Mapping[str, object] | None) -> dict[str, int]:
    """The quantities as whole numbers."""
    return {name: _amount(name, str(value)) for name, value in (quantities or {}).items()}


def requested(spec: RequestingContainers) -> Amounts:
    """What the pod needs at once at most: its containers and sidecars together, or an initial container while it runs.

    What is asked for the pod as a whole goes before what its containers ask for.
    """
    wanted = [amounts(each.resources.requests) for each in spec.containers]
    return _whole(spec, _together(spec, wanted, least={}))


def at_least(spec: RequestingContainers) -> Amounts:
    """The same with something for containers that ask for nothing, so that they are spread too."""
    wanted = [{**_LEAST, **amounts(each.resources.requests)} for each in spec.containers]
    return _whole(spec, _together(spec, wanted, least=_LEAST))


def _together(spec: RequestingContainers, wanted: Iterable[Amounts], least: Amounts) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in wanted:
        _add(total, each)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers or ():
        own = {**least, **amounts(container.resources.requests)}
        if container.restart_policy == "Always":
            _add(sidecars, own)
            _raise(peak, sidecars)
        else:
            _raise(peak, {name: own.get(name, 0) + sidecars.get(name, 0) for name in {*own, *sidecars}})
    _add(total, sidecars)
    _raise(total, peak)
    return total


def _whole(spec: RequestingContainers, total: dict[str, int]) -> Amounts:
    if spec.resources is not None:
        total.update(amounts(spec.resources.requests))
    _add(total, amounts(spec.overhead))
    return {name: amount for name, amount in total.items() if amount}


def _add(total: dict[str, int], more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, int], other: Amounts) -> None:
    for name, amount in other.items():
        if amount > total.get(name, 0):
            total[name] = amount


DEFAULT_SCHEDULER: Final = "default-scheduler"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_NOTHING: Final = msgspec.Raw(b"")
_NULL: Final = msgspec.Raw(b"null")

HostPort = tuple[str, str, int]
"""Address, protocol and number on the node."""


class _PodOwner(msgspec.Struct):
    uid: str = ""
    controller: bool | None = None


class _PodMetadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    namespace: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[_PodOwner, ...] | None = None


class _ContainerPort(msgspec.Struct, rename="camel"):
    host_port: int | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    protocol: str | None = None


class _PortedContainer(RequestingContainer, rename="camel"):
    ports: list[_ContainerPort] | None = None


class _Claim(msgspec.Struct, rename="camel"):
    claim_name: str = ""


class _Volume(msgspec.Struct, rename="camel"):
    name: str = ""
    persistent_volume_claim: _Claim | None = None
    ephemeral: dict[str, object] | None = None


class _Needing(RequestingContainers, rename="camel"):
    containers: list[_PortedContainer] = []  # type: ignore[assignment]  # with its ports


class _PodSpecFields(msgspec.Struct, rename="camel"):
    containers: msgspec.Raw = msgspec.Raw(b"[]")
    init_containers: msgspec.Raw = _NULL
    overhead: msgspec.Raw = _NULL
    resources: msgspec.Raw = _NULL
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: msgspec.Raw = _NOTHING
    tolerations: msgspec.Raw = _NOTHING
    topology_spread_constraints: msgspec.Raw = _NOTHING
    scheduler_name: str = DEFAULT_SCHEDULER
    scheduling_gates: list[dict[str, object]] | None = None
    priority: int = 0
    preemption_policy: str | None = None
    volumes: list[_Volume] | None = None


class _PodStatusFields(msgspec.Struct, rename="camel"):
    phase: str = ""
    nominated_node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _PodMetadata
    spec: _PodSpecFields
    status: _PodStatusFields = msgspec.field(default_factory=_PodStatusFields)


_decoder = msgspec.json.Decoder(_Pod)
_needing = msgspec.json.Decoder(_Needing)


class _PodNeeds(NamedTuple):
    """The resources and host ports that the containers of a pod need."""

    requests: Amounts
    at_least: Amounts
    ports: tuple[HostPort, ...]


class PodInfo(msgspec.Struct, eq=False, gc=False):
    """One version of a pod, with the sum of its requests.

    `affinity`, `tolerations` and `constraints` are JSON: pods of one template have the same, and it is read once for all
    of them.
    """

    key: Key
    uid: str
    created: str
    labels: dict[str, str]
    owner: str
    node: str
    priority: int
    may_preempt: bool
    is_deleting: bool
    is_finished: bool
    is_gated: bool
    scheduler: str
    requests: Amounts
    at_least: Amounts
    ports: tuple[HostPort, ...]
    claims: tuple[str, ...]
    selector: tuple[tuple[str, str], ...]
    affinity: bytes
    tolerations: bytes
    constraints: bytes
    nominated: str

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.key.namespace

    @property
    def shape(self) -> tuple[tuple[tuple[str, str], ...], bytes, bytes]:
        """All that decides whether a node suits the pod, whatever else is on it; the same for pods of one template."""
        return (self.selector, self.affinity, self.tolerations)

    @property
    def wishes(self) -> tuple[object, ...]:
        """All that decides where the pod can be; two versions that are equal here can be on the same nodes."""
        return (self.shape, self.requests, self.labels, self.constraints, self.claims, self.ports, self.priority)

    @property
    def is_waiting(self) -> bool:
        """Returns True if it needs a node, and may have one."""
        return not (self.node or self.is_finished or self.is_deleting or self.is_gated)


def pod_info(data: bytes) -> PodInfo:
    """The pod that is in `data`; raises `msgspec.DecodeError`."""
    pod = _decoder.decode(data)
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    needs = _needs(*map(bytes, (spec.containers, spec.init_containers, spec.overhead, spec.resources)))
    return PodInfo(
        key=Key(metadata.namespace, metadata.name),
        uid=metadata.uid,
        created=metadata.creation_timestamp,
        labels=metadata.labels or {},
        owner=next((each.uid for each in metadata.owner_references or () if each.controller), ""),
        node=spec.node_name,
        priority=spec.priority,
        may_preempt=spec.preemption_policy != "Never",
        is_deleting=metadata.deletion_timestamp is not None,
        is_finished=status.phase in _FINISHED,
        is_gated=bool(spec.scheduling_gates),
        scheduler=spec.scheduler_name,
        requests=needs.requests,
        at_least=needs.at_least,
        ports=needs.ports,
        claims=_claims(metadata.name, spec),
        selector=tuple(sorted((spec.node_selector or {}).items())),
        affinity=bytes(spec.affinity),
        tolerations=bytes(spec.tolerations),
        constraints=bytes(spec.topology_spread_constraints),
        nominated=status.nominated_node_name,
    )


@lru_cache(maxsize=1024)
def _needs(containers: bytes, init_containers: bytes, overhead: bytes, resources: bytes) -> _PodNeeds:
    """Added up once for all pods of a template, and all versions of a pod. Raises `msgspec.DecodeError`."""
    spec = _needing.decode(
        b'{"containers":%b,"initContainers":%b,"overhead":%b,"resources":%b}'
        % (containers, init_containers, overhead, resources)
    )
    return _PodNeeds(requested(spec), at_least(spec), _ports(spec))


def _ports(spec: _Needing) -> tuple[HostPort, ...]:
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104 - as Kubernetes reads it
        for container in spec.containers
        for port in container.ports or ()
        if port.host_port
    )


def _claims(pod: str, spec: _PodSpecFields) -> tuple[str, ...]:
    named = (volume for volume in spec.volumes or () if volume.persistent_volume_claim or volume.ephemeral)
    return tuple(
        volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim else f"{pod}-{volume.name}"
        for volume in named
    )


@lru_cache(maxsize=1024)
def affinity_of(data: bytes) -> Affinity:
    """The affinity that is in `data`: shared, not to be changed."""
    return msgspec.json.decode(data, type=Affinity) if data and data != b"null" else Affinity()


@lru_cache(maxsize=1024)
def tolerations_of(data: bytes) -> tuple[Toleration, ...]:
    """The tolerations that are in `data`."""
    return tuple(msgspec.json.decode(data, type=list[Toleration] | None) or ()) if data else ()


@lru_cache(maxsize=1024)
def constraints_of(data: bytes) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints on spreading that are in `data`."""
    return tuple(msgspec.json.decode(data, type=list[TopologySpreadConstraint] | None) or ()) if data else ()
