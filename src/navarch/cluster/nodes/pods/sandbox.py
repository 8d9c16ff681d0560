"""One pod as its containers see it: its object as it is now, its folder, its placement, its volumes."""

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
    """What pods need of a network."""

    def join(self, pod: Pod, write_hosts: Callable[[bytes], None]) -> str:
        """An address for the pod, and names in its hosts file, which the function writes."""
        ...

    def leave(self, uid: str) -> None:
        """The pod is gone."""
        ...

    async def services(self) -> list[Service]:
        """All services, once they are known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletBackoffs:
    """How long is waited before something is tried again, in seconds, as Kubernetes' nodes do.

    A container that ran for `forgotten_after` counts as one that never failed.
    """

    restart: Backoff = field(default_factory=lambda: Backoff(initial=10.0, maximum=300.0, jitter=0.0))
    pull: Backoff = field(default_factory=lambda: Backoff(initial=10.0, maximum=300.0, jitter=0.0))
    mount: Backoff = field(default_factory=lambda: Backoff(initial=0.5, maximum=15.0, jitter=0.0))
    forgotten_after: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletDeps:
    """One node, as its pods see it."""

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
    """A time that is running out, for all containers of a pod alike. It can be made shorter, never longer."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._deadline = clock.monotonic() + seconds
        self._shortened = asyncio.Event()

    @property
    def left(self) -> float:
        """Seconds that are left; 0 when it is over."""
        return max(self._deadline - self._clock.monotonic(), 0.0)

    def shorten(self, seconds: float) -> None:
        """At most so many seconds from now."""
        deadline = self._clock.monotonic() + seconds
        if deadline < self._deadline:
            self._deadline = deadline
            self._shortened.set()

    def at_least(self, seconds: float) -> GracePeriod:
        """The same for one of them, but not less than so many seconds."""
        return self if self.left >= seconds else GracePeriod(self._clock, seconds)

    async def passed(self) -> None:
        """Returns when it is over."""
        while self.left > 0:
            self._shortened.clear()
            try:
                await within(self._clock, self.left, self._told())
            except TimeoutError:
                continue

    async def _told(self) -> None:
        await self._shortened.wait()


class PodSandbox:
    """What the containers of one pod share."""

    def __init__(self, deps: KubeletDeps, pod: Pod) -> None:
        self.deps = deps
        self.pod = pod
        self.folder = PodFolder(deps.folder, pod.metadata.uid)
        self.placement = PodPlacement(deps.address, "", deps.allocatable)
        self.volumes = Volumes(deps.client, self.placement, self.folder, deps.clock)

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def hostname(self) -> str:
        """What the pod's containers are called."""
        return own_names(self.pod)[-1]

    def container_folder(self, container: str) -> str:
        """Where the logs and the termination messages of a container are in the pod's folder."""
        return f"containers/{container}"

    def log(self, container: str, attempt: int) -> str:
        """Where the log of one start of a container is in the pod's folder."""
        return f"{self.container_folder(container)}/{attempt}.log"

    def prepare(self) -> None:
        """Makes the pod's folder and gives it an address."""
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
        """An event about the pod, or about one of its containers."""
        part = f"spec.{self._list_of(container)}{{{container}}}" if container else ""
        self.deps.recorder.record(self.pod, reason, note, type=kind, action=reason, part=part)

    def _list_of(self, container: str) -> str:
        spec = self.pod.spec
        lists = {"containers": spec.containers, "initContainers": spec.init_containers or []}
        found = (name for name, listed in lists.items() if any(each.name == container for each in listed))
        return next(found, "ephemeralContainers")
