"""What the pods of one node share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from navarch._base.backoff import Backoff
from navarch._base.clock import Clock
from navarch.client import Client
from navarch.cluster.nodes.images import Images
from navarch.cluster.nodes.runtime import Runtime
from navarch.controller import Recorder
from navarch.k8s.core.v1 import Pod, Service

__all__ = ["Delays", "Network", "Site"]


class Network(Protocol):
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
class Delays:
    """How long is waited before something is tried again, in seconds, as Kubernetes' nodes do.

    A container that ran for `forgotten_after` counts as one that never failed.
    """

    restart: Backoff = field(default_factory=lambda: Backoff(initial=10.0, maximum=300.0, jitter=0.0))
    pull: Backoff = field(default_factory=lambda: Backoff(initial=10.0, maximum=300.0, jitter=0.0))
    mount: Backoff = field(default_factory=lambda: Backoff(initial=0.5, maximum=15.0, jitter=0.0))
    forgotten_after: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One node, as its pods see it."""

    node: str
    address: str
    folder: Path
    allocatable: Mapping[str, str]
    client: Client
    clock: Clock
    runtime: Runtime
    images: Images
    network: Network
    recorder: Recorder
    delays: Delays
