"""`ControllerContext`: the client, cache, event recorder and pod index that all controllers share."""

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

PodHandler = Callable[[PodInfo | None, PodInfo | None], None]
"""Called with the old pod (None if it was added) and the new one (None if it was deleted)."""


class PodIndex:
    """Every pod as `PodInfo`, by uid, node and claim, decoded once per change for all controllers."""

    def __init__(self, cache: Cache) -> None:
        self.collection: Collection[Pod] = cache.collection(Pod)
        self._pods: dict[str, PodInfo] = {}
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._by_claim: dict[tuple[str, str], dict[str, PodInfo]] = {}
        self._subscribers: list[PodHandler] = []

    def open(self) -> None:
        """Subscribes to the cache, and passes existing pods to the subscribers."""
        self.collection.subscribe(self._changed)

    def close(self) -> None:
        """Unsubscribes from the cache."""
        self.collection.unsubscribe(self._changed)

    def subscribe(self, handler: PodHandler) -> None:
        """Calls `handler` for every change, and for every existing pod as an addition."""
        for pod in self._pods.values():
            handler(None, pod)
        self._subscribers.append(handler)

    def unsubscribe(self, handler: PodHandler) -> None:
        """Ends a subscription."""
        self._subscribers.remove(handler)

    def get(self, uid: str) -> PodInfo | None:
        """Returns the pod of that uid."""
        return self._pods.get(uid)

    def all(self) -> Iterable[PodInfo]:
        """Returns every pod."""
        return tuple(self._pods.values())

    def on_node(self, name: str) -> Iterable[PodInfo]:
        """Returns the pods of a node."""
        return tuple(self._by_node.get(name, {}).values())

    def using(self, namespace: str, claim: str) -> Iterable[PodInfo]:
        """Returns the pods that use a claim."""
        return tuple(self._by_claim.get((namespace, claim), {}).values())

    def _changed(self, change: Change) -> None:
        try:
            new = pod_info(change.new.data) if change.new is not None else None
        except msgspec.DecodeError as error:
            _log.warning("decoding pod %s failed: %s; controllers ignore it", change.newest.key, error)
            return
        old = self._pods.pop(change.newest.uid, None)
        if old is not None:
            self._remove(old)
        if new is not None:
            self._add(new)
        for handler in tuple(self._subscribers):
            try:
                handler(old, new)
            except Exception:  # noqa: BLE001 - the other subscribers get the change
                _log.exception("%s failed for pod %s", handler, change.newest.key)

    def _add(self, pod: PodInfo) -> None:
        self._pods[pod.uid] = pod
        if pod.node:
            self._by_node.setdefault(pod.node, {})[pod.uid] = pod
        for claim in pod.claims:
            self._by_claim.setdefault((pod.namespace, claim), {})[pod.uid] = pod

    def _remove(self, pod: PodInfo) -> None:
        _remove(self._by_node, pod.node, pod.uid)
        for claim in pod.claims:
            _remove(self._by_claim, (pod.namespace, claim), pod.uid)


def _remove(index: dict[K, dict[str, PodInfo]], key: K, uid: str) -> None:
    found = index.get(key, {})
    found.pop(uid, None)
    if not found:
        index.pop(key, None)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The client, cache, event recorder and pod index of all controllers.

    A controller declares its collections of the cache when it is made: each kind is listed once before any controller runs.
    """

    client: Client
    cache: Cache
    recorder: Recorder
    pods: PodIndex

    @property
    def clock(self) -> Clock:
        """The clock of all delays."""
        return self.client.clock

    @property
    def rng(self) -> random.Random:
        """The source of jitter."""
        return self.client.rng


class Runnable(Protocol):
    """A part of the controller manager. It may be run again after it has failed."""

    async def run(self) -> None:
        """Runs until it is cancelled."""
        ...
