"""Observations for tests, as short as they can be said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from etcd_operator.kinds import EtcdCluster, EtcdClusterSpec, MemberStorage
from etcd_operator.manifests import peer_url, template_of
from etcd_operator.observation import MemberReport, Observation, ObservedClaim, ObservedMember, ObservedPod
from navarch.api import Quantity

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)


def a_cluster(**fields: Any) -> EtcdCluster:
    """A cluster of three that has formed."""
    spec = EtcdClusterSpec(**{"size": 3, "version": "3.5.21", "storage": MemberStorage(size=Quantity("1Gi")), **fields})
    cluster = EtcdCluster(name="c", namespace="default", spec=spec)
    cluster.metadata.uid, cluster.metadata.generation = "u", 1
    cluster.status.cluster_id, cluster.status.current_version = "1", spec.version
    return cluster


def healthy(cluster: EtcdCluster, size: int = 3) -> Observation:
    """Everything as it should be; the first member leads."""
    names = [f"c-{number}" for number in range(size)]
    template = template_of(cluster)
    version = cluster.spec.version
    return Observation(
        now=NOW,
        pods={
            name: ObservedPod(name=name, running=True, ready=True, template=template, version=version) for name in names
        },
        claims={name: ObservedClaim(name=name) for name in names},
        reports={
            name: MemberReport(member=number, cluster=1, version=version, leader=1, index=number)
            for number, name in enumerate(names, 1)
        },
        members=tuple(
            ObservedMember(id=number, name=name, peer_url=peer_url(cluster, name))
            for number, name in enumerate(names, 1)
        ),
        agreed=True,
    )


def down(seen: Observation, *names: str, **fields: Any) -> Observation:
    """These members are silent; fields are those of their pods."""
    pods = {name: replace(seen.pods[name], ready=False, running=False, **fields) for name in names}
    reports = {name: report for name, report in seen.reports.items() if name not in names}
    return replace(seen, pods={**seen.pods, **pods}, reports=reports)
