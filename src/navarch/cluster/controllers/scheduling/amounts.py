"""How much pods ask for, in whole numbers: milli-CPUs, bytes, or pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from navarch.api import Quantity
from navarch.errors import InvalidValueError

Amounts = Mapping[str, int]

CPU: Final = "cpu"
MEMORY: Final = "memory"
_LEAST: Final = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container that asks for nothing is taken to need when nodes are compared, though not when they are filtered."""


class _Resources(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None


class Container(msgspec.Struct, rename="camel"):
    """As much of a container as counts here."""

    resources: _Resources = msgspec.field(default_factory=_Resources)
    restart_policy: str | None = None


class Containers(msgspec.Struct, rename="camel"):
    """As much of a pod's spec as counts here."""

    containers: list[Container] = []
    init_containers: list[Container] | None = None
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


def requested(spec: Containers) -> Amounts:
    """What the pod needs at once at most: its containers and sidecars together, or an initial container while it runs.

    What is asked for the pod as a whole goes before what its containers ask for.
    """
    wanted = [amounts(each.resources.requests) for each in spec.containers]
    return _whole(spec, _together(spec, wanted, least={}))


def at_least(spec: Containers) -> Amounts:
    """The same with something for containers that ask for nothing, so that they are spread too."""
    wanted = [{**_LEAST, **amounts(each.resources.requests)} for each in spec.containers]
    return _whole(spec, _together(spec, wanted, least=_LEAST))


def _together(spec: Containers, wanted: Iterable[Amounts], least: Amounts) -> dict[str, int]:
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


def _whole(spec: Containers, total: dict[str, int]) -> Amounts:
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
