"""`Kubelet`: runs the pods of one node through a container runtime, and answers for the node over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.supervisor import Supervisor
from navarch._base.tasks import unless
from navarch.api import to_builtins
from navarch.client import Client
from navarch.cluster.nodes.container_logs import log_pieces
from navarch.cluster.nodes.images import Images
from navarch.cluster.nodes.node_status import Heartbeat, Profile, machine_capacity, node_object, register
from navarch.cluster.nodes.pods.container import ContainerLoop
from navarch.cluster.nodes.pods.pod_worker import PodWorker
from navarch.cluster.nodes.pods.pod_workers import PodWorkers
from navarch.cluster.nodes.pods.sandbox import KubeletBackoffs, KubeletDeps, PodNetwork
from navarch.cluster.nodes.runtime import AttachedProcess, Runtime
from navarch.cluster.nodes.transport_gate import TransportGate
from navarch.cluster.streams import ContainerProcess, LogOptions, NodePage, ProcessOptions
from navarch.controller import Recorder
from navarch.controller.events import RecorderOptions
from navarch.errors import ContainerError, NavarchError
from navarch.k8s.core.v1 import Node
from navarch.observe.exposition import Metrics
from navarch.observe.families import MetricFamily, Sample

_TEXT: Final = "text/plain; charset=utf-8"
_RUNNING_PODS: Final = MetricFamily(
    "gauge", "kubelet_running_pods", "Number of pods that have a running pod sandbox", ()
)
_RUNNING_CONTAINERS: Final = MetricFamily(
    "gauge", "kubelet_running_containers", "Number of containers currently running", ("container_state",)
)
_NAME: Final = MetricFamily("gauge", "kubelet_node_name", "The node's name. The count is always 1.", ("node",))
_log = logging.getLogger("navarch.nodes")
_PAUSE = Backoff(initial=0.1, maximum=5.0)
_LIMITS = "navarch.dev/limits"
_LAST_WORDS_SECONDS = 0.5


def page(path: str, node: str, workers: Sequence[PodWorker]) -> NodePage:
    """Returns the answer of the node to a GET: health, pods or metrics, as far as Kubernetes' kubelet has the same."""
    found: Callable[[], NodePage] | None = {
        **dict.fromkeys(("/healthz", "/healthz/ping", "/healthz/syncloop"), lambda: NodePage(200, _TEXT, b"ok")),
        **dict.fromkeys(("/pods", "/pods/"), lambda: _pods(workers)),
        "/metrics": lambda: _metrics(node, workers),
    }.get(path)
    return NodePage(404, _TEXT, b"404 page not found\n") if found is None else found()


def _pods(workers: Sequence[PodWorker]) -> NodePage:
    items = [to_builtins(worker.sandbox.pod) for worker in workers]
    listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
    return NodePage(200, "application/json", msgspec.json.encode(listed))


def _metrics(node: str, workers: Sequence[PodWorker]) -> NodePage:
    shown = Metrics()
    shown.add(_KubeletMetrics(node, workers))
    body, content_type = shown.exposition()
    return NodePage(200, content_type, body)


class _KubeletMetrics:
    """See `Part`."""

    def __init__(self, node: str, workers: Sequence[PodWorker]) -> None:
        self._node = node
        self._workers = workers

    def samples(self) -> Iterator[Sample]:
        """Returns the numbers of running pods and containers."""
        running = [sum(1 for _ in worker.running()) for worker in self._workers]
        yield Sample(_NAME, (self._node,), 1)
        yield Sample(_RUNNING_PODS, (), sum(1 for count in running if count))
        yield Sample(_RUNNING_CONTAINERS, ("running",), sum(running))


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletOptions:
    """Options of a kubelet: the profile of its node beside the name, and the backoffs of its retries."""

    profile: Profile | None = None
    delays: KubeletBackoffs = field(default_factory=KubeletBackoffs)


class Kubelet:
    """Registers its node, runs the pods that are bound to it and reports their status while `run` runs.

    Logs and volumes are in `folder`. When the kubelet ends, its containers end; the pods stay in the cluster. When it
    runs again it continues with them, by their restart policy and with their volumes.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        runtime: Runtime,
        network: PodNetwork,
        folder: Path,
        *,
        images: Images | None = None,
        options: KubeletOptions | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.name = name
        self._gate = TransportGate()
        self._client = client.using(manager="kubelet").through(self._gate.around)
        self._clock = client.clock
        self._supervisor = supervisor or Supervisor(client.clock, client.rng)
        self._runtime = runtime
        self._network = network
        self._folder = folder
        self._images = images or Images()
        self._options = options or KubeletOptions()
        self._pods: PodWorkers | None = None
        self.ready = asyncio.Event()
        """Set when the node has joined the cluster."""

    async def run(self) -> None:
        """Runs until it is cancelled, or until its runtime has died."""
        self._gate.set("open")
        async with self._runtime as runtime:
            for limit in runtime.limits:
                _log.warning("node %s is limited: %s", self.name, limit)
            try:
                await unless(runtime.lost(), self._work(runtime))
            finally:
                self._pods = None
                self.ready.clear()
        _log.info("node %s has stopped", self.name)

    async def _work(self, runtime: Runtime) -> None:
        profile = self._profile(runtime)
        known = await self._registered(profile)
        kept = RecorderOptions(stop_seconds=_LAST_WORDS_SECONDS)
        recorder = Recorder(self._client, "kubelet", self.name, self._clock, self._client.rng, options=kept)
        pods = self._pods = PodWorkers(self._deps(runtime, profile, recorder))
        async with asyncio.TaskGroup() as group:
            heartbeat = Heartbeat(self._client, known, self._clock)
            for name, run in (("heartbeat", heartbeat.run), ("events", recorder.run)):
                group.create_task(self._supervisor.task(f"{self.name}/{name}", run).supervise(), name=name)
            group.create_task(pods.run(), name="pods")
            self.ready.set()

    def _profile(self, runtime: Runtime) -> Profile:
        profile = self._options.profile or Profile(name=self.name)
        limits = {_LIMITS: "; ".join(runtime.limits)} if runtime.limits else {}
        images = tuple(image.identity for image in self._images)
        return replace(profile, name=self.name, annotations={**profile.annotations, **limits}, images=images)

    async def _registered(self, profile: Profile) -> Node:
        """Registers the node; retries with backoff while the API server does not answer."""
        delays = BackoffDelays(_PAUSE, self._client.rng)
        while True:
            try:
                return await register(self._client, node_object(profile, self._clock.now()))
            except NavarchError as error:
                _log.warning("registering node %s failed: %s; retrying", self.name, error)
                await self._clock.sleep(delays.next_delay())

    def _deps(self, runtime: Runtime, profile: Profile, recorder: Recorder) -> KubeletDeps:
        return KubeletDeps(
            node=self.name,
            address=profile.address,
            folder=self._folder,
            allocatable=machine_capacity() | dict(profile.capacity),
            client=self._client,
            clock=self._clock,
            runtime=runtime,
            images=self._images,
            network=self._network,
            recorder=recorder,
            delays=self._options.delays,
        )

    # Faults

    async def cut_off(self, *, cut: bool = True) -> None:
        """Cuts the node off from the API server, while its pods keep running; or reconnects it."""
        self._gate.set("cut" if cut else "open")

    async def freeze(self, *, frozen: bool = True) -> None:
        """Stops every process of the node, or continues them."""
        self._gate.set("frozen" if frozen else "open")
        await self._runtime.freeze(frozen=frozen)

    async def kill(self) -> None:
        """Kills the node as a power cut does: `run` ends, without a request to the API server."""
        self._gate.set("cut")
        await self._runtime.kill()

    # Streams

    @property
    def is_reachable(self) -> bool:
        """Returns whether the node answers requests."""
        return self._pods is not None and self._gate.state == "open"

    def is_running(self, pod_uid: str, container: str = "") -> bool:
        """See `PodStreams`."""
        worker = self._pods.worker(pod_uid) if self._pods is not None else None
        if worker is None or not container:
            return worker is not None
        loop = worker.loop(container)
        return loop is not None and loop.container_id is not None

    async def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """See `PodStreams`."""
        worker = self._worker(pod_uid)
        async for piece in log_pieces(worker, container, options, self._clock):
            yield piece

    async def exec(
        self, pod_uid: str, container: str, argv: tuple[str, ...], options: ProcessOptions
    ) -> ContainerProcess:
        """See `PodStreams`."""
        return await self._runtime.exec(self._running(pod_uid, container), argv, options)

    async def attach(self, pod_uid: str, container: str, options: ProcessOptions) -> ContainerProcess:
        """See `PodStreams`."""
        process = await self._runtime.attach(self._running(pod_uid, container), options)
        spec = self._loop(pod_uid, container).record.spec
        return process if spec.stdin_once and not spec.tty else AttachedProcess(process)

    async def forward(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """See `PodStreams`."""
        address = self._worker(pod_uid).sandbox.placement.address
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            said = f"failed to connect to {address}:{port}: dial tcp4 {address}:{port}: connect: {why}"
            raise ContainerError(said) from error

    @property
    def address(self) -> str:
        """Returns the node's address."""
        return (self._options.profile or Profile(name=self.name)).address

    def pod_address(self, pod_uid: str) -> str:
        """Returns the pod's address; empty if the pod is not on this node."""
        worker = self._pods.worker(pod_uid) if self._pods is not None else None
        return worker.sandbox.placement.address if worker is not None else ""

    def page(self, path: str) -> NodePage:
        """Returns the node's answer to a GET of that path."""
        return page(path, self.name, self._pods.workers() if self._pods is not None else ())

    def _worker(self, pod_uid: str) -> PodWorker:
        worker = self._pods.worker(pod_uid) if self._pods is not None else None
        if worker is None:
            raise ContainerError(f'pod "{pod_uid}" not found')
        return worker

    def _running(self, pod_uid: str, container: str) -> str:
        identity = self._loop(pod_uid, container).container_id
        if identity is None:
            raise ContainerError(f'container not found ("{container}")')
        return identity

    def _loop(self, pod_uid: str, container: str) -> ContainerLoop:
        loop = self._worker(pod_uid).loop(container)
        if loop is None:
            raise ContainerError(f'container not found ("{container}")')
        return loop
