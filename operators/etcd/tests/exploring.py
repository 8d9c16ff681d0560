"""Clusters to which chance does one thing after the other, several at once, while the operator works and is killed.

`python exploring.py 1000 2000` explores the histories of these seeds, and prints those that go wrong.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from etcd_operator.kinds import (
    AuthPolicy,
    EtcdCluster,
    EtcdClusterSpec,
    EtcdSettings,
    Healing,
    IssuedTls,
    MemberStorage,
    TlsPolicy,
)
from etcd_operator.manifests import keeps_data
from etcd_operator.observation import quorum
from etcd_operator.observe import observe_pod
from model_world import World
from navarch.api import Quantity

ROUNDS = 250
LIMIT = 1500.0
LONGEST = 40.0


@dataclass
class Explorer:
    """One history, told by its seed. If it is `survivable`, enough members keep their data at any time."""

    seed: int
    survivable: bool = True
    happened: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    world: World = field(init=False)
    chance: random.Random = field(init=False)
    _until: dict[str, tuple[float, Callable[[], None]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.world = self._new_world()
        self.world.etcd.chance = self.chance
        self.world.on_write = self._wrote

    def _new_world(self) -> World:
        chance = self.chance
        healing = Healing(
            force_new_cluster=chance.random() < 0.5,
            restore_from_backup=chance.random() < 0.5,
            replace_lost_after_seconds=5,
            replace_after_seconds=chance.choice([10, 60]),
        )
        spec = EtcdClusterSpec(
            size=chance.choice([1, 2, 3, 3, 4, 5]),
            version="3.5.1",
            storage=MemberStorage(size=Quantity("1Gi")) if chance.random() < 0.8 else None,
            learners=chance.random() < 0.8,
            healing=healing,
        )
        world = World(EtcdCluster(name="example", spec=spec))
        world.keeper.newest = "etcd.db" if chance.random() < 0.8 else ""
        world.etcd.awaits_quorum = spec.learners and chance.random() < 0.5
        return world

    async def run(self) -> None:
        """Chance has its way for a while; then nothing more happens, and the cluster becomes what is asked for."""
        for _ in range(ROUNDS):
            if self.chance.random() < 0.12:
                self._something_happens()
            await self._look()
        self._calm_down()
        end = self.world.elapsed + LIMIT
        while self.world.elapsed < end and not self._is_settled:
            await self._look()
        assert self._is_settled, f"expected what is asked for, got: {self.world.cluster.status.next_step}"

    async def _look(self) -> None:
        self.looks += 1
        self.world.wait(await self.world.look_once())
        self._end_what_is_over()

    def _wrote(self, world: World, count: int) -> None:
        """The operator may be killed by any of its writes, and something may happen at the same moment."""
        if self.chance.random() < 0.03:
            self.happened["the operator is killed"] += 1
            world.dies_after = count
        if self.chance.random() < 0.03:
            self._something_happens()

    # What is asked for in the end

    @property
    def _is_settled(self) -> bool:
        world = self.world
        if not self.survivable and len(world.etcd.intact) < quorum(len(world.etcd.voters)):
            return self._is_said
        names = {member.name for member in world.etcd.members.values()}
        size, status = world.cluster.spec.size, world.cluster.status
        whole = len(world.etcd.voters) == len(names) == size == len(world.pods) == len(status.members.ready)
        secure = all(each.peer_url.startswith("https:") for each in world.etcd.members.values())
        tidy = (
            not world.keeper.is_busy
            and secure == (world.cluster.spec.tls is not None)
            and (not keeps_data(world.cluster) or set(world.claims) == names)
        )
        return whole and tidy and status.is_true("Available") and not status.is_true("Progressing")

    @property
    def _is_said(self) -> bool:
        """What is lost for good is said, and nothing is done that is not allowed. Nobody goes back twice by himself."""
        status, busy = self.world.cluster.status, self.world.keeper.is_busy
        return not status.is_true("Available") and (status.phase == "Failed" or busy)

    def _calm_down(self) -> None:
        world = self.world
        world.on_write = None
        for _, undo in self._until.values():
            undo()
        self._until.clear()
        paused = world.keeper.is_busy and world.keeper.phase != "Joining"
        world.ask(size=self.chance.choice([1, 3, 5]), paused=paused, version="3.5.2")

    def _end_what_is_over(self) -> None:
        for what, (until, undo) in list(self._until.items()):
            if self.world.elapsed >= until:
                undo()
                del self._until[what]

    # What happens

    def _something_happens(self) -> None:
        happening = self.chance.choice(
            [
                self._pod_is_deleted,
                self._pod_is_deleted,
                self._all_pods_are_deleted,
                self._data_is_lost,
                self._node_is_lost,
                self._claim_is_deleted,
                self._process_ends,
                self._process_hangs,
                self._disk_fails,
                self._operator_is_cut_off,
                self._operator_is_told_nothing,
                self._clock_is_wrong,
                self._size_is_changed,
                self._size_is_changed,
                self._pods_are_changed,
                self._version_is_changed,
                self._cluster_is_paused,
                self._tls_is_turned_on,
            ]
        )
        if happening():
            self.happened[happening.__name__.removeprefix("_").replace("_", " ")] += 1

    def _for_a_while(self, what: str, undo: Callable[[], None]) -> bool:
        self._until[what] = self.world.elapsed + self.chance.uniform(1, LONGEST), undo
        return True

    def _some_pod(self) -> str:
        return self.chance.choice(sorted(self.world.pods)) if self.world.pods else ""

    def _can_lose(self, *names: str) -> bool:
        """Whether enough voters have their data without these. Who has just started for the first time keeps it: that it
        has started is not written down yet.
        """
        if not all(names) or any(self._is_first(name) for name in names):
            return False
        if not self.survivable:
            return bool(names) and all(names)
        world = self.world
        doomed = {name for name, claim in world.claims.items() if claim.metadata.deletion_timestamp is not None}
        if not keeps_data(world.cluster):
            doomed = {name for name, pod in world.pods.items() if pod.metadata.deletion_timestamp is not None}
        left = [each for each in world.etcd.intact if each.name not in doomed | set(names) and each.started]
        return bool(names) and all(names) and len(left) >= max(quorum(len(world.etcd.voters)), 1)

    def _is_first(self, name: str) -> bool:
        return name in self.world.pods and observe_pod(self.world.pods[name]).first

    def _pod_is_deleted(self) -> bool:
        name = self._some_pod()
        if not name or (not keeps_data(self.world.cluster) and not self._can_lose(name)):
            return False
        if (
            name in self.world.claims
            and self.world.claims[name].metadata.deletion_timestamp
            and not self._can_lose(name)
        ):
            return False
        self.world.lose_pod(name)
        return True

    def _all_pods_are_deleted(self) -> bool:
        doomed = any(claim.metadata.deletion_timestamp for claim in self.world.claims.values())
        inside = not keeps_data(self.world.cluster)
        if (self.survivable and (doomed or inside)) or (inside and any(map(self._is_first, self.world.pods))):
            return False
        for name in self.world.pods:
            self.world.lose_pod(name)
        return True

    def _data_is_lost(self) -> bool:
        name = self._some_pod()
        if not self._can_lose(name) or name not in self.world.etcd.processes:
            return False
        self.world.wipe_and_crash(name)
        return True

    def _node_is_lost(self) -> bool:
        name = self._some_pod()
        if not self._can_lose(name):
            return False
        self.world.lose_node(name)
        return self._for_a_while(f"node of {name}", self.world.gone.clear)

    def _claim_is_deleted(self) -> bool:
        names = [name for name in sorted(self.world.claims) if name in self.world.pods]
        name = self.chance.choice(names) if names else ""
        if not self._can_lose(name):
            return False
        self.world.lose_claim(name)
        return True

    def _process_ends(self) -> bool:
        name = self._some_pod()
        self.world.etcd.stop(name)
        return bool(name)

    def _process_hangs(self) -> bool:
        process = self.world.etcd.processes.get(self._some_pod())
        if process is None:
            return False
        process.hangs = True
        self.world.etcd.elect()
        name = next(name for name, each in self.world.etcd.processes.items() if each is process)
        return self._for_a_while(f"{name} hangs", lambda: self._killed(name))

    def _killed(self, name: str) -> None:
        """By its liveness probe."""
        if name in self.world.etcd.processes and self.world.etcd.processes[name].hangs:
            self.world.etcd.stop(name)

    def _disk_fails(self) -> bool:
        name = self._some_pod()
        if name in self.world.claims:
            self.world.etcd.failing[self.world.claims[name].metadata.uid or ""] = self.chance.randint(1, 2)
            self.world.etcd.stop(name)
        return name in self.world.claims

    def _operator_is_cut_off(self) -> bool:
        self.world.etcd.reachable = False
        return self._for_a_while("cut off", lambda: setattr(self.world.etcd, "reachable", True))

    def _operator_is_told_nothing(self) -> bool:
        self.world.lose_sight()
        return self._for_a_while("told nothing", lambda: setattr(self.world, "stale", None))

    def _clock_is_wrong(self) -> bool:
        self.world.skew = self.chance.choice([-500.0, 20.0, 500.0])
        return self._for_a_while("clock", lambda: setattr(self.world, "skew", 0.0))

    def _size_is_changed(self) -> bool:
        sizes = [1, 2, 3, 4, 5, 0] if keeps_data(self.world.cluster) else [1, 2, 3, 4, 5]
        self.world.ask(size=self.chance.choice(sizes))
        return True

    def _pods_are_changed(self) -> bool:
        self.world.ask(options=EtcdSettings(snapshot_count=self.chance.randint(5000, 5005)))
        return True

    def _version_is_changed(self) -> bool:
        """There is no 3.5.3. A restore takes the version that it finds, and does not go back from it."""
        versions = ["3.5.1", "3.5.2", "3.5.3"] if self.survivable else ["3.5.1", "3.5.2"]
        self.world.ask(version=self.chance.choice(versions))
        return True

    def _tls_is_turned_on(self) -> bool:
        """Seldom: keys are made for it, which takes longer than all the rest."""
        if self.world.cluster.spec.tls is not None or self.chance.random() < 0.8:
            return False
        self.world.ask(tls=TlsPolicy(issued=IssuedTls()), auth=AuthPolicy())
        return True

    def _cluster_is_paused(self) -> bool:
        if self.world.keeper.is_busy:
            return False
        self.world.ask(paused=True)
        return self._for_a_while("paused", self._resumed)

    def _resumed(self) -> None:
        if not self.world.keeper.is_busy:
            self.world.ask(paused=False)


def explored(seed: int, *, survivable: bool) -> tuple[Explorer, str]:
    """The history of a seed, and what went wrong in it, if anything did."""
    explorer = Explorer(seed, survivable)
    try:
        asyncio.run(explorer.run())
    except Exception as error:  # noqa: BLE001 - each is a finding
        return explorer, f"{type(error).__name__}: {error}"
    return explorer, ""


def main(first: int, last: int) -> None:
    """Explores, and says what was found."""
    happened: Counter[str] = Counter()
    looks = 0
    for seed in range(first, last):
        for survivable in (True, False):
            explorer, wrong = explored(seed, survivable=survivable)
            happened += explorer.happened
            looks += explorer.looks
            if wrong:
                print(f"seed {seed}, survivable={survivable}: {wrong}"[:400], flush=True)  # noqa: T201
    print(f"{2 * (last - first)} histories, {looks} looks, {happened.total()} events: {dict(happened)}")  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
