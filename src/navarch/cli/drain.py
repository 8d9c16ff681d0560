"""Emptying a node as `kubectl drain --ignore-daemonsets` does: it takes no more pods, and those that it has move on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from navarch._base.tasks import within
from navarch.client import ALL, Client, MergePatch, Preconditions
from navarch.errors import ConfigError, Conflict, NavarchError, NotFound, TooManyRequests
from navarch.k8s.core.v1 import Node, Pod

__all__ = ["Drain", "DrainOptions", "Drained"]

_MIRROR: Final = "kubernetes.io/config.mirror"
_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """What may be lost, and how long is waited, in seconds: `timeout` for everything, `pause` for a budget to have room.

    `force` evicts pods that no controller would make again, `delete_data` those with emptyDir volumes.
    """

    force: bool = False
    delete_data: bool = False
    grace_seconds: int | None = None
    timeout: float = 300.0
    pause: float = 5.0


@dataclass(frozen=True, slots=True)
class Drained:
    """What became of the pods of the node, as `namespace/name`."""

    node: str
    evicted: tuple[str, ...]
    ignored: tuple[str, ...]


class Drain:
    """One drain of one node. `say` is told each step."""

    def __init__(self, client: Client, node: str, options: DrainOptions, say: Callable[[str], None]) -> None:
        self._client = client
        self._node = node
        self._options = options
        self._say = say
        self._left: dict[str, str] = {}
        """Why pods are still there."""

    async def run(self) -> Drained:
        """Returns when the pods are gone; raises `ConfigError` if some may not go, or have not gone in time."""
        await self._client.patch(Node, self._node, MergePatch({"spec": {"unschedulable": True}}))
        self._say(f"node {self._node!r} takes no more pods")
        pods = await self._client.list(Pod, namespace=ALL, fields={"spec.nodeName": self._node})
        ignored, leaving = _parted(pods)
        self._check(leaving)
        for pod in ignored:
            self._say(f"pod {_name(pod)} stays: it belongs to the node, or to a DaemonSet")
        try:
            await within(self._client.clock, self._options.timeout, self._move(leaving))
        except TimeoutError:
            raise ConfigError(
                f"expected node {self._node!r} to be empty within {self._options.timeout:g} s, got left over: "
                f"{self._reasons()}"
            ) from None
        return Drained(self._node, tuple(map(_name, leaving)), tuple(map(_name, ignored)))

    def _check(self, pods: Sequence[Pod]) -> None:
        """Says at once of all pods what would be lost with them."""
        faults = []
        single = [_name(pod) for pod in pods if _owner(pod) == "" and not _has_ended(pod)]
        with_data = [_name(pod) for pod in pods if _has_data(pod) and not _has_ended(pod)]
        if single and not self._options.force:
            faults.append(f"nothing would make these pods again: {', '.join(single)} (--force evicts them)")
        if with_data and not self._options.delete_data:
            faults.append(f"emptyDir volumes would be lost: {', '.join(with_data)} (--delete-emptydir-data does so)")
        if faults:
            raise ConfigError(f"node {self._node!r} takes no more pods, but keeps its own: {'; '.join(faults)}")

    async def _move(self, pods: Iterable[Pod]) -> None:
        async with asyncio.TaskGroup() as group:
            for pod in pods:
                self._left[_name(pod)] = "it has not ended yet"
                group.create_task(self._tried(pod))
        if self._left:
            raise ConfigError(f"node {self._node!r} could not be emptied: {self._reasons()}")

    async def _tried(self, pod: Pod) -> None:
        """A pod that cannot be evicted does not hold up the others."""
        try:
            await self._evict(pod)
        except NavarchError as error:
            self._left[_name(pod)] = str(error)

    async def _evict(self, pod: Pod) -> None:
        name = _name(pod)
        self._say(f"pod {name} is asked to go")
        while not await self._is_told(pod):
            await self._client.clock.sleep(self._options.pause)
        while await self._is_there(pod):
            await self._client.clock.sleep(_LOOK_SECONDS)
        del self._left[name]
        self._say(f"pod {name} is gone")

    async def _is_told(self, pod: Pod) -> bool:
        """Whether it was evicted; a budget that has no room now may have some later."""
        name = _name(pod)
        grace, same = self._options.grace_seconds, Preconditions(uid=pod.metadata.uid)
        try:
            await self._client.evict(pod.name, namespace=pod.namespace, grace_seconds=grace, preconditions=same)
        except NotFound:
            return True
        except Conflict:  # another one has its name, or its budget was written in the same moment
            return not await self._is_there(pod)
        except TooManyRequests as error:
            if self._left[name] != error.message:
                self._say(f"pod {name} has to wait: {error.message}")
            self._left[name] = error.message
            return False
        self._left[name] = "it has not ended yet"
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
    """Those that stay on their node whatever is said, and those that leave."""
    ignored: list[Pod] = []
    leaving: list[Pod] = []
    for pod in pods:
        stays = (_owner(pod) == "DaemonSet" and not _has_ended(pod)) or _MIRROR in pod.annotations
        (ignored if stays else leaving).append(pod)
    return ignored, leaving


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _owner(pod: Pod) -> str:
    """The kind of the controller that would make it again."""
    return next((owner.kind for owner in pod.metadata.owner_references or [] if owner.controller), "")


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}


def _has_data(pod: Pod) -> bool:
    return any(volume.empty_dir is not None for volume in pod.spec.volumes or [])
