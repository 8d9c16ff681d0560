"""What the parts of the control plane that are no controllers of one kind are built from."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from navarch._base.clock import Clock
from navarch.cache import Cache, Change, Collection
from navarch.client import Client
from navarch.cluster.controllers.pod_info import PodInfo, pod_info
from navarch.controller.events import Recorder
from navarch.k8s.core.v1 import Pod

_log = logging.getLogger("navarch.cluster.controllers")

K = TypeVar("K", bound=Hashable)

Told = Callable[[PodInfo | None, PodInfo | None], None]
"""A pod as it was, None if it came, and as it is, None if it went."""


class PodIndex:
    """What is known of pods. Indexes of the cache would have every pod decoded whole, several times for each change."""

    def __init__(self, cache: Cache) -> None:
        self.collection: Collection[Pod] = cache.collection(Pod)
        self._pods: dict[str, PodInfo] = {}
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._by_claim: dict[tuple[str, str], dict[str, PodInfo]] = {}
        self._subscribers: list[Told] = []

    def open(self) -> None:
        """Follows the pods from now on; everybody is told of those that are there."""
        self.collection.subscribe(self._changed)

    def close(self) -> None:
        """Follows them no more."""
        self.collection.unsubscribe(self._changed)

    def subscribe(self, told: Told) -> None:
        """Tells of every change from now on, and of every pod that is there as one that came."""
        for pod in self._pods.values():
            told(None, pod)
        self._subscribers.append(told)

    def unsubscribe(self, told: Told) -> None:
        """Tells no more."""
        self._subscribers.remove(told)

    def get(self, uid: str) -> PodInfo | None:
        """The pod of that uid."""
        return self._pods.get(uid)

    def all(self) -> Iterable[PodInfo]:
        """Every pod."""
        return tuple(self._pods.values())

    def on_node(self, name: str) -> Iterable[PodInfo]:
        """The pods of a node."""
        return tuple(self._by_node.get(name, {}).values())

    def using(self, namespace: str, claim: str) -> Iterable[PodInfo]:
        """The pods that use a claim."""
        return tuple(self._by_claim.get((namespace, claim), {}).values())

    def _changed(self, change: Change) -> None:
        try:
            new = pod_info(change.new.data) if change.new is not None else None
        except msgspec.DecodeError as error:
            _log.warning("pod %s is not looked at: %s", change.newest.key, error)
            return
        old = self._pods.pop(change.newest.uid, None)
        if old is not None:
            self._strike(old)
        if new is not None:
            self._enter(new)
        for told in tuple(self._subscribers):
            try:
                told(old, new)
            except Exception:  # noqa: BLE001 - one must not keep the change from the others
                _log.exception("%s failed for pod %s", told, change.newest.key)

    def _enter(self, pod: PodInfo) -> None:
        self._pods[pod.uid] = pod
        if pod.node:
            self._by_node.setdefault(pod.node, {})[pod.uid] = pod
        for claim in pod.claims:
            self._by_claim.setdefault((pod.namespace, claim), {})[pod.uid] = pod

    def _strike(self, pod: PodInfo) -> None:
        _strike(self._by_node, pod.node, pod.uid)
        for claim in pod.claims:
            _strike(self._by_claim, (pod.namespace, claim), pod.uid)


def _strike(index: dict[K, dict[str, PodInfo]], key: K, uid: str) -> None:
    found = index.get(key, {})
    found.pop(uid, None)
    if not found:
        index.pop(key, None)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What all parts share: the client they write with, the cache they read from, whom they tell of events, and what is
    known of pods.

    What a part asks of the cache, it asks when it is made: everything is listed once before any part runs.
    """

    client: Client
    cache: Cache
    recorder: Recorder
    pods: PodIndex

    @property
    def clock(self) -> Clock:
        """The clock that all waits go by."""
        return self.client.clock

    @property
    def rng(self) -> random.Random:
        """Where jitter comes from."""
        return self.client.rng


class Runnable(Protocol):
    """Something that works beside the controllers. It may be run again after it has failed."""

    async def run(self) -> None:
        """Works until it is cancelled."""
        ...
