"""`Scheduler`: takes pending pods from the queue, selects a node for each, and binds them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import msgspec

from navarch.api import Labels
from navarch.cache import Change, Collection
from navarch.client import StrategicPatch
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.pod_info import DEFAULT_SCHEDULER, PodInfo
from navarch.cluster.controllers.scheduling.binding import Binder, PodVolumes
from navarch.cluster.controllers.scheduling.node_info import node_info
from navarch.cluster.controllers.scheduling.node_selection import Chooser, Refused
from navarch.cluster.controllers.scheduling.preemption import Budgets, Eviction, make_room, no_room_message
from navarch.cluster.controllers.scheduling.scheduling_queue import WaitingPods
from navarch.cluster.controllers.scheduling.snapshot import SchedulerSnapshot
from navarch.errors import NavarchError
from navarch.k8s.core.v1 import Namespace, Node

_log = logging.getLogger("navarch.cluster.scheduler")
_AT_ONCE: Final = 64
_TURN_SECONDS: Final = 0.005


class Scheduler:
    """Schedules the pods with its name, one decision at a time; bindings are written concurrently.

    A pod counts on its node from the moment of the decision, before the server has heard of it.
    """

    def __init__(self, context: ControllerContext, name: str = DEFAULT_SCHEDULER) -> None:
        self.name = name
        self._clock = context.clock
        self._pods = context.pods
        self._nodes: Collection[Node] = context.cache.collection(Node)
        self._namespaces: Collection[Namespace] = context.cache.collection(Namespace)
        self._world = SchedulerSnapshot(self._namespaces_with)
        self._waiting = WaitingPods(context.clock)
        self._volumes = PodVolumes(context, self._world, self._waiting.something_changed)
        self._chooser = Chooser(self._world, context.rng, self._volumes.verdict)
        self._binder = Binder(context, name, self._volumes)
        self._budgets = Budgets(context)
        self._told: dict[str, str] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Schedules until it is cancelled."""
        self._slots = asyncio.Semaphore(_AT_ONCE)
        subscriptions: tuple[tuple[Collection[Any], Any], ...] = (
            (self._namespaces, self._namespace_changed),
            (self._nodes, self._node_changed),
        )
        for collection, subscriber in subscriptions:
            collection.subscribe(subscriber)
        self._pods.subscribe(self._pod_changed)
        self._volumes.subscribe()
        try:
            async with asyncio.TaskGroup() as group:
                await self._schedule(group)
        finally:
            self._volumes.unsubscribe()
            self._pods.unsubscribe(self._pod_changed)
            for collection, subscriber in subscriptions:
                collection.unsubscribe(subscriber)

    # What is seen

    def _namespaces_with(self, labels: Labels) -> frozenset[str]:
        return frozenset(entry.key.name for entry in self._namespaces.entries(labels=labels))

    def _namespace_changed(self, change: Change) -> None:
        if change.old is None or change.new is None or change.old.labels != change.new.labels:
            self._world.namespaces_changed()

    def _node_changed(self, change: Change) -> None:
        name = change.newest.key.name
        if change.new is None:
            self._world.remove_node(name)
            return
        try:
            info = node_info(change.new.data)
        except msgspec.DecodeError as error:
            _log.warning("decoding node %s failed: %s; no pod is scheduled to it", name, error)
            self._world.remove_node(name)
            return
        if self._world.set_node(info):
            self._waiting.node_changed()

    def _pod_changed(self, old: PodInfo | None, pod: PodInfo | None) -> None:
        if pod is None or pod.is_finished:
            gone = pod or old
            if gone is not None:
                self._gone(gone.uid)
        elif pod.node:
            self._placed(pod)
        elif pod.scheduler == self.name and pod.is_waiting:
            if self._world.pod(pod.uid) is None:
                self._waiting.put(pod)
        else:
            self._waits_no_more(pod.uid)

    def _waits_no_more(self, uid: str) -> None:
        self._waiting.drop(uid)
        self._world.unnominate(uid)
        self._told.pop(uid, None)

    def _gone(self, uid: str) -> None:
        self._waits_no_more(uid)
        if self._world.remove_pod(uid) is not None:
            self._waiting.something_changed()

    def _placed(self, pod: PodInfo) -> None:
        self._waits_no_more(pod.uid)
        known = self._world.pod(pod.uid)
        is_same = known is not None and (known.node, known.is_deleting) == (pod.node, pod.is_deleting)
        if known is not None and is_same and known.wishes == pod.wishes:
            return
        self._world.add_pod(pod)
        self._waiting.something_changed()

    # What is done

    async def _schedule(self, group: asyncio.TaskGroup) -> None:
        turned = self._clock.monotonic()
        while True:
            await self._slots.acquire()
            pod = await self._waiting.next()
            try:
                self._decide(group, pod)
            except Exception:  # noqa: BLE001 - one pod must not keep the others from their nodes
                _log.exception("scheduling pod %s failed", pod.key)
                self._waiting.put_aside(pod)
                self._slots.release()
            if self._clock.monotonic() - turned > _TURN_SECONDS:
                await self._clock.sleep(0)
                turned = self._clock.monotonic()

    def _decide(self, group: asyncio.TaskGroup, pod: PodInfo) -> None:
        """The slot goes to whoever carries the decision out."""
        chosen = self._chooser.choose(pod)
        if isinstance(chosen, str):
            self._world.add_pod(msgspec.structs.replace(pod, node=chosen))
            group.create_task(self._bind(pod, chosen), name=f"binding of {pod.key}")
            return
        eviction = make_room(self._world, self._chooser, pod, chosen, self._budgets.violated)
        self._waiting.put_aside(pod)
        if eviction is not None:
            self._world.nominate(pod, eviction.node)
        group.create_task(self._refuse(pod, chosen, eviction), name=f"refusal of {pod.key}")

    async def _bind(self, pod: PodInfo, node: str) -> None:
        try:
            fault = await self._binder.bind(pod, node)
        finally:
            self._slots.release()
        if fault:
            _log.info("binding pod %s to node %s failed: %s", pod.key, node, fault)
            known = self._pods.get(pod.uid)
            if known is not None and not known.node:  # otherwise it is gone, or somebody else was faster
                self._world.remove_pod(pod.uid)
                self._waiting.put_back(pod)

    async def _refuse(self, pod: PodInfo, refused: Refused, eviction: Eviction | None) -> None:
        """Says why, and lets those go who are in the way."""
        try:
            message = refused.message()
            if eviction is None:
                message = f"{message} {no_room_message(refused)}".rstrip()
            self._binder.tell(pod, "FailedScheduling", message, type="Warning")
            await self._note(pod, message, eviction)
            for victim in eviction.victims if eviction is not None else ():
                await self._binder.preempt(victim, pod)
        except NavarchError as error:
            _log.info("writing the PodScheduled condition of pod %s failed: %s", pod.key, error)
        finally:
            self._slots.release()

    async def _note(self, pod: PodInfo, message: str, eviction: Eviction | None) -> None:
        """In the pod's conditions, once for each message."""
        nominated = eviction.node if eviction is not None else ""
        said = f"{message}\n{nominated}"
        if self._told.get(pod.uid) == said:
            return
        self._told[pod.uid] = said
        await self._binder.patch_status(pod, _unschedulable(message, self._clock.now(), nominated))


def _unschedulable(message: str, now: Any, nominated: str) -> StrategicPatch:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": now.replace(microsecond=0),
    }
    status: dict[str, Any] = {"conditions": [condition]}
    return StrategicPatch({"status": {**status, **({"nominatedNodeName": nominated} if nominated else {})}})
