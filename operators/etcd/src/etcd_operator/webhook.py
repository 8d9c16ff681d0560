"""Warns of backups and restores that name a missing cluster or Secret: no rule of a CRD can see other objects.

It refuses nothing, since objects are created in any order, and the operator works as well without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etcd_operator.backup import EtcdBackup
from etcd_operator.destinations import BackupDestination
from etcd_operator.kinds import EtcdCluster
from etcd_operator.restore import EtcdRestore
from navarch import Operator, Review
from navarch.errors import Forbidden
from navarch.k8s.core.v1 import Secret

_TIMEOUT = 5


def declare_webhooks(operator: Operator) -> None:
    """Declares the webhooks of the operator; requests pass while it does not answer."""
    for kind, function in ((EtcdBackup, warn_of_backup), (EtcdRestore, warn_of_restore)):
        declare: Any = operator.validate(
            kind, reads=(EtcdCluster,), failure_policy="Ignore", timeout=_TIMEOUT, name="references"
        )
        declare(function)


async def warn_of_backup(backup: EtcdBackup, review: Review[EtcdBackup]) -> None:
    """Warns if the cluster of a backup, or a Secret that it needs, does not exist."""
    spec = backup.spec
    if spec.cluster_name:
        _warn_of_cluster(spec.cluster_name, "spec.clusterName", review)
    if spec.client_tls_secret:
        await _warn_of_secret(spec.client_tls_secret, "spec.clientTLSSecret", review)
    await _warn_of_destination(spec, review)


async def warn_of_restore(restore: EtcdRestore, review: Review[EtcdRestore]) -> None:
    """Warns if the cluster of a restore, or the Secret of its store, does not exist."""
    if review.operation == "CREATE":
        _warn_of_cluster(restore.spec.etcd_cluster.name, "spec.etcdCluster.name", review)
        await _warn_of_destination(restore.spec, review)


def _warn_of_cluster(name: str, field: str, review: Review[Any]) -> None:
    if review.get(EtcdCluster, name) is None:
        review.warn(f"{field}: EtcdCluster {review.namespace}/{name} does not exist; it waits until you create it")


async def _warn_of_destination(destination: BackupDestination, review: Review[Any]) -> None:
    for field, name in _secrets(destination):
        await _warn_of_secret(name, field, review)


def _secrets(destination: BackupDestination) -> Iterator[tuple[str, str]]:
    """Yields the Secrets of a destination, with their fields."""
    if destination.s3 is not None and destination.s3.aws_secret:
        yield "spec.s3.awsSecret", destination.s3.aws_secret
    if destination.gcs is not None and destination.gcs.gcp_secret:
        yield "spec.gcs.gcpSecret", destination.gcs.gcp_secret
    if destination.abs is not None:
        yield "spec.abs.absSecret", destination.abs.abs_secret


async def _warn_of_secret(name: str, field: str, review: Review[Any]) -> None:
    try:
        found = await review.fetch(Secret, name)
    except Forbidden:  # the backup's own status says so, with the RoleBinding that is missing
        return
    if found is None:
        review.warn(f"{field}: Secret {review.namespace}/{name} does not exist; create it before the backup is taken")
