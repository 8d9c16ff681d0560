"""`PodSandbox`: the environment that the containers of one pod share, and `KubeletDeps`, which all pods of a node
share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from navarch._base.backoff import Backoff
from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.client import Client
from navarch.cluster.nodes.images import Images
from navarch.cluster.nodes.network.hosts_file import own_names
from navarch.cluster.nodes.runtime import Runtime
from navarch.cluster.nodes.volumes.atomic_writer import PodFolder
from navarch.cluster.nodes.volumes.projections import PodPlacement
from navarch.cluster.nodes.volumes.volumes import Volumes
from navarch.controller import Recorder
from navarch.controller.events import EventType
from navarch.k8s.core.v1 import Pod, Service


class PodNetwork(Protocol):
    """The network that pods join."""

    def join(self, pod: Pod, write_hosts: Callable[[bytes], None]) -> str:
        """Assigns an address to the pod, and writes its hosts file with the function."""
        ...

    def leave(self, uid: str) -> None:
        """Releases the pod's address."""
        ...

    async def services(self) -> list[Service]:
        """Returns all services, after the first sync."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletBackoffs:
    """The backoffs of retries in seconds, as Kubernetes' kubelet has them.

    A container that ran for `forgotten_after` seconds starts with a new backoff.
    """

    restart: Backoff = field(default_factory=lambda: Backoff(initial=10.0, maximum=300.0, jitter=0.0))
    pull: Backoff = field(default_factory=lambda: Backoff(initial=10.0, maximum=300.0, jitter=0.0))
    mount: Backoff = field(default_factory=lambda: Backoff(initial=0.5, maximum=15.0, jitter=0.0))
    forgotten_after: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletDeps:
    """The dependencies that all pods of one node share."""

    node: str
    address: str
    folder: Path
    allocatable: Mapping[str, str]
    client: Client
    clock: Clock
    runtime: Runtime
    images: Images
    network: PodNetwork
    recorder: Recorder
    delays: KubeletBackoffs


class GracePeriod:
    """The termination grace period of a pod, shared by its containers. It can be shortened, never extended."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._deadline = clock.monotonic() + seconds
        self._shortened = asyncio.Event()

    @property
    def left(self) -> float:
        """Returns the seconds that are left; 0 after the end."""
        return max(self._deadline - self._clock.monotonic(), 0.0)

    def shorten(self, seconds: float) -> None:
        """Shortens the period to so many seconds from now."""
        deadline = self._clock.monotonic() + seconds
        if deadline < self._deadline:
            self._deadline = deadline
            self._shortened.set()

    def at_least(self, seconds: float) -> GracePeriod:
        """Returns this period or, if less is left, one of so many seconds for one container."""
        return self if self.left >= seconds else GracePeriod(self._clock, seconds)

    async def passed(self) -> None:
        """Returns when the period is over."""
        while self.left > 0:
            self._shortened.clear()
            try:
                await within(self._clock, self.left, self._told())
            except TimeoutError:
                continue

    async def _told(self) -> None:
        await self._shortened.wait()


class PodSandbox:
    """The pod's object, folder, placement and volumes."""

    def __init__(self, deps: KubeletDeps, pod: Pod) -> None:
        self.deps = deps
        self.pod = pod
        self.folder = PodFolder(deps.folder, pod.metadata.uid)
        self.placement = PodPlacement(deps.address, "", deps.allocatable)
        self.volumes = Volumes(deps.client, self.placement, self.folder, deps.clock)

    @property
    def uid(self) -> str:
        """Returns the pod's uid."""
        return self.pod.metadata.uid

    @property
    def hostname(self) -> str:
        """Returns the hostname of the pod's containers."""
        return own_names(self.pod)[-1]

    def container_folder(self, container: str) -> str:
        """Returns the path of a container's logs and termination messages in the pod's folder."""
        return f"containers/{container}"

    def log(self, container: str, attempt: int) -> str:
        """Returns the path of the log of one start of a container in the pod's folder."""
        return f"{self.container_folder(container)}/{attempt}.log"

    def prepare(self) -> None:
        """Creates the pod's folder and assigns its address."""
        with self.folder.open(create=0o755) as root:
            root.rewrite("hostname", f"{self.hostname}\n".encode(), 0o644)
        if self.pod.spec.host_network:
            self.placement.address = self.deps.address
        else:
            self.placement.address = self.deps.network.join(self.pod, self._write_hosts)

    def _write_hosts(self, text: bytes) -> None:
        with self.folder.open() as root:
            root.rewrite("hosts", text, 0o644)

    def say(self, reason: str, note: str, kind: EventType = "Normal", *, container: str = "") -> None:
        """Records an event about the pod or one of its containers."""
        part = f"spec.{self._list_of(container)}{{{container}}}" if container else ""
        self.deps.recorder.record(self.pod, reason, note, type=kind, action=reason, part=part)

    def _list_of(self, container: str) -> str:
        spec = self.pod.spec
        lists = {"containers": spec.containers, "initContainers": spec.init_containers or []}
        found = (name for name, listed in lists.items() if any(each.name == container for each in listed))
        return next(found, "ephemeralContainers")
