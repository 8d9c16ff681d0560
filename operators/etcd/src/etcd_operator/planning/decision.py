"""The order in which concerns are looked at. The first that has something to say decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Observation
from etcd_operator.planning.alarms import corrupt, no_space
from etcd_operator.planning.comparing import diverged
from etcd_operator.planning.forming import asleep, forming, identity
from etcd_operator.planning.healing import absent, broken, learning, settling, strays, unstartable
from etcd_operator.planning.loss import without_quorum
from etcd_operator.planning.plan import Plan, done, stuck
from etcd_operator.planning.rolling import failed_rollout, rollout
from etcd_operator.planning.sizing import all_healthy, claims_grow, fewer, more

__all__ = ["decide"]

Concern = Callable[[EtcdCluster, Observation], Plan | None]


def _paused(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    return done("Paused", "spec.paused: nothing is done") if cluster.spec.paused else None


def _unsupported(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    if cluster.spec.tls is not None:
        return stuck("Unsupported", "spec.TLS is not supported yet; nothing is started in plain text instead")
    return None


_CONCERNS: Final[tuple[Concern, ...]] = (
    _paused,
    _unsupported,
    identity,
    asleep,
    forming,
    unstartable,
    without_quorum,
    settling,
    strays,
    corrupt,
    diverged,
    absent,
    failed_rollout,
    broken,
    no_space,
    learning,
    fewer,
    all_healthy,
    claims_grow,
    rollout,
    more,
)


def decide(cluster: EtcdCluster, seen: Observation) -> Plan:
    """The next step towards what is asked for, from whatever is there.

    It never looks back: a step that was cut off anywhere is gone on from what it left. No step takes away a voter that the
    others cannot do without, and nothing that was ever part of a cluster is started without its data.
    """
    for concern in _CONCERNS:
        plan = concern(cluster, seen)
        if plan is not None:
            return plan
    return done("Ready", f"{len(seen.voters)} members serve")
