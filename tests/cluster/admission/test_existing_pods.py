"""Which pods are checked when a namespace becomes stricter, if there are too many of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from navarch._base.clock import ManualClock
from navarch.cluster.server.kinds.builtin.catalog import builtin_types
from navarch.cluster.server.objects.registry import Registry
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.pipeline.admission.pod_security.admission import ExistingPods
from navarch.cluster.server.pipeline.admission.pod_security.controls import Level, LevelVersion
from navarch.cluster.storage.memory import MemoryStorage

BASELINE = LevelVersion(Level.BASELINE)
MOST = 3000


class SlowClock(ManualClock):
    """Time that passes whenever somebody looks at it."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        return self._looks * self._seconds


def pod(name: str, controller: str = "", **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "some"}
    if controller:
        metadata["ownerReferences"] = [{"uid": "other"}, {"uid": controller, "controller": True}]
    containers = [{"name": "app", "image": "example.com/app"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


async def warnings(pods: Iterable[dict[str, Any]], clock: ManualClock) -> list[str]:
    """What is said of these pods."""
    storage = MemoryStorage()
    catalog = Catalog(builtin_types())
    resource = catalog.find("", "v1", "pods")
    assert resource is not None
    for each in pods:
        key = resource.key("some", each["metadata"]["name"])
        await storage.put(key, json.dumps(each).encode(), expected=0)
    found = await ExistingPods(Registry(storage), catalog, clock).warnings("some", BASELINE)
    await storage.close()
    return found


async def test_one_pod_of_each_controller_comes_first() -> None:
    """One pod of each controller is checked first, since pods of one controller are most likely alike."""
    replicas = [pod(f"a{number:04}", "one") for number in range(MOST)]
    found = await warnings([*replicas, pod("b", "two", hostPID=True), pod("c", hostPID=True)], ManualClock())
    assert found == [
        f"new PodSecurity enforce level only checked against the first {MOST} of {MOST + 2} existing pods",
        'existing pods in namespace "some" violate the new PodSecurity enforce level "baseline:latest"',
        "b (and 1 other pod): host namespaces",
    ]


async def test_pods_are_checked_for_a_second() -> None:
    """The check of existing pods ends after a second."""
    found = await warnings([pod(f"a{number}") for number in range(9)], SlowClock(0.3))
    assert found == ["new PodSecurity enforce level only checked against the first 4 of 9 existing pods"]
