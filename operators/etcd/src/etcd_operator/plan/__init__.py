"""Plans the next step: a pure function of the spec and the observation."""

from etcd_operator.plan.decision import decide
from etcd_operator.plan.steps import ClusterPlan

__all__ = ["ClusterPlan", "decide"]
