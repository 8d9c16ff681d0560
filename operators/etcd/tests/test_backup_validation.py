"""What the API server takes and refuses of backups and restores, embedded and real."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from etcd_operator.backup import EtcdBackup
from etcd_operator.kinds import EtcdCluster
from etcd_operator.restore import EtcdRestore
from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.errors import Invalid
from navarch.operator.crds import prepare_crds
from test_validation import client as of_clusters
from test_validation import kubeconfig

__all__ = ["kubeconfig", "of_clusters"]

S3 = {"s3": {"path": "bucket/etcd.db"}}
LOCAL = {"local": {"path": "a/b"}}
PVC = {"pvc": {"claimName": "backups", "path": "a/b"}}
NONSENSE: list[tuple[str, dict[str, Any], str]] = [
    ("EtcdBackup", {"clusterName": "c"}, "exactly one of s3, gcs, abs, pvc and local"),
    ("EtcdBackup", {"clusterName": "c", **S3, **LOCAL}, "exactly one of s3, gcs, abs, pvc and local"),
    ("EtcdBackup", {**S3}, "either clusterName or etcdEndpoints"),
    ("EtcdBackup", {"clusterName": "c", **LOCAL, "storageType": "S3"}, "storageType differs from the destination"),
    ("EtcdBackup", {"clusterName": "c", "local": {"path": "/etc/passwd"}}, "spec.local.path"),
    ("EtcdBackup", {"clusterName": "c", **S3, **PVC}, "exactly one of s3, gcs, abs, pvc and local"),
    ("EtcdBackup", {"clusterName": "c", **PVC, "storageType": "Local"}, "storageType differs from the destination"),
    ("EtcdBackup", {"clusterName": "c", "pvc": {"claimName": "../x", "path": "a/b"}}, "spec.pvc.claimName"),
    ("EtcdBackup", {"clusterName": "c", "pvc": {"claimName": "x", "path": "/a"}}, "spec.pvc.path"),
    (
        "EtcdBackup",
        {"clusterName": "c", "pvc": {"claimName": "x", "path": "a/b", "className": "fast"}},
        "set its size too",
    ),
    (
        "EtcdBackup",
        {"clusterName": "c", **S3, "backupPolicy": {"schedule": "at noon"}},
        "spec.backupPolicy.schedule",
    ),
    (
        "EtcdBackup",
        {"clusterName": "c", **S3, "backupPolicy": {"schedule": "@daily", "backupIntervalInSecond": 1}},
        "either schedule or backupIntervalInSecond",
    ),
    (
        "EtcdBackup",
        {"clusterName": "c", **S3, "backupPolicy": {"backupIntervalInSecond": 9_000_000_000_000_000_000}},
        "at most 100 years",
    ),
    (
        "EtcdBackup",
        {"clusterName": "c", "s3": {"path": "bucket/a", "endpoint": "https://store.example.com"}},
        "needs a Secret of this namespace: set awsSecret",
    ),
    (
        "EtcdRestore",
        {"etcdCluster": {"name": "c"}, "gcs": {"path": "bucket/a", "endpoint": "https://store.example.com"}},
        "needs a Secret of this namespace: set gcpSecret",
    ),
    (
        "EtcdCluster",
        {"backup": {"s3": {"path": "bucket/a", "awsSecret": "aws", "endpoint": "https://user@store.example.com"}}},
        "expected an endpoint",
    ),
    *(
        ("EtcdCluster", {"restoreFrom": {"s3": {"path": path, "awsSecret": "aws"}}}, "expected a path such as")
        for path in (
            "evil.example.com#/a",
            "u@evil/a",
            "bucket/../a",
            "bucket/a//b",
            "bucket/./a",
            "bucket/a\\b",
            "b/\x01a",
        )
    ),
    ("EtcdCluster", {"backup": {"policy": {}}}, "exactly one of s3, gcs, abs, pvc and local"),
    ("EtcdCluster", {"restoreFrom": {**S3, **LOCAL}}, "exactly one of s3, gcs, abs, pvc and local"),
    ("EtcdRestore", {"etcdCluster": {"name": "c"}}, "exactly one of s3, gcs, abs, pvc and local"),
    (
        "EtcdRestore",
        {"etcdCluster": {"name": "c"}, **LOCAL, "backupStorageType": "S3"},
        "backupStorageType differs from the destination",
    ),
]


@pytest.fixture
async def client(of_clusters: Client) -> Client:
    """A client of a cluster that knows all three kinds."""
    await prepare_crds(of_clusters, [EtcdCluster, EtcdBackup, EtcdRestore], "install")
    return of_clusters


def manifest(kind: str, spec: Mapping[str, Any], name: str = "example") -> Dynamic:
    """As users write it."""
    version = "etcd.database.coreos.com/v1beta2"
    return Dynamic({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)})


async def test_places_and_schedules_are_taken(client: Client) -> None:
    """The API server accepts CoreOS' destinations, and ours."""
    gcs, blobs = {"path": "bucket/a", "gcpSecret": "gcp"}, {"path": "container/a", "absSecret": "abs"}
    policy = {"schedule": "0 2 * * *", "timeZone": "Europe/Berlin"}
    endpoints = {"etcdEndpoints": ["http://a:2379"]}
    await client.create(manifest("EtcdBackup", {**endpoints, "storageType": "GCS", "gcs": gcs}, "google"))
    await client.create(manifest("EtcdBackup", {**endpoints, "storageType": "ABS", "abs": blobs}, "azure"))
    await client.create(manifest("EtcdBackup", {"clusterName": "c", **S3, "backupPolicy": policy}, "nightly"))
    claim = {"pvc": {"claimName": "backups", "path": "a/b", "size": "10Gi", "className": "fast"}}
    await client.create(manifest("EtcdBackup", {"clusterName": "c", "storageType": "PVC", **claim}, "claim"))
    back = {"etcdCluster": {"name": "c"}, "backupStorageType": "PVC", **PVC}
    await client.create(manifest("EtcdRestore", back, "claim"))
    await client.create(manifest("EtcdRestore", {"etcdCluster": {"name": "c"}, "gcs": gcs}))
    kept = {"backup": {**S3, "policy": {"schedule": "@every 1h"}}, "restoreFrom": {"abs": blobs}}
    made = await client.create(manifest("EtcdCluster", {"size": 3, **kept}))
    assert made["spec"]["backup"]["beforeUpgrade"] is True


async def test_places_and_schedules_that_make_no_sense_are_refused(client: Client) -> None:
    """The API server refuses it, and names the field or the remedy."""
    for kind, spec, message in NONSENSE:
        with pytest.raises(Invalid, match=message):
            await client.create(manifest(kind, spec))


async def test_a_restore_cannot_be_changed(client: Client) -> None:
    """The API server refuses changes of a restore, which may be running."""
    await client.create(manifest("EtcdRestore", {"etcdCluster": {"name": "c"}, **S3}))
    with pytest.raises(Invalid, match="create another one"):
        await client.patch(EtcdRestore, "example", MergePatch({"spec": {"withoutSafetyCopy": True}}))
