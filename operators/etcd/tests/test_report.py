"""What is said of a cluster that nothing is done for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Observation
from etcd_operator.plan import decide
from etcd_operator.report import report_status
from observed import NOW, a_cluster, healthy


def degraded(cluster: EtcdCluster, seen: Observation) -> tuple[str, str]:
    """What the condition is, and its reason."""
    report_status(cluster, seen, decide(cluster, seen))
    said = cluster.status.condition("Degraded")
    assert said is not None
    return said.status, said.reason


def test_a_paused_cluster_that_nobody_answers_for_is_not_said_to_be_well() -> None:
    """Nobody says who the members are, so that none of them is down; as long as it serves, nothing is wrong."""
    cluster = a_cluster(paused=True)
    assert degraded(cluster, healthy(cluster)) == ("False", "AsExpected")
    silent = replace(healthy(cluster), reports={}, members=(), agreed=False)
    assert degraded(cluster, silent) == ("True", "NoQuorum")


@pytest.mark.parametrize("fields", [{"size": 0}, {"size": 3, "formed": ""}])
def test_a_paused_cluster_that_sleeps_or_has_not_begun_is_as_expected(fields: dict[str, object]) -> None:
    """Nobody is to answer."""
    cluster = a_cluster(paused=True, size=fields["size"])
    cluster.status.cluster_id = str(fields.get("formed", "1"))
    assert degraded(cluster, Observation(now=NOW)) == ("False", "AsExpected")
