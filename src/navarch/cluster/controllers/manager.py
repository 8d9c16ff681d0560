"""`ControllerManager`: runs every built-in controller and the scheduler on one cache."""

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
from navarch.cluster.controllers.accounts import (
    Sign,
    declare_csr_signing,
    declare_namespace_defaults,
    declare_role_aggregation,
)
from navarch.cluster.controllers.controller_context import ControllerContext, PodIndex, Runnable
from navarch.cluster.controllers.garbage_collection.collector import GarbageCollector
from navarch.cluster.controllers.garbage_collection.metadata_informers import MetadataInformers
from navarch.cluster.controllers.garbage_collection.namespace_deletion import NamespaceDeletion
from navarch.cluster.controllers.node_health.node_lifecycle import HealthOptions, NodeMonitor, declare_node_lifecycle
from navarch.cluster.controllers.node_health.pod_garbage_collector import PodGarbageCollector
from navarch.cluster.controllers.node_health.taint_eviction import TaintEviction
from navarch.cluster.controllers.policy.disruption import declare_disruption
from navarch.cluster.controllers.policy.policy_status import declare_policy_status
from navarch.cluster.controllers.policy.resource_quota import QuotaUsage
from navarch.cluster.controllers.scheduling.scheduler import Scheduler
from navarch.cluster.controllers.services.endpoint_mirroring import declare_endpoint_mirroring
from navarch.cluster.controllers.services.endpoints import declare_endpoints
from navarch.cluster.controllers.volumes.claim_binder import declare_claim_binder
from navarch.cluster.controllers.volumes.local_volumes import LocalVolumes, declare_volume_reclaimer, standard_class
from navarch.cluster.controllers.volumes.protection import VolumeProtection
from navarch.cluster.controllers.workloads.cronjobs import declare_cron_jobs
from navarch.cluster.controllers.workloads.daemonsets.controller import declare_daemon_sets
from navarch.cluster.controllers.workloads.deployments.controller import declare_deployments
from navarch.cluster.controllers.workloads.jobs.controller import declare_jobs
from navarch.cluster.controllers.workloads.replicasets import declare_replica_sets
from navarch.cluster.controllers.workloads.statefulsets.controller import declare_stateful_sets
from navarch.controller.events import Recorder
from navarch.errors import AlreadyExists
from navarch.operator import Operator, serve

_REPORTERS: Final = {
    **{
        name: f"{name}-controller"
        for name in ("cronjob", "daemonset", "deployment", "job", "replicaset", "statefulset")
    },
    "disruption": "controllermanager",
    "endpoints": "endpoint-controller",
    "endpointslice": "endpoint-slice-controller",
    "endpointslicemirroring": "endpoint-slice-mirroring-controller",
    "job-pods": "job-controller",
    "node-lifecycle": "node-controller",
    "persistentvolume": "persistentvolume-controller",
    "persistentvolume-binder": "persistentvolume-controller",
    "replicationcontroller": "replication-controller",
}
"""The reporting components of events, as in Kubernetes."""


def builtin_operator() -> Operator:
    """Returns one operator with the workload controllers, so that each kind is watched once."""
    operator = Operator("navarch-controllers", crds="ignore", election=False, check_permissions=False)
    operator.reporters.update(_REPORTERS)
    declare_cron_jobs(operator)
    declare_daemon_sets(operator)
    declare_deployments(operator)
    declare_jobs(operator)
    declare_replica_sets(operator)
    declare_stateful_sets(operator)
    return operator


_NAME: Final = "navarch-controllers"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerManagerOptions:
    """Options of a cluster's controllers.

    `root_certificate` (PEM) is published in every namespace. `volumes` provisions claims; None disables it. `scheduler` schedules
    pods. `health` has the time limits of nodes.
    """

    root_certificate: str = ""
    volumes: LocalVolumes | None = None
    scheduler: bool = True
    sign: Sign | None = None
    """Signs certificates of clients; None disables the signing controller."""
    health: HealthOptions = field(default_factory=HealthOptions)


class ControllerManager:
    """Runs the controllers and the scheduler; it accesses the cluster only through the client.

    Each runnable is a task of the `supervisor`. The controllers share one cache: if they fail, `run` raises, and the caller
    makes a new manager.
    """

    def __init__(
        self, client: Client, options: ControllerManagerOptions | None = None, supervisor: Supervisor | None = None
    ) -> None:
        self._client = client
        self._supervisor = supervisor or Supervisor(client.clock, client.rng)
        self._options = options or ControllerManagerOptions()
        self._cache = Cache(client, client.clock, client.rng)
        recorder = Recorder(client, _NAME, socket.gethostname(), client.clock, client.rng)
        self._context = ControllerContext(client, self._cache, recorder, PodIndex(self._cache))
        self._operator = self._declared()

    def _declared(self) -> Operator:
        operator = builtin_operator()
        declare_namespace_defaults(operator, self._options.root_certificate)
        declare_role_aggregation(operator)
        self._node_lifecycle = declare_node_lifecycle(operator, self._context.pods, self._options.health)
        declare_endpoints(operator)
        declare_endpoint_mirroring(operator)
        declare_disruption(operator)
        declare_policy_status(operator)
        if self._options.sign is not None:
            declare_csr_signing(operator, self._options.sign)
        if self._options.volumes is not None:
            declare_claim_binder(operator, self._options.volumes)
            declare_volume_reclaimer(operator, self._options.volumes)
        return operator

    async def run(self) -> None:
        """Runs the controllers until it is cancelled."""
        await self._prepare()
        parts = dict(self._parts())
        async with asyncio.TaskGroup() as group:
            group.create_task(serve(self._client, self._operator, cache=self._cache), name="controllers")
            group.create_task(self._supervisor.task("controllers/events", self._context.recorder.run).supervise())
            await self._cache.wait_synced()
            self._context.pods.open()
            try:
                async with asyncio.TaskGroup() as running:
                    for name, part in parts.items():
                        running.create_task(self._supervisor.task(name, part.run).supervise(), name=name)
            finally:
                self._context.pods.close()

    def fault(self) -> str | None:
        """Returns the first watch that fails, with its error; None if all work."""
        waiting = (f"watch of {each.name}: {each.error}" for each in self._cache.informers() if each.error)
        return next(waiting, None)

    async def _prepare(self) -> None:
        if self._options.volumes is not None:
            with contextlib.suppress(AlreadyExists):
                await self._client.create(standard_class())

    def _parts(self) -> Iterator[tuple[str, Runnable]]:
        """Yields the runnables by the names of Kubernetes' controllers."""
        context = self._context
        kinds = MetadataInformers(context)
        yield "garbage-collector", GarbageCollector(context, kinds)
        yield "resourcequota", QuotaUsage(context, kinds)
        yield "metadata-informers", kinds
        yield "namespace", NamespaceDeletion(context)
        yield "storage-protection", VolumeProtection(context)
        yield "taint-eviction", TaintEviction(context)
        yield "node-monitor", NodeMonitor(context, self._node_lifecycle, self._options.health)
        yield "pod-garbage-collector", PodGarbageCollector(context, self._options.health)
        if self._options.scheduler:
            yield "scheduler", Scheduler(context)
