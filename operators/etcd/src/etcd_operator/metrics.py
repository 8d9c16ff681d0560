"""Numbers beside those of the runtime, in prometheus_client's global registry, which the endpoint is given."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

__all__ = ["RECOVERY", "STEPS", "MemberCounts"]

STEPS: Final = Counter("etcd_operator_steps", "Steps that were taken, by their kind.", ["step"])
RECOVERY: Final = Histogram(
    "etcd_operator_recovery_seconds",
    "How long clusters were degraded.",
    buckets=(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800),
)
_MEMBERS: Final = Gauge(
    "etcd_operator_members", "Members of clusters, by their state.", ["namespace", "cluster", "state"]
)
_SILENCE: Final = timedelta(minutes=5)


class MemberCounts:
    """How many members clusters have in each state, for as long as they are looked at: every cluster is, twice a minute."""

    def __init__(self) -> None:
        self._looked: dict[tuple[str, str], tuple[datetime, frozenset[str]]] = {}

    def tell(self, namespace: str, cluster: str, counts: Mapping[str, int], now: datetime) -> None:
        """What was seen of a cluster."""
        self._looked[namespace, cluster] = now, frozenset(counts)
        for state, count in counts.items():
            _MEMBERS.labels(namespace, cluster, state).set(count)

    def forget_gone(self, now: datetime) -> None:
        """Clusters that have not been looked at for a while are gone, and so is what was counted of them."""
        gone = {each: states for each, (looked, states) in self._looked.items() if now - looked > _SILENCE}
        for (namespace, cluster), states in gone.items():
            del self._looked[namespace, cluster]
            for state in states:
                _MEMBERS.remove(namespace, cluster, state)
