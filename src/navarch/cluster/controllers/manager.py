"""`ControllerManager`: every built-in controller, the scheduler, and what else kube-controller-manager does, on one cache."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from navarch._base.supervisor import Supervisor
from navarch.cache import Cache
from navarch.client import Client
from navarch.cluster.controllers.accounts import aggregation, defaults, signing
from navarch.cluster.controllers.builtin import builtin_operator
from navarch.cluster.controllers.health import nodes as health
from navarch.cluster.controllers.health.conditions import HealthOptions
from navarch.cluster.controllers.health.eviction import TaintEviction
from navarch.cluster.controllers.health.sweeping import PodSweeper
from navarch.cluster.controllers.ownership.collector import GarbageCollector
from navarch.cluster.controllers.ownership.kinds import EveryKind
from navarch.cluster.controllers.ownership.namespaces import NamespaceDeletion
from navarch.cluster.controllers.parts import Around, Part
from navarch.cluster.controllers.podbook import PodBook
from navarch.cluster.controllers.policy import disruption, expressions
from navarch.cluster.controllers.policy.quotas import QuotaUsage
from navarch.cluster.controllers.scheduling.scheduler import Scheduler
from navarch.cluster.controllers.services import endpoints, mirroring
from navarch.cluster.controllers.volumes import claims, reclaiming
from navarch.cluster.controllers.volumes.local import LocalVolumes, standard_class
from navarch.cluster.controllers.volumes.protection import StorageProtection
from navarch.controller.events import Recorder
from navarch.errors import AlreadyExists
from navarch.operator import Operator, serve

_NAME: Final = "navarch-controllers"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerManagerOptions:
    """What may differ between clusters: the certificate that pods know the API server by, in PEM; where volumes of claims
    are on the machine, and none are made if it is not said; whether pods are scheduled; and how long nodes may be silent.
    """

    root_certificate: str = ""
    volumes: LocalVolumes | None = None
    scheduler: bool = True
    sign: signing.Sign | None = None
    """What signs certificates of clients; nobody does if it is not said."""
    health: HealthOptions = field(default_factory=HealthOptions)


class ControllerManager:
    """What Kubernetes runs beside its API server. `run` it; it sees the cluster through the client alone.

    Each part is a task of the `supervisor`. The controllers share one cache: if they fail, `run` raises, and a new control
    plane is needed.
    """

    def __init__(
        self, client: Client, options: ControllerManagerOptions | None = None, supervisor: Supervisor | None = None
    ) -> None:
        self._client = client
        self._supervisor = supervisor or Supervisor(client.clock, client.rng)
        self._options = options or ControllerManagerOptions()
        self._cache = Cache(client, client.clock, client.rng)
        recorder = Recorder(client, _NAME, socket.gethostname(), client.clock, client.rng)
        self._around = Around(client, self._cache, recorder, PodBook(self._cache))
        self._operator = self._declared()

    def _declared(self) -> Operator:
        operator = builtin_operator()
        defaults.declare(operator, self._options.root_certificate)
        aggregation.declare(operator)
        self._node_lifecycle = health.declare(operator, self._around.pods, self._options.health)
        endpoints.declare(operator)
        mirroring.declare(operator)
        disruption.declare(operator)
        expressions.declare(operator)
        if self._options.sign is not None:
            signing.declare(operator, self._options.sign)
        if self._options.volumes is not None:
            claims.declare(operator, self._options.volumes)
            reclaiming.declare(operator, self._options.volumes)
        return operator

    async def run(self) -> None:
        """Works until it is cancelled."""
        await self._prepare()
        parts = dict(self._parts())
        async with asyncio.TaskGroup() as group:
            group.create_task(serve(self._client, self._operator, cache=self._cache), name="controllers")
            group.create_task(self._supervisor.task("controllers/events", self._around.recorder.run).supervise())
            await self._cache.wait_synced()
            self._around.pods.open()
            try:
                async with asyncio.TaskGroup() as running:
                    for name, part in parts.items():
                        running.create_task(self._supervisor.task(name, part.run).supervise(), name=name)
            finally:
                self._around.pods.close()

    def fault(self) -> str | None:
        """What the controllers cannot watch, and why."""
        waiting = (f"watch of {each.name}: {each.error}" for each in self._cache.informers() if each.error)
        return next(waiting, None)

    async def _prepare(self) -> None:
        if self._options.volumes is not None:
            with contextlib.suppress(AlreadyExists):
                await self._client.create(standard_class())

    def _parts(self) -> Iterator[tuple[str, Part]]:
        """By the names of Kubernetes' own controllers."""
        around = self._around
        kinds = EveryKind(around)
        yield "garbage-collector", GarbageCollector(around, kinds)
        yield "resourcequota", QuotaUsage(around, kinds)
        yield "metadata-informers", kinds
        yield "namespace", NamespaceDeletion(around)
        yield "storage-protection", StorageProtection(around)
        yield "taint-eviction", TaintEviction(around)
        yield "node-monitor", health.NodeMonitor(around, self._node_lifecycle, self._options.health)
        yield "pod-garbage-collector", PodSweeper(around, self._options.health)
        if self._options.scheduler:
            yield "scheduler", Scheduler(around)
