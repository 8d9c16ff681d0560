"""The manifests: the operator runs as they say, and uses every right that they give it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import etcd_operator
import navarch
from clusters import NAME, SECONDS, of_this_user
from deployed import ACCOUNT, NAMESPACE, deployment, for_namespaces, grant_secrets, manifests, secrets_binding
from etcd_operator.backup import EtcdBackup, EtcdBackupSpec
from etcd_operator.declaration import etcd_operator as declared
from etcd_operator.destinations import BackupPolicy, ClusterBackup, S3Source
from etcd_operator.kinds import EtcdCluster, IssuedTls, MemberStorage, RestoreSource, TlsPolicy
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference
from navarch.api import Dynamic, Quantity
from navarch.cluster.embedded.components import ComponentOptions
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.k8s.events.v1 import Event
from navarch.operator.roles import Permission
from navarch.project.least_privilege import unused_permissions
from navarch.project.permissions import covers, granted_to
from navarch.testing import Cluster
from navarch.testing.call_recorder import used_permissions
from navarch.testing.cluster import over_https
from object_store import object_store, s3, secret

SOURCES = [str(Path(package.__file__ or "").parents[1]) for package in (etcd_operator, navarch, msgspec)]


def granted() -> dict[Permission, str]:
    """What the roles give the operator, with the administrator's binding for the Secrets of one namespace."""
    return granted_to([*manifests("rbac"), secrets_binding("default")], ACCOUNT)


def everywhere(permissions: Iterable[Permission]) -> set[Permission]:
    """The same, whatever the namespace."""
    return {replace(each, namespace=None) for each in permissions}


def small(name: str = NAME, size: int = 1, **fields: Any) -> EtcdCluster:
    """One of this name."""
    made = of_this_user(size, **fields)
    made.metadata.name = name
    return made


@asynccontextmanager
async def deployed(folder: Path) -> AsyncIterator[Cluster]:
    """A cluster with a node that has the operator's image, which is this machine's Python, and the manifests on it."""
    images = folder / "images.json"
    program = [sys.executable, "-m", "etcd_operator"]
    environment = {"PYTHONPATH": ":".join(SOURCES)}
    image = {"name": "etcd-operator", "version": "0.1.0", "argv": program, "env": environment}
    images.write_bytes(msgspec.json.encode([image]))
    async with over_https(ComponentOptions(nodes=1, images=images)) as cluster:
        everything = manifests("manager", "crd", "rbac")
        for manifest in sorted(everything, key=_is_deployment):  # which has its rights when it starts
            await cluster.apply(Dynamic(_here(manifest)))
        await grant_secrets(cluster.client, "default")
        yield cluster


def _is_deployment(manifest: dict[str, Any]) -> bool:
    return bool(manifest["kind"] == "Deployment")


def _here(manifest: dict[str, Any]) -> dict[str, Any]:
    """As it runs where pods share the network, the account (see `of_this_user`) and the files of one machine, /tmp included."""
    if manifest["kind"] == "Namespace":
        manifest["metadata"]["labels"] = {}  # this user may be root, which Pod Security would refuse
    if not _is_deployment(manifest):
        return manifest
    pod = manifest["spec"]["template"]["spec"]
    pod["securityContext"] = {}
    pod["containers"][0]["volumeMounts"] = []
    pod["containers"][0]["env"] = [
        each for each in pod["containers"][0]["env"] if each["name"] != "ETCD_OPERATOR_AMBIENT"
    ]
    return manifest


async def replicas(cluster: Cluster) -> list[str]:
    """What became of the operator's pods."""
    pods = await cluster.list(Pod, namespace=NAMESPACE)
    states = [each for pod in pods for each in pod.status.container_statuses or []]
    return ["ready" if each.ready else repr(each.last_state or each.state) for each in states]


def test_the_roles_for_some_namespaces_have_no_right_that_those_for_all_have_not() -> None:
    """But for those of CRDs, which somebody else installs then: all of them are used, as the test below shows."""
    crds = [Permission(verb, "apiextensions.k8s.io", "customresourcedefinitions") for verb in ("create", "patch")]
    assert everywhere(granted_to(for_namespaces("team-a"), ACCOUNT)) == everywhere(granted()).difference(crds)


@pytest.mark.real  # too long for the fast suite
@pytest.mark.timeout(480)
async def test_the_operator_runs_as_deployed_and_uses_every_right_that_it_has(tmp_path: Path) -> None:
    """All that it does, as its own account in its own pods: no right is missing, and none is too much."""
    async with deployed(tmp_path) as cluster, object_store() as store:
        await cluster.eventually(
            lambda: replicas(cluster),
            lambda found: found == ["ready"] * 2,
            timeout=SECONDS,
            what="two replicas that are ready",
        )
        await cluster.apply(small("secure", tls=TlsPolicy(issued=IssuedTls())))
        await grows_and_shrinks(cluster)
        await is_backed_up(cluster, s3(store))
        await is_restored(cluster, s3(store))
        await serves(cluster, "secure")
        refused = {record.uri for record in cluster.audit.records(user=ACCOUNT, code=403)}
        assert not refused
        used = used_permissions(cluster.audit, ACCOUNT)
        assert [str(each) for each in used if not covers(granted(), each)] == []
        operator = deployment(declared()).model.operator
        assert unused_permissions(operator, used, granted(), own_namespace=NAMESPACE) == []


async def grows_and_shrinks(cluster: Cluster) -> None:
    """In members and claims; services that somebody edits are put right."""
    await cluster.apply(small())
    await serves(cluster)
    await cluster.apply(small(size=2, storage=MemberStorage(size=Quantity("2Gi"))))
    await serves(cluster, size=2)
    await cluster.apply(small(storage=MemberStorage(size=Quantity("2Gi"))))
    await serves(cluster)


async def is_backed_up(cluster: Cluster, place: S3Source) -> None:
    """First without the Secret, so that the same is said again and again; then by the cluster itself, and no more."""
    await cluster.apply(EtcdBackup(name="once", spec=EtcdBackupSpec(cluster_name=NAME, s3=place)))
    await cluster.eventually(
        lambda: cluster.list(Event, fields={"regarding.kind": "EtcdBackup"}),
        lambda events: any(event.series for event in events),
        timeout=SECONDS,
        what="an event of the operator's that is told again",
    )
    await cluster.create(secret())
    await cluster.eventually(
        lambda: cluster.get(EtcdBackup, "once"), lambda found: found.status.succeeded, timeout=SECONDS
    )
    grown = MemberStorage(size=Quantity("2Gi"))
    own = ClusterBackup(s3=place, policy=BackupPolicy(backup_interval_in_second=3600))
    await cluster.apply(small(storage=grown, backup=own))
    await cluster.eventually(lambda: cluster.list(EtcdBackup), lambda found: len(found) == 2, timeout=SECONDS)
    await cluster.apply(small(storage=grown))
    await cluster.eventually(lambda: cluster.list(EtcdBackup), lambda found: len(found) == 1, timeout=SECONDS)


async def is_restored(cluster: Cluster, place: S3Source) -> None:
    """In its place, and as another cluster that begins with the data."""
    spec = EtcdRestoreSpec(s3=place, etcd_cluster=ClusterReference(name=NAME))
    await cluster.apply(EtcdRestore(name="back", spec=spec))
    await cluster.apply(small("again", restore_from=RestoreSource(s3=place)))
    await cluster.eventually(
        lambda: cluster.list(EtcdRestore),
        lambda found: len(found) == 2 and all(restore.status.succeeded for restore in found),
        timeout=SECONDS,
        what="two restores that are done",
    )


async def serves(cluster: Cluster, name: str = NAME, *, size: int = 1) -> None:
    """Returns when so many members serve, and nothing is left of others."""
    await cluster.eventually(
        lambda: _told(cluster, name),
        lambda told: told == (size, size, False),
        timeout=SECONDS,
        what=f"{name} with {size} members that serve",
    )


async def _told(cluster: Cluster, name: str) -> tuple[int, int, bool]:
    """Who serves, how many claims there are, and whether something is being done."""
    status = (await cluster.get(EtcdCluster, name)).status
    claims = await cluster.list(PersistentVolumeClaim, labels={"etcd_cluster": name})
    return len(status.members.ready), len(claims), status.is_true("Progressing")
