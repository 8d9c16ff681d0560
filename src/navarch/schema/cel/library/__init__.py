"""The functions that rules can call: what Kubernetes 1.36 gives to CustomResourceDefinitions, and no more."""

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
    optionals,
    patches,
    quantities,
    regex,
    semver,
    strings,
    times,
    urls,
)
from navarch.schema.cel.signatures import Overload

_LIBRARIES = (
    operators,
    conversions,
    times,
    strings,
    lists,
    optionals,
    regex,
    urls,
    quantities,
    network,
    semver,
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
PATCH_FUNCTIONS: Mapping[str, tuple[Overload, ...]] = {overload.function: (overload,) for overload in patches.OVERLOADS}
"""What mutating policies can call besides."""
