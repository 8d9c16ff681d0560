"""autoscaling/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime

from navarch.api import Model, Object, field

__all__ = [
    "CrossVersionObjectReference",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "Scale",
    "ScaleSpec",
    "ScaleStatus",
]


class CrossVersionObjectReference(Model):
    kind: str
    name: str
    api_version: str | None = None


class HorizontalPodAutoscalerSpec(Model):
    max_replicas: int
    scale_target_ref: CrossVersionObjectReference
    min_replicas: int | None = None
    target_cpu_utilization_percentage: int | None = field(name="targetCPUUtilizationPercentage", default=None)


class HorizontalPodAutoscalerStatus(Model):
    current_cpu_utilization_percentage: int | None = field(name="currentCPUUtilizationPercentage", default=None)
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: datetime | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(
    Object,
    group="autoscaling",
    version="v1",
    plural="horizontalpodautoscalers",
    short_names=("hpa",),
    categories=("all",),
):
    spec: HorizontalPodAutoscalerSpec
    status: HorizontalPodAutoscalerStatus = field(default_factory=HorizontalPodAutoscalerStatus)


class ScaleSpec(Model):
    replicas: int | None = None


class ScaleStatus(Model):
    replicas: int = 0
    selector: str | None = None


class Scale(Object, group="autoscaling", version="v1", plural="scale", has_status=False):
    spec: ScaleSpec = field(default_factory=ScaleSpec)
    status: ScaleStatus = field(default_factory=ScaleStatus)
