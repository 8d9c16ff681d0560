"""Checks of NetworkPolicies, ServiceCIDRs and IPAddresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from navarch.cluster.server.kinds.builtin.generic.checks import address_range, choice, node_port_or_name, port_number
from navarch.cluster.server.objects.metadata import immutable_faults, selector_faults
from navarch.cluster.server.wire.causes import forbidden, invalid, required
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_DIRECTIONS: Final = ("Ingress", "Egress")
_VERSIONS: Final = {"IPv4": 4, "IPv6": 6}
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def check_network_policy(value: Json) -> Iterator[Cause]:
    """A NetworkPolicy."""
    spec = value["spec"]
    yield from selector_faults(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            place = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _check_policy_port(port, f"{place}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _check_peer(peer, f"{place}.{peers}[{number}]")
    if len(spec.get("policyTypes") or ()) > len(_DIRECTIONS):
        yield invalid("spec.policyTypes", spec["policyTypes"], "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        yield from choice(kind, f"spec.policyTypes[{index}]", _DIRECTIONS)


def _check_policy_port(port: Json, path: str) -> Iterator[Cause]:
    yield from choice(port.get("protocol"), f"{path}.protocol", _PROTOCOLS)
    first, last = port.get("port"), port.get("endPort")
    if first is not None:
        yield from node_port_or_name(first, f"{path}.port")
    if last is None:
        return
    if not isinstance(first, int):
        why = "is not specified" if first is None else "is non-numeric"
        yield invalid(f"{path}.endPort", last, f"may not be specified when `port` {why}")
        return
    if last < first:
        yield invalid(f"{path}.endPort", first, "must be greater than or equal to `port`")
    yield from port_number(last, f"{path}.endPort")


def _check_peer(peer: Json, path: str) -> Iterator[Cause]:
    for name in ("podSelector", "namespaceSelector"):
        yield from selector_faults(peer.get(name), f"{path}.{name}")
    block = peer.get("ipBlock")
    if block is not None:
        yield from _check_block(block, f"{path}.ipBlock")
        if "podSelector" in peer or "namespaceSelector" in peer:
            yield forbidden(path, "may not specify both ipBlock and another peer")
    elif not peer:
        yield required(path, "must specify a peer")


def _check_block(block: Json, path: str) -> Iterator[Cause]:
    """A range of addresses, and those of them that are not meant."""
    text = block.get("cidr", "")
    if not text:
        yield required(f"{path}.cidr")
        return
    yield from address_range(text, f"{path}.cidr")
    if (whole := _network(text)) is None:
        return
    for index, except_ in enumerate(block.get("except") or ()):
        yield from address_range(except_, f"{path}.except[{index}]")
        part = _network(except_)
        if part is not None and not _is_inside(part, whole):
            yield invalid(f"{path}.except[{index}]", except_, "must be a strict subset of `cidr`")


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _is_inside(part: _Network, whole: _Network) -> bool:
    return part.network_address in whole and part.prefixlen > whole.prefixlen


def check_service_range_update(value: Json, old: Json) -> Iterator[Cause]:
    """The addresses of Services stay as they are; a second family may join them."""
    now, before = value["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
    joins = len(before) == 1 and len(now) == len(_VERSIONS)
    yield from immutable_faults(now[:1] if joins else now, before, "spec.cidrs")


def address_name_faults(name: str) -> list[str]:
    """The name of an IPAddress is the address, as everybody would write it.

    >>> address_name_faults("10.0.0.1"), address_name_faults("fe80::0042")
    ([], ['must be in canonical form ("fe80::42")'])
    """
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        is_padded = re.fullmatch(r"\d+(\.\d+){3}", name) and any(
            len(part) > 1 and part[0] == "0" for part in name.split(".")
        )
        valid = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return ["must not have leading 0s" if is_padded else valid]
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return [] if str(found) == name else [f'must be in canonical form ("{found}")']
