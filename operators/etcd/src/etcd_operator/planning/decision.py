"""The order in which concerns are looked at. The first that has something to say decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Observation
from etcd_operator.planning.alarms import corrupt, no_space
from etcd_operator.planning.comparing import diverged
from etcd_operator.planning.forming import asleep, forming, from_snapshot, identity
from etcd_operator.planning.healing import absent, broken, learning, settling, strays, unstartable
from etcd_operator.planning.loss import without_quorum
from etcd_operator.planning.plan import Plan, done
from etcd_operator.planning.rolling import failed_rollout, rollout
from etcd_operator.planning.saving import awaits_snapshot, held_back, save_first
from etcd_operator.planning.securing import asking_who, secrets_wrong, securing, stranger
from etcd_operator.planning.sizing import all_healthy, claims_grow, fewer, more

__all__ = ["decide"]

Concern = Callable[[EtcdCluster, Observation], Plan | None]


def _paused(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    return done("Paused", "spec.paused: nothing is done") if cluster.spec.paused else None


_NEEDED: Final[tuple[Concern, ...]] = (
    _paused,
    identity,
    asleep,
    secrets_wrong,
    stranger,
    from_snapshot,
    forming,
    failed_rollout,
    unstartable,
    without_quorum,
    settling,
    strays,
    corrupt,
    diverged,
    absent,
    broken,
    no_space,
    learning,
    fewer,
    all_healthy,
)
_CHOSEN: Final[tuple[Concern, ...]] = (
    claims_grow,
    rollout,
    securing,
    asking_who,
    more,
)


def decide(cluster: EtcdCluster, seen: Observation) -> Plan:
    """The next step towards what is asked for, from whatever is there.

    It never looks back: a step that was cut off anywhere is gone on from what it left. No step takes away a voter that the
    others cannot do without, and nothing that was ever part of a cluster is started without its data.
    """
    if awaits_snapshot(cluster, seen):
        plan = _first(_NEEDED, held_back(cluster), seen)
        return plan if plan is not None and (plan.step or plan.stuck) else save_first(cluster, seen)
    return _first((*_NEEDED, *_CHOSEN), cluster, seen) or done("Ready", f"{len(seen.voters)} members serve")


def _first(concerns: tuple[Concern, ...], cluster: EtcdCluster, seen: Observation) -> Plan | None:
    return next((plan for concern in concerns if (plan := concern(cluster, seen)) is not None), None)
