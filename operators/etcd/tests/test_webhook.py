"""The webhook warns of what no rule of a CRD can see, and refuses nothing."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from clusters import example
from etcd_operator.backup import EtcdBackup
from etcd_operator.declaration import etcd_operator
from etcd_operator.restore import EtcdRestore
from navarch.k8s.core.v1 import Secret
from navarch.testing import Cluster


def backup() -> EtcdBackup:
    return EtcdBackup.from_json(wire("EtcdBackup", clusterName="main"))


def restore() -> EtcdRestore:
    return EtcdRestore.from_json(wire("EtcdRestore", etcdCluster={"name": "main"}))


def wire(kind: str, **spec: Any) -> bytes:
    """An object in the namespace default that uses a bucket with a Secret."""
    return msgspec.json.encode(
        {
            "apiVersion": "etcd.database.coreos.com/v1beta2",
            "kind": kind,
            "metadata": {"name": "it", "namespace": "default"},
            "spec": {**spec, "s3": {"path": "bucket/backups", "awsSecret": "aws"}},
        }
    )


@pytest.mark.parametrize(
    ("subject", "field"),
    [(backup(), "spec.clusterName"), (restore(), "spec.etcdCluster.name")],
    ids=["backup", "restore"],
)
async def test_missing_cluster_and_secret_are_warned_of(subject: Any, field: str) -> None:
    """A backup or restore is accepted, with a warning for each missing object."""
    (webhook,) = (
        each for each in etcd_operator(webhooks=True).admission_webhooks if each.resource.kind == subject.kind
    )
    cluster, secret = example(3), Secret(name="aws", namespace="default")
    cluster.metadata.name, cluster.metadata.namespace = "main", "default"
    verdict = await webhook.verdict(subject, existing=[])
    assert verdict.allowed
    assert [warning.partition(";")[0] for warning in verdict.warnings] == [
        f"{field}: EtcdCluster default/main does not exist",
        "spec.s3.awsSecret: Secret default/aws does not exist",
    ]
    assert (await webhook.verdict(subject, existing=[cluster, secret])).warnings == ()


async def test_warning_reaches_the_user(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """The deployed operator, with the permissions of webhooks.yaml, has its webhook called."""
    operator = etcd_operator(webhooks=True)
    operator.backgrounds.clear()
    async with cluster.run(operator):
        with caplog.at_level(logging.WARNING, "navarch.client"):
            await cluster.client.using(dry_run=True).create(backup())
    assert "EtcdCluster default/main does not exist; it waits until you create it" in caplog.text
    assert "Secret default/aws does not exist; create it before the backup is taken" in caplog.text


def test_operator_without_the_webhook_declares_none() -> None:
    """The webhook is a choice: the operator works as well without it."""
    assert not etcd_operator().admission_webhooks
