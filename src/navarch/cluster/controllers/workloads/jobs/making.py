"""The pods of a Job."""

from __future__ import annotations

from navarch.cluster.controllers.workloads.jobs.indexes import INDEX
from navarch.cluster.controllers.workloads.jobs.policies import judged
from navarch.cluster.controllers.workloads.jobs.tally import FINALIZER, failures_of_index
from navarch.cluster.controllers.workloads.making import pod_of, prefix_of
from navarch.k8s.batch.v1 import Job
from navarch.k8s.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod

_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
_VARIABLE = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX = 58


def new_pod(job: Job, index: int | None = None, former: Pod | None = None) -> Pod:
    """A pod of the Job, for one part of the work if it has parts; `former` failed at the same part."""
    pod = pod_of(job.spec.template, prefix=prefix_of(job))
    if FINALIZER not in pod.metadata.finalizers:
        pod.metadata.finalizers.append(FINALIZER)
    if index is not None:
        _number(pod, job, index)
        if job.spec.backoff_limit_per_index is not None:
            pod.annotations.update(_failures(job, former))
    return pod


def _number(pod: Pod, job: Job, index: int) -> None:
    tail = f"-{index}-"
    pod.metadata.generate_name = f"{job.name[: _LONGEST_PREFIX - len(tail)]}{tail}"
    pod.labels[INDEX] = pod.annotations[INDEX] = str(index)
    pod.spec.hostname = f"{job.name}-{index}"
    for container in (*pod.spec.containers, *(pod.spec.init_containers or ())):
        _tell_index(container)


def _tell_index(container: Container) -> None:
    if any(variable.name == _VARIABLE for variable in container.env or ()):
        return
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
    container.env = [*(container.env or ()), EnvVar(name=_VARIABLE, value_from=source)]


def _failures(job: Job, former: Pod | None) -> dict[str, str]:
    counted, ignored = failures_of_index(former)
    if former is not None:
        counts = judged(job.spec.pod_failure_policy, former).counts
        counted, ignored = counted + counts, ignored + (not counts)
    return {_FAILURES: str(counted), **({_IGNORED: str(ignored)} if ignored else {})}
