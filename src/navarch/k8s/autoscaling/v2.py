"""autoscaling/v2 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated

from navarch.api import ListMap, Model, Object, field
from navarch.api.quantity import Quantity
from navarch.k8s.meta.v1 import LabelSelector

__all__ = [
    "ContainerResourceMetricSource",
    "ContainerResourceMetricStatus",
    "CrossVersionObjectReference",
    "ExternalMetricSource",
    "ExternalMetricStatus",
    "HPAScalingPolicy",
    "HPAScalingRules",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerBehavior",
    "HorizontalPodAutoscalerCondition",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "MetricIdentifier",
    "MetricSpec",
    "MetricStatus",
    "MetricTarget",
    "MetricValueStatus",
    "ObjectMetricSource",
    "ObjectMetricStatus",
    "PodsMetricSource",
    "PodsMetricStatus",
    "ResourceMetricSource",
    "ResourceMetricStatus",
]


class MetricTarget(Model):
    type: str
    average_utilization: int | None = None
    average_value: Quantity | None = None
    value: Quantity | None = None


class ContainerResourceMetricSource(Model):
    container: str
    name: str
    target: MetricTarget


class MetricValueStatus(Model):
    average_utilization: int | None = None
    average_value: Quantity | None = None
    value: Quantity | None = None


class ContainerResourceMetricStatus(Model):
    container: str
    current: MetricValueStatus
    name: str


class CrossVersionObjectReference(Model):
    kind: str
    name: str
    api_version: str | None = None


class MetricIdentifier(Model):
    name: str
    selector: LabelSelector | None = None


class ExternalMetricSource(Model):
    metric: MetricIdentifier
    target: MetricTarget


class ExternalMetricStatus(Model):
    current: MetricValueStatus
    metric: MetricIdentifier


class HPAScalingPolicy(Model):
    period_seconds: int
    type: str
    value: int


class HPAScalingRules(Model):
    policies: list[HPAScalingPolicy] | None = None
    select_policy: str | None = None
    stabilization_window_seconds: int | None = None
    tolerance: Quantity | None = None


class HorizontalPodAutoscalerBehavior(Model):
    scale_down: HPAScalingRules | None = None
    scale_up: HPAScalingRules | None = None


class ObjectMetricSource(Model):
    described_object: CrossVersionObjectReference
    metric: MetricIdentifier
    target: MetricTarget


class PodsMetricSource(Model):
    metric: MetricIdentifier
    target: MetricTarget


class ResourceMetricSource(Model):
    name: str
    target: MetricTarget


class MetricSpec(Model):
    type: str
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None


class HorizontalPodAutoscalerSpec(Model):
    max_replicas: int
    scale_target_ref: CrossVersionObjectReference
    behavior: HorizontalPodAutoscalerBehavior | None = None
    metrics: list[MetricSpec] | None = None
    min_replicas: int | None = None


class HorizontalPodAutoscalerCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class ObjectMetricStatus(Model):
    current: MetricValueStatus
    described_object: CrossVersionObjectReference
    metric: MetricIdentifier


class PodsMetricStatus(Model):
    current: MetricValueStatus
    metric: MetricIdentifier


class ResourceMetricStatus(Model):
    current: MetricValueStatus
    name: str


class MetricStatus(Model):
    type: str
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None


class HorizontalPodAutoscalerStatus(Model):
    conditions: Annotated[list[HorizontalPodAutoscalerCondition], ListMap("type")] | None = None
    current_metrics: list[MetricStatus] | None = None
    current_replicas: int | None = None
    desired_replicas: int = 0
    last_scale_time: datetime | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(
    Object,
    group="autoscaling",
    version="v2",
    plural="horizontalpodautoscalers",
    short_names=("hpa",),
    categories=("all",),
):
    spec: HorizontalPodAutoscalerSpec
    status: HorizontalPodAutoscalerStatus = field(default_factory=HorizontalPodAutoscalerStatus)
