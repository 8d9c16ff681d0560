"""apps/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated, Any

from navarch.api import IntOrString, ListMap, Model, Object, field
from navarch.k8s.core.v1 import PersistentVolumeClaim, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector

__all__ = [
    "ControllerRevision",
    "DaemonSet",
    "DaemonSetCondition",
    "DaemonSetSpec",
    "DaemonSetStatus",
    "DaemonSetUpdateStrategy",
    "Deployment",
    "DeploymentCondition",
    "DeploymentSpec",
    "DeploymentStatus",
    "DeploymentStrategy",
    "ReplicaSet",
    "ReplicaSetCondition",
    "ReplicaSetSpec",
    "ReplicaSetStatus",
    "RollingUpdateDaemonSet",
    "RollingUpdateDeployment",
    "RollingUpdateStatefulSetStrategy",
    "StatefulSet",
    "StatefulSetCondition",
    "StatefulSetOrdinals",
    "StatefulSetPersistentVolumeClaimRetentionPolicy",
    "StatefulSetSpec",
    "StatefulSetStatus",
    "StatefulSetUpdateStrategy",
]


class ControllerRevision(Object, group="apps", version="v1", plural="controllerrevisions", has_status=False):
    revision: int
    data: dict[str, Any] | None = None


class RollingUpdateDaemonSet(Model):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class DaemonSetUpdateStrategy(Model):
    rolling_update: RollingUpdateDaemonSet | None = None
    type: str | None = None


class DaemonSetSpec(Model):
    selector: LabelSelector
    template: PodTemplateSpec
    min_ready_seconds: int | None = None
    revision_history_limit: int | None = None
    update_strategy: DaemonSetUpdateStrategy | None = None


class DaemonSetCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class DaemonSetStatus(Model):
    collision_count: int | None = None
    conditions: Annotated[list[DaemonSetCondition], ListMap("type")] | None = None
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_available: int | None = None
    number_misscheduled: int = 0
    number_ready: int = 0
    number_unavailable: int | None = None
    observed_generation: int | None = None
    updated_number_scheduled: int | None = None


class DaemonSet(Object, group="apps", version="v1", plural="daemonsets", short_names=("ds",), categories=("all",)):
    spec: DaemonSetSpec
    status: DaemonSetStatus = field(default_factory=DaemonSetStatus)


class RollingUpdateDeployment(Model):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class DeploymentStrategy(Model):
    rolling_update: RollingUpdateDeployment | None = None
    type: str | None = None


class DeploymentSpec(Model):
    selector: LabelSelector
    template: PodTemplateSpec
    min_ready_seconds: int | None = None
    paused: bool | None = None
    progress_deadline_seconds: int | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    strategy: DeploymentStrategy | None = None


class DeploymentCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    last_update_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class DeploymentStatus(Model):
    available_replicas: int | None = None
    collision_count: int | None = None
    conditions: Annotated[list[DeploymentCondition], ListMap("type")] | None = None
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int | None = None
    terminating_replicas: int | None = None
    unavailable_replicas: int | None = None
    updated_replicas: int | None = None


class Deployment(
    Object,
    group="apps",
    version="v1",
    plural="deployments",
    short_names=("deploy",),
    categories=("all",),
):
    spec: DeploymentSpec
    status: DeploymentStatus = field(default_factory=DeploymentStatus)


class ReplicaSetSpec(Model):
    selector: LabelSelector
    min_ready_seconds: int | None = None
    replicas: int | None = None
    template: PodTemplateSpec | None = None


class ReplicaSetCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class ReplicaSetStatus(Model):
    available_replicas: int | None = None
    conditions: Annotated[list[ReplicaSetCondition], ListMap("type")] | None = None
    fully_labeled_replicas: int | None = None
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int = 0
    terminating_replicas: int | None = None


class ReplicaSet(Object, group="apps", version="v1", plural="replicasets", short_names=("rs",), categories=("all",)):
    spec: ReplicaSetSpec
    status: ReplicaSetStatus = field(default_factory=ReplicaSetStatus)


class RollingUpdateStatefulSetStrategy(Model):
    max_unavailable: IntOrString | None = None
    partition: int | None = None


class StatefulSetOrdinals(Model):
    start: int | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(Model):
    when_deleted: str | None = None
    when_scaled: str | None = None


class StatefulSetUpdateStrategy(Model):
    rolling_update: RollingUpdateStatefulSetStrategy | None = None
    type: str | None = None


class StatefulSetSpec(Model):
    selector: LabelSelector
    template: PodTemplateSpec
    min_ready_seconds: int | None = None
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    pod_management_policy: str | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    service_name: str | None = None
    update_strategy: StatefulSetUpdateStrategy | None = None
    volume_claim_templates: list[PersistentVolumeClaim] | None = None


class StatefulSetCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class StatefulSetStatus(Model):
    available_replicas: int | None = None
    collision_count: int | None = None
    conditions: Annotated[list[StatefulSetCondition], ListMap("type")] | None = None
    current_replicas: int | None = None
    current_revision: str | None = None
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int = 0
    update_revision: str | None = None
    updated_replicas: int | None = None


class StatefulSet(Object, group="apps", version="v1", plural="statefulsets", short_names=("sts",), categories=("all",)):
    spec: StatefulSetSpec
    status: StatefulSetStatus = field(default_factory=StatefulSetStatus)
