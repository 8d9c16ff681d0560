"""policy/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated

from navarch.api import Condition, IntOrString, ListMap, Model, Object, field
from navarch.k8s.meta.v1 import DeleteOptions, LabelSelector

__all__ = [
    "Eviction",
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
]


class Eviction(Object, group="policy", version="v1", plural="eviction", has_status=False):
    delete_options: DeleteOptions | None = None


class PodDisruptionBudgetSpec(Model):
    max_unavailable: IntOrString | None = None
    min_available: IntOrString | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Model):
    conditions: Annotated[list[Condition], ListMap("type")] | None = None
    current_healthy: int | None = None
    desired_healthy: int | None = None
    disrupted_pods: dict[str, datetime] | None = None
    disruptions_allowed: int | None = None
    expected_pods: int | None = None
    observed_generation: int | None = None


class PodDisruptionBudget(Object, group="policy", version="v1", plural="poddisruptionbudgets", short_names=("pdb",)):
    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)
