"""The disruption budget."""

from __future__ import annotations

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests.names import labels_of
from navarch.k8s.meta.v1 import LabelSelector
from navarch.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec

__all__ = ["budget"]


def budget(cluster: EtcdCluster, voters: int) -> PodDisruptionBudget:
    """A quorum stays, of the members that vote now or of those that are asked for, whichever is more.

    A number that must stay, not one that may go: the latter would be counted anew after each pod that is gone.
    """
    quorum = max(voters, cluster.spec.size) // 2 + 1 if cluster.spec.size else 0
    labels = labels_of(cluster)
    return PodDisruptionBudget(
        name=cluster.name,
        labels=labels,
        spec=PodDisruptionBudgetSpec(min_available=quorum, selector=LabelSelector(match_labels=labels)),
    )
