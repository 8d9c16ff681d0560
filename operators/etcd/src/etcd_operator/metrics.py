"""Numbers beside those of the runtime, in prometheus_client's own registry."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

__all__ = ["RECOVERY", "STEPS"]

STEPS: Final = Counter("etcd_operator_steps", "Steps that were taken, by their kind.", ["step"])
RECOVERY: Final = Histogram(
    "etcd_operator_recovery_seconds",
    "How long clusters were degraded.",
    buckets=(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800),
)
