"""A world in which nothing takes time: pods, claims and an etcd that are data, and an operator that can be killed."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import keeps_data
from etcd_operator.observation import quorum
from etcd_operator.reconcile import Reconciler
from etcd_operator.tls import CredentialCache, EtcdCredentials
from model_etcd import Asked, ModelEtcd, StartError
from model_keeper import ModelKeeper
from navarch import Context
from navarch.api import apply_merge_patch, from_builtins, set_controller, to_builtins
from navarch.errors import AlreadyExists, Conflict, NotFound
from navarch.k8s.core.v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Node,
    PersistentVolumeClaim,
    Pod,
    PodCondition,
    Secret,
    Service,
)
from navarch.k8s.policy.v1 import PodDisruptionBudget

START = datetime(2030, 1, 1, tzinfo=UTC)
LIMIT = 400.0
TICK = 0.25
GRACE = 0.5
FORSAKEN = 10.0


class Killed(BaseException):
    """The operator's process ends, right after a write."""


@dataclass
class World:
    """Kubernetes and etcd, as far as one cluster of etcd is concerned."""

    cluster: EtcdCluster
    elapsed: float = 0.0
    pods: dict[str, Pod] = field(default_factory=dict)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)
    keyring: CredentialCache = field(default_factory=CredentialCache)
    images: set[str] = field(default_factory=lambda: {"3.5.1", "3.5.2"})
    gone: dict[str, float] = field(default_factory=dict)
    """Nodes that are no more, and since when. Each pod has one of its own."""
    address: str = "10.0.0.1"
    """Of every pod."""
    writes: list[str] = field(default_factory=list)
    dies_after: int = 0
    slowness: float = 0.0
    """How long Kubernetes takes for what is brought about at each look."""
    skew: float = 0.0
    """How far the operator's clock is ahead of the others."""
    stale: dict[Any, dict[str, Any]] | None = None
    """What the operator knows of pods and claims, beside its own writes, while nobody tells it of changes."""
    on_write: Callable[[World, int], None] | None = None
    etcd: ModelEtcd = field(init=False)
    keeper: ModelKeeper = field(init=False)
    _uid: int = 0
    _begun: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.etcd = ModelEtcd(now=self.seconds, wrote=self.wrote, goes=self.goes)
        self.keeper = ModelKeeper(self)
        self.etcd.size_asked_for = self.cluster.spec.size
        self.cluster.metadata.uid, self.cluster.metadata.generation = "cluster", 1
        self.cluster.metadata.namespace = "default"

    def seconds(self) -> float:
        return self.elapsed

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed)

    def wrote(self, what: str) -> None:
        """Each write is counted, and may be the last of this process."""
        self.writes.append(what)
        if self.on_write is not None:
            self.on_write(self, len(self.writes))
        if len(self.writes) == self.dies_after:
            raise Killed

    def uid(self) -> str:
        self._uid += 1
        return f"uid-{self._uid}"

    def ask(self, **fields: Any) -> None:
        """Somebody changes the spec."""
        for name, value in fields.items():
            setattr(self.cluster.spec, name, value)
        self.etcd.size_asked_for = self.cluster.spec.size
        self.etcd.asks_who = self.cluster.spec.auth is not None
        self.cluster.metadata.generation = (self.cluster.metadata.generation or 0) + 1
        if "version" in fields:
            self.keeper.asked_version = self.cluster.metadata.generation

    def put(self, new: Pod | PersistentVolumeClaim) -> None:
        """Somebody else than the operator makes something."""
        new.metadata.uid, new.metadata.creation_timestamp = self.uid(), self.now()
        set_controller(new, self.cluster)
        self._begun[new.name] = self.elapsed
        if isinstance(new, Pod):
            new.spec.node_name = f"node-of-{new.metadata.uid}"
            self.pods[new.name] = new
        else:
            self.claims[new.name] = new

    # Kubernetes

    def lose_pod(self, name: str) -> None:
        """Somebody deletes a pod; its etcd serves until it has ended."""
        pod = self.pods[name]
        if pod.metadata.deletion_timestamp is None:
            pod.metadata.deletion_timestamp = self.now()
            self._begun[name] = self.elapsed

    def lose_claim(self, name: str) -> None:
        """Somebody deletes a claim; its volume is there as long as the pod is."""
        self.claims[name].metadata.deletion_timestamp = self.now()

    def lose_sight(self) -> None:
        """The operator is told of no change any more, until `stale` is None again."""
        self.stale = {Pod: copy.deepcopy(self.pods), PersistentVolumeClaim: copy.deepcopy(self.claims)}

    def lose_disk(self, name: str) -> None:
        """The claim is gone, and whatever was on it."""
        self.etcd.disks.pop(self.claims.pop(name).metadata.uid or "", None)

    def wipe_and_crash(self, name: str) -> None:
        """What is on the disk is gone, and the container starts again."""
        self.etcd.disks.pop(self._disk(self.pods[name]), None)
        self.etcd.stop(name)

    def lose_node(self, name: str) -> None:
        """A pod's node is gone, with whatever was on it; nobody says so of the pod."""
        self.gone[self.pods[name].spec.node_name or ""] = self.elapsed
        self.etcd.disks.pop(self._disk(self.pods[name]), None)
        self.etcd.stop(name)

    def goes(self, name: str) -> bool:
        """Whether a pod is ending, and takes its data with it."""
        ending = name in self.pods and self.pods[name].metadata.deletion_timestamp is not None
        claim = self.claims.get(name)
        return ending and (claim is None or claim.metadata.deletion_timestamp is not None)

    @property
    def staying(self) -> list[str]:
        """Voters that run, and whose pods are not ending."""
        ending = {name for name, pod in self.pods.items() if pod.metadata.deletion_timestamp is not None}
        voters = {member.id for member in self.etcd.voters}
        running = self.etcd.processes.items()
        return [name for name, each in running if each.member in voters and not each.hangs and name not in ending]

    def _disk(self, pod: Pod) -> str:
        if keeps_data(self.cluster):
            return self.claims[pod.name].metadata.uid or "" if pod.name in self.claims else ""
        return pod.metadata.uid or ""

    def tick(self) -> None:
        """A moment passes: nodes and volumes do their part."""
        self.elapsed += TICK
        self.etcd.write()
        self.keeper.tick()
        for name, pod in list(self.pods.items()):
            if pod.spec.node_name in self.gone:
                self._forsake(name, pod)
            elif pod.metadata.deletion_timestamp is not None:
                self._end(name, pod)
            elif name not in self.etcd.processes and self.elapsed - self._begun[name] >= 0.5:
                self._start(name, pod)
        for name, claim in list(self.claims.items()):
            if claim.metadata.deletion_timestamp is not None and name not in self.pods:
                self.lose_disk(name)
        for name, pod in self.pods.items():
            if pod.spec.node_name not in self.gone:
                self._ready(name, pod)

    def _forsake(self, name: str, pod: Pod) -> None:
        """Kubernetes lets the pods of a node go that is gone for long."""
        if self.elapsed - self.gone[pod.spec.node_name or ""] >= FORSAKEN:
            del self.pods[name]

    def _end(self, name: str, pod: Pod) -> None:
        ends = self._begun[name] + (GRACE if name in self.etcd.processes else 0.0)
        if self.elapsed >= ends:
            self.etcd.stop(name)
            del self.pods[name]
            if not keeps_data(self.cluster):
                self.etcd.disks.pop(pod.metadata.uid or "", None)

    def _start(self, name: str, pod: Pod) -> None:
        self._begun[name] = self.elapsed
        if pod.annotations["etcd.version"] not in self.images:
            self._state(
                pod, ContainerState(waiting=ContainerStateWaiting(reason="ImagePullBackOff", message="not found"))
            )
            return
        if keeps_data(self.cluster) and name not in self.claims:
            return
        self.keeper.check_start(pod.annotations["etcd.version"])
        pod.status.pod_ip = self.address
        try:
            self.etcd.start(pod, self._disk(pod))
            self._state(pod, ContainerState(running=ContainerStateRunning()))
        except StartError as error:
            end = ContainerStateTerminated(exit_code=1, message=str(error))
            self._state(pod, ContainerState(terminated=end), failed=True)

    def _state(self, pod: Pod, state: ContainerState, *, failed: bool = False) -> None:
        restarts = sum(old.restart_count for old in pod.status.container_statuses or []) + failed
        status = ContainerStatus(image="", image_id="", name="etcd", ready=False, restart_count=restarts, state=state)
        pod.status.container_statuses = [status]

    def _ready(self, name: str, pod: Pod) -> None:
        process = self.etcd.processes.get(name)
        member = self.etcd.members.get(process.member) if process else None
        holds = bool(self.etcd.led_by and member is not None and not member.learner)
        was = [condition.status == "True" for condition in pod.status.conditions or []]
        if was != [holds]:
            pod.status.conditions = [
                PodCondition(type="Ready", status="True" if holds else "False", last_transition_time=self.now())
            ]

    # The operator

    async def live(self) -> None:
        """Runs the operator until nothing is left to do; one that is killed is started again."""
        end = self.elapsed + LIMIT
        while self.elapsed < end:
            after = await self.look_once()
            if self._is_done(after):
                return
            self.wait(after)
        status = self.cluster.status
        raise AssertionError(f"expected nothing to be left to do, got: {status.next_step}; writes: {self.writes[-12:]}")

    async def look_once(self) -> float:
        """One look of the operator, and how long until the next; if it is killed, another one looks soon."""
        try:
            return await self._round()
        except Killed:
            self.dies_after, self.keyring = 0, CredentialCache()
            return TICK

    def wait(self, seconds: float) -> None:
        """Until the next look, but not for long: whatever changes makes the operator look."""
        for _ in range(max(int(min(seconds, 1.0) / TICK), 1)):
            self.tick()

    async def _round(self) -> float:
        seen = self.cluster.copy()
        result = await Reconciler(self._connect, self.keyring, self.keeper).reconcile(seen, cast("Context", Ctx(self)))
        if to_builtins(seen.status) != to_builtins(self.cluster.status):
            self.cluster.status = seen.status
            self.wrote(f"status: {seen.status.next_step}")
        return result.after or 0.0 if result else 30.0

    @asynccontextmanager
    async def _connect(
        self, cluster: EtcdCluster, urls: Mapping[str, str], keys: EtcdCredentials
    ) -> AsyncIterator[Asked]:
        known = self.stale[Pod] if self.stale is not None else self.pods
        same = (
            name for name in known if name in self.pods and known[name].metadata.uid == self.pods[name].metadata.uid
        )
        yield Asked(self.etcd, frozenset(same))

    def _is_done(self, after: float) -> bool:
        progressing = self.cluster.status.condition("Progressing")
        calm = after >= 10.0 and not any(pod.metadata.deletion_timestamp for pod in self.pods.values())
        calm = calm and not self.keeper.is_busy
        return calm and progressing is not None and progressing.status == "False"


class Live:
    """What is really there, whatever the operator was told."""

    def __init__(self, ctx: Ctx) -> None:
        self._ctx = ctx

    async def get(self, kind: Any, name: str, *, namespace: str) -> Any:
        found = self._ctx.really(kind).get(name)
        if found is None:
            raise NotFound(f"there is no {name} in {namespace}", code=404)
        return found

    async def list(self, kind: Any, *, namespace: str, labels: Mapping[str, str]) -> list[Any]:
        assert namespace
        return [each for each in self._ctx.really(kind).values() if labels.items() <= each.labels.items()]


class Ctx:
    """What the operator does in Kubernetes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.log = self
        self.client = Live(self)

    def info(self, *_: Any, **__: Any) -> None: ...

    def event(self, *_: Any, **__: Any) -> None: ...

    def now(self) -> datetime:
        return self._world.now() + timedelta(seconds=self._world.skew)

    def owned(self, kind: Any) -> list[Any]:
        return list(self._of(kind).values())

    async def list(self, kind: Any, *, labels: Mapping[str, str]) -> list[Any]:
        return [each for each in self._of(kind).values() if labels.items() <= each.labels.items()]

    def _of(self, kind: Any) -> dict[str, Any]:
        if self._world.stale is not None and kind is not Secret:
            return self._world.stale[kind]
        return self.really(kind)

    def really(self, kind: Any) -> dict[str, Any]:
        """Whatever the operator knows."""
        every: dict[Any, dict[str, Any]] = {Pod: self._world.pods, PersistentVolumeClaim: self._world.claims}
        return self._world.secrets if kind is Secret else every[kind]

    def _same(self, kind: Any, name: str) -> Any:
        """What is really there; raises `Conflict` if it is not what is known."""
        known, found = self._of(kind).get(name), self.really(kind).get(name)
        if known is not None and found is not None and known.metadata.uid != found.metadata.uid:
            raise Conflict(f"{name} is another one by now", code=409)
        return found

    async def get(self, kind: Any, name: str) -> Any:
        if kind is Node:
            return None if name in self._world.gone else Node(name=name)
        if kind in {Service, PodDisruptionBudget}:
            return None
        return self._of(kind).get(name)

    async def apply(self, desired: Any) -> Any:
        self._world.elapsed += self._world.slowness
        if isinstance(desired, Secret):
            self._world.secrets[desired.name] = desired
            self._world.wrote(f"apply Secret {desired.name}")
        return desired

    async def create(self, new: Any) -> Any:
        found = self.really(type(new))
        if new.name in found:
            raise AlreadyExists(f"{new.name} is there", code=409)
        new.metadata.uid, new.metadata.creation_timestamp = self._world.uid(), self._world.now()
        set_controller(new, self._world.cluster)
        found[new.name] = self._of(type(new))[new.name] = new
        if isinstance(new, Pod):
            new.spec.node_name = f"node-of-{new.metadata.uid}"
        self._world._begun[new.name] = self._world.elapsed
        self._world.wrote(f"create {type(new).__name__} {new.name}")
        return new

    async def patch(self, found: Any, changes: Mapping[str, Any]) -> Any:
        there = self._same(type(found), found.name)
        if there is None:
            raise NotFound(f"there is no {found.name}", code=404)
        patched = from_builtins(type(found), apply_merge_patch(dict(changes), to_builtins(there)))
        self._of(type(found))[found.name] = self.really(type(found))[found.name] = patched
        self._world.wrote(f"patch {type(found).__name__} {found.name}")
        return patched

    def _lose_pod(self, name: str) -> None:
        """One alone has nobody to stand in for it, and of two none can be done without, if there is to be no third."""
        world, needed = self._world, quorum(len(self._world.etcd.voters))
        had = len(world.staying) >= needed
        world.lose_pod(name)
        size, voters = world.cluster.spec.size, len(world.etcd.voters)
        few = voters == 1 or size == 0 or size <= voters == 2
        assert not had or few or len(world.staying) >= needed, f"the pod {name} was deleted, and with it the quorum"

    async def delete(self, kind: Any, name: str) -> bool:
        world, found = self._world, self._same(kind, name)
        if found is None:
            self._of(kind).pop(name, None)
            return False
        if kind is Pod:
            self._lose_pod(name)
        else:
            found.metadata.deletion_timestamp = world.now()
        self._of(kind)[name] = found
        world.wrote(f"delete {kind.__name__} {name}")
        return True
