"""What to do next: a pure function of what is asked for and what is there."""

from etcd_operator.plan.decision import decide
from etcd_operator.plan.steps import ClusterPlan

__all__ = ["ClusterPlan", "decide"]
