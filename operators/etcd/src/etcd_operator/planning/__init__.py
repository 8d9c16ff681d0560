"""What to do next: a pure function of what is asked for and what is there."""

from etcd_operator.planning.decision import decide
from etcd_operator.planning.plan import Plan

__all__ = ["Plan", "decide"]
