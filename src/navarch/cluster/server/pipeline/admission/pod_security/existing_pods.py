"""Pods that are there already when a namespace begins to enforce a stricter level: warned of, never refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from navarch._base.clock import Clock
from navarch.cluster.server.objects.registry import Registry, value_of
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.pipeline.admission.pod_security.controls import violations
from navarch.cluster.server.pipeline.admission.pod_security.levels import LevelVersion
from navarch.cluster.storage import Stored

__all__ = ["ExistingPods"]

_MOST_PODS: Final = 3000
_MOST_SECONDS: Final = 1.0
_AT_ONCE: Final = 50
"""So many pods are checked before other requests get their turn."""


class _Owner(msgspec.Struct):
    uid: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct):
    ownerReferences: list[_Owner] | None = None  # noqa: N815 - as it is stored


class _Owned(msgspec.Struct):
    """The part of a pod that names its controller."""

    metadata: _Metadata


_OWNED: Final = msgspec.json.Decoder(_Owned)


class ExistingPods:
    """Checks the pods of a namespace: one of each controller first, at most 3000 of them, and for at most a second."""

    def __init__(self, registry: Registry, catalog: Catalog, clock: Clock) -> None:
        self._registry = registry
        self._catalog = catalog
        self._clock = clock

    async def warnings(self, namespace: str, enforced: LevelVersion) -> list[str]:
        """What is to be told to who makes the namespace enforce that level; pods with the same violations are one line."""
        pods = self._catalog.find("", "v1", "pods")
        assert pods is not None, "expected the server to serve pods"
        stored = _prioritized((await self._registry.storage.page(pods.prefix(namespace))).items)
        found: dict[str, list[str]] = {}
        deadline = self._clock.monotonic() + _MOST_SECONDS
        checked = 0
        for each in stored[:_MOST_PODS]:
            pod = await value_of(pods, each)
            if reasons := [violated.reason for violated in violations(enforced, pod)]:
                found.setdefault(", ".join(reasons), []).append(pod["metadata"]["name"])
            checked += 1
            if self._clock.monotonic() > deadline:
                break
            if checked % _AT_ONCE == 0:
                await self._clock.sleep(0)
        return [*_summary(namespace, enforced, found, checked, len(stored)), *sorted(map(_line, found.values(), found))]


def _summary(
    namespace: str, enforced: LevelVersion, found: dict[str, list[str]], checked: int, total: int
) -> Iterable[str]:
    if checked < total:
        yield f"new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
    if found:
        yield f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforced}"'


def _line(names: list[str], reasons: str) -> str:
    others = len(names) - 1
    more = f" (and {others} other pod{'' if others == 1 else 's'})" if others else ""
    return f"{min(names)}{more}: {reasons}"


def _prioritized(pods: list[Stored]) -> list[Stored]:
    """Pods of controllers that have had one already come last: they are most likely the same."""
    first: list[Stored] = []
    again: list[Stored] = []
    seen: set[str] = set()
    for pod in pods:
        owners = _OWNED.decode(pod.value).metadata.ownerReferences or ()
        controller = next((each.uid for each in owners if each.controller), "")
        (again if controller in seen else first).append(pod)
        if controller:
            seen.add(controller)
    return [*first, *again]
