"""The allocator of cluster IPs and node ports."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from navarch._base.clock import Clock
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules
from navarch.cluster.server.kinds.builtin.networking.defaults import needs_health_port
from navarch.cluster.server.objects.types import WriteContext
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import invalid
from navarch.errors import Cause

_SERVICES: Final = ("v1", "services")
_NETWORK: Final = "10.0.0.0/24"
_FIRST_PORT: Final = 30000
_LAST_PORT: Final = 32767
_PROMISED_SECONDS: Final = 60.0
_KEPT_LOW: Final = 16
"""The first addresses are given only to those who ask for them by name."""
_CHANCES: Final = 8
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
"""Other ones are refused, and no port is looked for."""
_WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})
_WITH_ADDRESS: Final = frozenset({"ClusterIP", "NodePort", "LoadBalancer"})
Owner = tuple[str, str]


class ServiceAllocator:
    """Gives out addresses of Kubernetes' default range, and node ports.

    It learns what is stored from `changed`, the callback of whatever follows `/registry/services/specs/`. What was
    given out and never turns up in the store is free again after a minute.
    """

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._network = ipaddress.ip_network(_NETWORK)
        self._addresses: dict[str, Owner] = {}
        self._ports: dict[tuple[str, int], Owner] = {}
        self._promised: dict[str | tuple[str, int], tuple[Owner, float]] = {}

    def use(self, network: str) -> None:
        """Gives out addresses of this range from now on."""
        self._network = ipaddress.ip_network(network)

    def changed(self, old: Json | None, new: Json | None) -> None:
        """A Service was stored, changed or removed."""
        if old is not None:
            for address in _addresses(old):
                self._addresses.pop(address, None)
            for port in _taken_ports(old):
                self._ports.pop(port, None)
        if new is not None:
            self._addresses |= dict.fromkeys(_addresses(new), _owner(new))
            self._ports |= {port: _owner(new) for port in _taken_ports(new)}

    def bound_to(self, every: Mapping[tuple[str, str], Rules]) -> dict[tuple[str, str], Rules]:
        """Returns the rules of Services with rules that also allocate addresses and ports."""
        rules = every[_SERVICES]

        def create(value: Json, operation: WriteContext) -> None:
            rules.create(value, operation)
            self._give(value, operation)

        def update(value: Json, old: Json, operation: WriteContext) -> None:
            rules.update(value, old, operation)
            self._give(value, operation)

        def check(value: Json) -> Iterator[Cause]:
            faults = [*rules.check(value)]
            yield from _address_faults(faults) or faults
            if not faults:
                yield from self._faults(value)

        def check_update(value: Json, old: Json) -> Iterator[Cause]:
            if not _address_faults(rules.check(value)):
                yield from rules.check_update(value, old)

        return {_SERVICES: replace(rules, create=create, update=update, check=check, check_update=check_update)}

    def _give(self, value: Json, operation: WriteContext) -> None:
        """Fills in what the service needs and does not say."""
        spec = value["spec"]
        if spec.get("type") in _WITH_ADDRESS and not spec.get("clusterIP"):
            address = self._free_address()
            spec["clusterIP"], spec["clusterIPs"] = address, [address]
        free = {protocol: self._free_ports(protocol) for protocol in _PROTOCOLS}
        own = {port.get("nodePort") for port in spec.get("ports") or ()}
        for port in self._ports_without_number(spec):
            port["nodePort"] = _next_port(free.get(port.get("protocol", "TCP")), own)
        if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = _next_port(free["TCP"], own)
        if not operation.dry_run:
            until = self._clock.monotonic() + _PROMISED_SECONDS
            given: list[str | tuple[str, int]] = [*_addresses(value), *_taken_ports(value)]
            self._promised |= dict.fromkeys(given, (_owner(value), until))

    def _ports_without_number(self, spec: Json) -> list[Json]:
        if spec.get("type") not in _WITH_PORTS or spec.get("allocateLoadBalancerNodePorts") is False:
            return []
        return [port for port in spec.get("ports") or () if not port.get("nodePort")]

    def _faults(self, value: Json) -> Iterator[Cause]:
        """Addresses and ports that the service asks for and cannot have."""
        owner = _owner(value)
        for address in _addresses(value):
            shown = value["spec"]["clusterIPs"]
            if ipaddress.ip_address(address) not in self._network:
                said = f"failed to allocate IP {address}: the provided network does not match the current range"
                yield invalid("spec.clusterIPs", shown, said)
            elif self._holder(address) not in {owner, None}:
                said = f"failed to allocate IP {address}: provided IP is already allocated"
                yield invalid("spec.clusterIPs", shown, said)
        yield from self._port_faults(value, owner)

    def _port_faults(self, value: Json, owner: Owner) -> Iterator[Cause]:
        seen: set[tuple[str, int]] = set()
        for index, port in _node_ports(value):
            field = f"spec.ports[{index}].nodePort"
            if not _FIRST_PORT <= port[1] <= _LAST_PORT:
                said = f"The range of valid ports is {_FIRST_PORT}-{_LAST_PORT}"
                yield invalid(field, port[1], f"provided port is not in the valid range. {said}")
            elif port in seen or self._holder(port) not in {owner, None}:
                yield invalid(field, port[1], "provided port is already allocated")
            seen.add(port)

    def _holder(self, thing: str | tuple[str, int]) -> Owner | None:
        known = self._addresses.get(thing) if isinstance(thing, str) else self._ports.get(thing)
        owner, until = self._promised.get(thing, (None, 0.0))
        if known is not None:
            return known
        return owner if until > self._clock.monotonic() else None

    def _free_address(self) -> str:
        """Any that is free, the first ones last; the first of all if there is none: it is refused as taken."""
        first, last = int(self._network.network_address) + 1, int(self._network.broadcast_address) - 1
        low = min(first + _KEPT_LOW, last)
        for candidates in (range(low, last + 1), range(first + 1, low)):
            for number in self._tried(candidates):
                address = str(ipaddress.ip_address(number))
                if self._holder(address) is None:
                    return address
        return str(ipaddress.ip_address(first))

    def _free_ports(self, protocol: str) -> Iterator[int]:
        """Those that no service has. One iterator serves all ports of a service, so that none is tried again for each."""
        return (
            port for port in self._tried(range(_FIRST_PORT, _LAST_PORT + 1)) if self._holder((protocol, port)) is None
        )

    def _tried(self, candidates: range) -> Iterator[int]:
        """A few of them by chance, which nearly always do, then all of them from a chance beginning."""
        for _ in range(_CHANCES):
            yield self._rng.choice(candidates)
        start = self._rng.randrange(len(candidates))
        yield from candidates[start:]
        yield from candidates[:start]


def _next_port(free: Iterator[int] | None, own: set[int | None]) -> int:
    """The next that the service has not yet, which it has then; the last of all if there is none: it is refused as taken."""
    port = next((each for each in free or () if each not in own), _LAST_PORT)
    own.add(port)
    return port


def _address_faults(faults: Iterable[Cause]) -> list[Cause]:
    """Those that keep Kubernetes from looking for an address, and from every other check."""
    return [each for each in faults if each.field.startswith("spec.clusterIPs[") and "'None'" not in each.message]


def _owner(value: Json) -> Owner:
    metadata = value["metadata"]
    return metadata.get("namespace", ""), metadata.get("name", "")


def _addresses(value: Json) -> list[str]:
    spec = value.get("spec", {})
    if spec.get("type") == "ExternalName":
        return []
    return [address for address in spec.get("clusterIPs") or () if address not in {"", "None"}]


def _taken_ports(value: Json) -> list[tuple[str, int]]:
    """Its node ports, and the one at which nodes tell whether they have a pod of it."""
    health = value.get("spec", {}).get("healthCheckNodePort")
    return [*(port for _, port in _node_ports(value)), *([("TCP", health)] if health else [])]


def _node_ports(value: Json) -> list[tuple[int, tuple[str, int]]]:
    ports = value.get("spec", {}).get("ports") or ()
    return [
        (index, (port.get("protocol", "TCP"), port["nodePort"]))
        for index, port in enumerate(ports)
        if port.get("nodePort")
    ]
