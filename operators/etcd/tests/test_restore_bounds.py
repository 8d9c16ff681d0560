"""What a restore leaves alone: what is not its cluster's, and a cluster that another restore has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from clusters import NAME, example, owned_by
from etcd_operator.backup.snapshot_store import BackupError
from etcd_operator.destinations import ClusterBackup, LocalSource
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import member_claim
from etcd_operator.restore import ApiBackupKeeper, EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference, Phase
from etcd_operator.restore.lock import RESTORING, acquire
from etcd_operator.restore.reconcile import cluster_of
from etcd_operator.restore.seed import released, seed_name, started
from navarch import Context
from navarch.errors import AlreadyExists, NotFound
from navarch.k8s.core.v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    PersistentVolumeClaim,
    Pod,
    PodCondition,
    PodSpec,
)

SEED, OLD, KEPT = (f"{NAME}-{number}" for number in range(3))


@dataclass
class Server:
    """Objects by kind and name; `told` are those that the cache has instead. Patches are only noted."""

    objects: dict[tuple[type, str], Any] = field(default_factory=dict)
    told: dict[tuple[type, str], Any] = field(default_factory=dict)
    patches: list[str] = field(default_factory=list)

    def put(self, *objects: Any) -> None:
        self.objects |= {(type(each), each.name): each for each in objects}

    @property
    def ctx(self) -> Context:
        client = SimpleNamespace(list=self._list, get=self._get, patch=self._patch)
        return cast(Context, SimpleNamespace(client=client, get=self._told, create=self._create, delete=self._delete))

    async def _list(self, kind: type, **_: object) -> list[Any]:
        return [each for (of, _), each in self.objects.items() if of is kind]

    async def _get(self, kind: type, name: str, **_: object) -> Any:
        if (kind, name) not in self.objects:
            raise NotFound(f"there is no {name}", code=HTTPStatus.NOT_FOUND)
        return self.objects[kind, name]

    async def _told(self, kind: type, name: str) -> Any:
        return self.told.get((kind, name))

    async def _create(self, new: Any, **_: object) -> Any:
        if (type(new), new.name) in self.objects:
            raise AlreadyExists(f"{new.name} is there", code=HTTPStatus.CONFLICT)
        self.put(new)
        return new

    async def _delete(self, kind: type, name: str) -> None:
        del self.objects[kind, name]

    async def _patch(self, kind: type, name: str, *_: object, **__: object) -> None:
        self.patches.append(f"{kind.__name__} {name}")


def a_cluster(uid: str = "1") -> EtcdCluster:
    made = example(3, paused=True)
    made.metadata.uid, made.metadata.namespace = uid, "default"
    return made


def a_restore(name: str = "back", phase: Phase = "Seeding") -> EtcdRestore:
    made = EtcdRestore(name=name, spec=EtcdRestoreSpec(etcd_cluster=ClusterReference(name=NAME)))
    made.metadata.uid, made.metadata.namespace = name, "default"
    made.status.phase, made.status.seed = phase, SEED
    return made


def of(uid: str, name: str) -> PersistentVolumeClaim:
    """The claim of a member of the cluster with that uid."""
    return owned_by(a_cluster(uid), member_claim(a_cluster(), name))


async def test_a_first_member_has_a_claim_of_its_own_cluster() -> None:
    """Not that of an earlier one of its name, which will go with it."""
    server = Server()
    server.put(of("0", SEED))
    assert await seed_name(a_cluster(), server.ctx) == OLD
    server.put(of("1", KEPT))
    assert await seed_name(a_cluster(), server.ctx) == KEPT


def with_a_failed_disk(pod: Pod) -> None:
    ended = ContainerStateTerminated(exit_code=1, message='{"level":"fatal","error":"walpb: crc mismatch"}')
    state = ContainerState(terminated=ended)
    pod.status.container_statuses = [
        ContainerStatus(name="etcd", image="", image_id="", ready=False, restart_count=3, state=state)
    ]


def with_a_volume_on_a_node_that_is_gone(pod: Pod) -> None:
    message = "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."
    pod.status.conditions = [PodCondition(type="PodScheduled", status="False", message=message)]


@pytest.mark.parametrize("fail", [with_a_failed_disk, with_a_volume_on_a_node_that_is_gone])
async def test_a_first_member_is_one_whose_disk_is_good_if_there_is_one(fail: Callable[[Pod], None]) -> None:
    """What it had stays beside the snapshot, and that of the others is given up: it may be the survivor of a lost quorum."""
    server, cluster = Server(), a_cluster()
    server.put(*(of("1", name) for name in (SEED, OLD, KEPT)))
    for name in (SEED, OLD):
        failed = owned_by(cluster, Pod(name=name, spec=PodSpec(containers=[])))
        fail(failed)
        server.put(failed)
    assert await seed_name(cluster, server.ctx) == KEPT
    del server.objects[PersistentVolumeClaim, KEPT]
    assert await seed_name(cluster, server.ctx) == SEED


@pytest.mark.parametrize("owner", ["0", ""])
async def test_a_snapshot_is_not_put_into_the_claim_of_somebody_else(owner: str) -> None:
    """It came after the restore had begun: its data would be moved aside, and the new data might go with it."""
    server = Server()
    server.put(of(owner, SEED))
    with pytest.raises(BackupError, match="already exists and does not belong to this cluster"):
        await started(a_cluster(), a_restore(), server.ctx, "python")
    assert not await server.ctx.client.list(Pod)


async def test_a_pod_that_another_one_was_faster_to_make_is_not_taken_for_the_first_member() -> None:
    """It would be said to serve the snapshot, and the others' data be given up."""
    server, cluster = Server(), a_cluster()
    await started(cluster, a_restore("other"), server.ctx, "python")
    with pytest.raises(BackupError, match="does not belong to this restore"):
        await started(cluster, a_restore(), server.ctx, "python")


@pytest.mark.parametrize(("formed", "left"), [("", {SEED, KEPT}), ("1", {SEED, KEPT, OLD})])
async def test_only_claims_of_members_of_before_are_given_up(formed: str, left: set[str]) -> None:
    """Not what somebody has kept; and none once the cluster goes on, whose new members may have some by then."""
    server, cluster = Server(), a_cluster()
    cluster.status.cluster_id = formed
    server.put(of("1", SEED), of("1", OLD), of("", KEPT))
    await released(cluster, a_restore(), server.ctx)
    assert {each.name for each in await server.ctx.client.list(PersistentVolumeClaim)} == left


async def test_a_restore_that_starts_members_is_waited_for_though_its_note_is_gone() -> None:
    """Somebody has replaced the cluster by a manifest without annotations. Of two that have not begun one may."""
    first, second = a_restore("first", "Seeding"), a_restore("second", "Emptying")
    server = Server()
    server.put(first, second)
    assert not await acquire(a_cluster(), second, server.ctx)
    assert not server.patches
    first.status.phase = "Emptying"
    assert await acquire(a_cluster(), second, server.ctx)
    given = a_cluster()
    given.metadata.annotations = {RESTORING: "first"}
    assert not await acquire(given, second, server.ctx)


async def test_a_restore_asks_the_server_what_its_cluster_has() -> None:
    """A cache that is behind does not know yet that it has formed: no copy would be kept of what it has."""
    server = Server(told={(EtcdCluster, NAME): a_cluster()})
    formed = a_cluster()
    formed.status.cluster_id = "1"
    server.put(formed)
    assert (await cluster_of(a_restore(), server.ctx)).status.cluster_id


async def test_a_snapshot_before_an_upgrade_takes_the_place_of_no_earlier_clusters() -> None:
    """One of the same name, made again, comes to the same version with the same number of changes."""
    names = []
    for uid in ("00000000-0000", "11111111-1111"):
        cluster, apply = a_cluster(uid), AsyncMock()
        cluster.metadata.generation = 2
        cluster.spec.backup = ClusterBackup(local=LocalSource(path="some/etcd.db"))
        await ApiBackupKeeper(Mock(has_folder=True)).back_up(cluster, cast(Context, SimpleNamespace(apply=apply)))
        names.append(apply.await_args.args[0].spec.local.path if apply.await_args else "")
    assert names == ["some/etcd.db.before-3.5.1-2-00000000", "some/etcd.db.before-3.5.1-2-11111111"]
