"""Backups and restores that are data: each takes a moment, and what must never be done to them fails the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from etcd_operator.backup_keeper import BackupState, SnapshotOrigin
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import MemberStart, keeps_data, member_claim, member_pod, peer_url

if TYPE_CHECKING:
    from model_world import World

MOMENT = 3.0


@dataclass
class ModelKeeper:
    """What is kept of the one cluster of a world. `place` is for snapshots before upgrades, `newest` the newest backup."""

    world: World
    place: bool = False
    newest: str = ""
    asked: dict[int, float] = field(default_factory=dict)
    """When the snapshot was asked for, by the generation of the spec."""
    asked_version: int = 0
    """The generation with which the version was last changed."""
    restore_since: float | None = None
    origin: SnapshotOrigin = "given"
    phase: str = ""

    # What the operator asks

    async def seen(self, cluster: EtcdCluster, ctx: Any) -> BackupState:
        generation = cluster.metadata.generation or 0
        saved = self._is_saved(generation)
        return BackupState(
            newest=self.newest,
            can_save=self.place,
            saved=f"snapshot-{generation}" if saved else "",
            saving="the snapshot is being taken" if generation in self.asked and not saved else "",
            restoring=f"back: {self.phase}" if self.is_busy else "",
            emptying=self.is_busy and self.phase in {"Emptying", "Seeding"},
            begun_from=self.phase in {"Joining", "Done"},
        )

    def _is_saved(self, generation: int) -> bool:
        asked = self.asked.get(generation)
        return asked is not None and self.world.seconds() - asked >= MOMENT

    async def keep(self, cluster: EtcdCluster, ctx: Any) -> None:
        return

    async def back_up(self, cluster: EtcdCluster, ctx: Any) -> None:
        generation = cluster.metadata.generation or 0
        if generation not in self.asked:
            self.asked[generation] = self.world.seconds()
            self.world.wrote(f"create EtcdBackup for {generation}")

    async def restore(self, cluster: EtcdCluster, ctx: Any, origin: SnapshotOrigin, *, safely: bool) -> None:
        assert not self.is_busy, "two restores were begun at once"
        self.restore_since, self.phase, self.origin = self.world.seconds(), "", origin
        self.world.wrote(f"create EtcdRestore from the {origin} one")

    # What happens meanwhile

    @property
    def is_busy(self) -> bool:
        return self.restore_since is not None and self.phase != "Done"

    def check_start(self, version: str) -> None:
        """No member starts with another version before a snapshot counts that was taken for it."""
        if self.place and version != "3.5.1":
            saved = any(each >= self.asked_version and self._is_saved(each) for each in self.asked)
            assert saved, f"a member was started with {version}, and no snapshot was taken before"

    def tick(self) -> None:
        """The restore goes on, as `EtcdRestore`s do."""
        if not self.is_busy or self.restore_since is None or self.world.seconds() - self.restore_since < MOMENT:
            return
        cluster = self.world.cluster
        if not self.phase:
            self.world.ask(paused=True)
            self.phase = "Emptying"
        elif (self.phase == "Emptying" and cluster.status.control_paused) or self._has_lost_its_seed:
            self._seed()
            self.phase = "Seeding"
        elif self.phase == "Seeding" and self.world.etcd.led_by:
            self.world.ask(paused=False)
            self.phase = "Joining"
        elif self.phase == "Joining" and len(cluster.status.members.ready) == cluster.spec.size:
            self.phase = "Done"

    @property
    def _has_lost_its_seed(self) -> bool:
        """Its pod is made again, and takes the snapshot again."""
        return self.phase == "Seeding" and not self.world.pods

    def _seed(self) -> None:
        """Everything goes, and one member has the snapshot."""
        world, cluster = self.world, self.world.cluster
        if self.origin == "newest" and self.phase == "Emptying":
            world.etcd.is_lost_for_good("a cluster went back to its backup")
        for name in list(world.pods):
            world.etcd.stop(name)
        world.pods.clear()
        world.claims.clear()
        world.etcd.members.clear()
        world.etcd.disks.clear()
        cluster.status.cluster_id, cluster.status.members = "", type(cluster.status.members)()
        seed = member_pod(cluster, f"{cluster.name}-0", MemberStart("seed"), version=cluster.spec.version)
        world.put(seed)
        disk = seed.metadata.uid
        if keeps_data(cluster):
            kept = member_claim(cluster, seed.name)
            world.put(kept)
            disk = kept.metadata.uid
        world.etcd.disks[disk or ""] = world.etcd.restored(peer_url(cluster, seed.name))
