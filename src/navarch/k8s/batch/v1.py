"""batch/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated

from navarch.api import ListSet, Model, Object, ObjectMeta, field
from navarch.k8s.core.v1 import ObjectReference, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector

__all__ = [
    "CronJob",
    "CronJobSpec",
    "CronJobStatus",
    "Job",
    "JobCondition",
    "JobSpec",
    "JobStatus",
    "JobTemplateSpec",
    "PodFailurePolicy",
    "PodFailurePolicyOnExitCodesRequirement",
    "PodFailurePolicyOnPodConditionsPattern",
    "PodFailurePolicyRule",
    "SuccessPolicy",
    "SuccessPolicyRule",
    "UncountedTerminatedPods",
]


class PodFailurePolicyOnExitCodesRequirement(Model):
    operator: str
    values: Annotated[list[int], ListSet()]
    container_name: str | None = None


class PodFailurePolicyOnPodConditionsPattern(Model):
    type: str
    status: str | None = None


class PodFailurePolicyRule(Model):
    action: str
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: list[PodFailurePolicyOnPodConditionsPattern] | None = None


class PodFailurePolicy(Model):
    rules: list[PodFailurePolicyRule]


class SuccessPolicyRule(Model):
    succeeded_count: int | None = None
    succeeded_indexes: str | None = None


class SuccessPolicy(Model):
    rules: list[SuccessPolicyRule]


class JobSpec(Model):
    template: PodTemplateSpec
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    completion_mode: str | None = None
    completions: int | None = None
    managed_by: str | None = None
    manual_selector: bool | None = None
    max_failed_indexes: int | None = None
    parallelism: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    selector: LabelSelector | None = None
    success_policy: SuccessPolicy | None = None
    suspend: bool | None = None
    ttl_seconds_after_finished: int | None = None


class JobTemplateSpec(Model):
    spec: JobSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class CronJobSpec(Model):
    job_template: JobTemplateSpec
    schedule: str
    concurrency_policy: str | None = None
    failed_jobs_history_limit: int | None = None
    starting_deadline_seconds: int | None = None
    successful_jobs_history_limit: int | None = None
    suspend: bool | None = None
    time_zone: str | None = None


class CronJobStatus(Model):
    active: list[ObjectReference] | None = None
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(Object, group="batch", version="v1", plural="cronjobs", short_names=("cj",), categories=("all",)):
    spec: CronJobSpec
    status: CronJobStatus = field(default_factory=CronJobStatus)


class JobCondition(Model):
    status: str
    type: str
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class UncountedTerminatedPods(Model):
    failed: Annotated[list[str], ListSet()] | None = None
    succeeded: Annotated[list[str], ListSet()] | None = None


class JobStatus(Model):
    active: int | None = None
    completed_indexes: str | None = None
    completion_time: datetime | None = None
    conditions: list[JobCondition] | None = None
    failed: int | None = None
    failed_indexes: str | None = None
    ready: int | None = None
    start_time: datetime | None = None
    succeeded: int | None = None
    terminating: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(Object, group="batch", version="v1", plural="jobs", categories=("all",)):
    spec: JobSpec
    status: JobStatus = field(default_factory=JobStatus)
