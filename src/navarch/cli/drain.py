"""`Drain`: cordons a node and evicts its pods, as `kubectl drain --ignore-daemonsets` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from navarch._base.tasks import within
from navarch.client import ALL, Client, MergePatch, Preconditions
from navarch.errors import ConfigError, Conflict, NavarchError, NotFound, TooManyRequests
from navarch.k8s.core.v1 import Node, Pod

_MIRROR: Final = "kubernetes.io/config.mirror"
_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """Limits of a drain, in seconds: `timeout` of all of it, `pause` between evictions that a disruption budget refuses.

    `force` evicts pods that no controller recreates, `delete_data` pods with emptyDir volumes.
    """

    force: bool = False
    delete_data: bool = False
    grace_seconds: int | None = None
    timeout: float = 300.0
    pause: float = 5.0


@dataclass(frozen=True, slots=True)
class Drained:
    """The pods that were evicted and that stay, as `namespace/name`."""

    node: str
    evicted: tuple[str, ...]
    ignored: tuple[str, ...]


class Drain:
    """One drain of one node. `say` gets a line for each step."""

    def __init__(self, client: Client, node: str, options: DrainOptions, say: Callable[[str], None]) -> None:
        self._client = client
        self._node = node
        self._options = options
        self._say = say
        self._left: dict[str, str] = {}
        """The pods that are still on the node, with the reason."""

    async def run(self) -> Drained:
        """Cordons the node and returns when its pods are deleted; raises `ConfigError` if some may not be evicted, or not in time."""
        await self._client.patch(Node, self._node, MergePatch({"spec": {"unschedulable": True}}))
        self._say(f"node {self._node!r} is cordoned")
        pods = await self._client.list(Pod, namespace=ALL, fields={"spec.nodeName": self._node})
        ignored, leaving = _parted(pods)
        self._check(leaving)
        for pod in ignored:
            self._say(f"pod {_name(pod)} stays: it is a mirror pod or belongs to a DaemonSet")
        try:
            await within(self._client.clock, self._options.timeout, self._move(leaving))
        except TimeoutError:
            raise ConfigError(
                f"expected node {self._node!r} to be empty within {self._options.timeout:g} s, got pods that are left: "
                f"{self._reasons()}"
            ) from None
        return Drained(self._node, tuple(map(_name, leaving)), tuple(map(_name, ignored)))

    def _check(self, pods: Sequence[Pod]) -> None:
        """Raises `ConfigError` with all pods whose eviction would lose them or their data."""
        faults = []
        single = [_name(pod) for pod in pods if _owner(pod) == "" and not _has_ended(pod)]
        with_data = [_name(pod) for pod in pods if _has_data(pod) and not _has_ended(pod)]
        if single and not self._options.force:
            faults.append(f"no controller recreates these pods: {', '.join(single)} (--force evicts them)")
        if with_data and not self._options.delete_data:
            faults.append(
                f"emptyDir volumes would be lost: {', '.join(with_data)} (--delete-emptydir-data evicts them)"
            )
        if faults:
            raise ConfigError(f"node {self._node!r} is cordoned, but not drained: {'; '.join(faults)}")

    async def _move(self, pods: Iterable[Pod]) -> None:
        async with asyncio.TaskGroup() as group:
            for pod in pods:
                self._left[_name(pod)] = "it has not terminated yet"
                group.create_task(self._evict_or_note(pod))
        if self._left:
            raise ConfigError(f"node {self._node!r} was not drained: {self._reasons()}")

    async def _evict_or_note(self, pod: Pod) -> None:
        """Evicts the pod, and notes an error: it does not stop the other evictions."""
        try:
            await self._evict(pod)
        except NavarchError as error:
            self._left[_name(pod)] = str(error)

    async def _evict(self, pod: Pod) -> None:
        name = _name(pod)
        self._say(f"evicting pod {name}")
        while not await self._is_evicted(pod):
            await self._client.clock.sleep(self._options.pause)
        while await self._is_there(pod):
            await self._client.clock.sleep(_LOOK_SECONDS)
        del self._left[name]
        self._say(f"pod {name} is deleted")

    async def _is_evicted(self, pod: Pod) -> bool:
        """Returns whether the pod was evicted; False while its disruption budget allows no disruption."""
        name = _name(pod)
        grace, same = self._options.grace_seconds, Preconditions(uid=pod.metadata.uid)
        try:
            await self._client.evict(pod.name, namespace=pod.namespace, grace_seconds=grace, preconditions=same)
        except NotFound:
            return True
        except Conflict:  # another pod has its name, or its budget changed concurrently
            return not await self._is_there(pod)
        except TooManyRequests as error:
            if self._left[name] != error.message:
                self._say(f"pod {name} is not evicted yet: {error.message}")
            self._left[name] = error.message
            return False
        self._left[name] = "it has not terminated yet"
        return True

    async def _is_there(self, pod: Pod) -> bool:
        try:
            found = await self._client.get(Pod, pod.name, namespace=pod.namespace)
        except NotFound:
            return False
        return found.metadata.uid == pod.metadata.uid

    def _reasons(self) -> str:
        return "; ".join(f"{name}: {why}" for name, why in sorted(self._left.items()))


def _parted(pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Returns the pods that stay on the node, and the pods to evict."""
    ignored: list[Pod] = []
    leaving: list[Pod] = []
    for pod in pods:
        stays = (_owner(pod) == "DaemonSet" and not _has_ended(pod)) or _MIRROR in pod.annotations
        (ignored if stays else leaving).append(pod)
    return ignored, leaving


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _owner(pod: Pod) -> str:
    """Returns the kind of the pod's controller; empty if it has none."""
    return next((owner.kind for owner in pod.metadata.owner_references or [] if owner.controller), "")


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}


def _has_data(pod: Pod) -> bool:
    return any(volume.empty_dir is not None for volume in pod.spec.volumes or [])
