"""The functions that rules can call: those of Kubernetes 1.36 for CustomResourceDefinitions, and no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from navarch.schema.cel.library import (
    authorization,
    conversions,
    formats,
    lists,
    network,
    operators,
    quantities,
    regex,
    strings,
    times,
)
from navarch.schema.cel.library.strings import PATCH_OVERLOADS
from navarch.schema.cel.signatures import Overload

_LIBRARIES = (
    operators,
    conversions,
    times,
    strings,
    lists,
    regex,
    quantities,
    network,
    formats,
    authorization,
)


def _by_name() -> Mapping[str, tuple[Overload, ...]]:
    found: dict[str, list[Overload]] = defaultdict(list)
    for library in _LIBRARIES:
        for overload in library.OVERLOADS:
            found[overload.function].append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}


FUNCTIONS = _by_name()
PATCH_FUNCTIONS: Mapping[str, tuple[Overload, ...]] = {overload.function: (overload,) for overload in PATCH_OVERLOADS}
"""The additional functions of mutating policies."""
