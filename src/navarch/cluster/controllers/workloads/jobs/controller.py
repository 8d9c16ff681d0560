"""The Job controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from navarch.api import Key, truncate_to_seconds
from navarch.cache import Change, Entry
from navarch.cluster.controllers.workloads.adoption import claimed, declare_owner, selector_of
from navarch.cluster.controllers.workloads.jobs.finalizer_tracking import Counting, let_go
from navarch.cluster.controllers.workloads.jobs.indexes import INDEX, index_of, pending_indexes
from navarch.cluster.controllers.workloads.jobs.pod_failures import delay_left, delay_of_pods, finished_at, judged
from navarch.cluster.controllers.workloads.jobs.tally import (
    FINALIZER,
    Tally,
    completed,
    condition_of,
    deadline_left,
    failures_of_index,
    is_finished,
    is_indexed,
    is_tracked,
    new_condition,
    replaces_failed_only,
    target_of,
)
from navarch.cluster.controllers.workloads.pod_creation import (
    create_pods,
    delete_pods,
    gathered,
    is_ending,
    pod_of,
    prefix_of,
)
from navarch.cluster.controllers.workloads.pods import is_deleting, is_ready, least_loss_first
from navarch.controller import ByMetadata, Context, Lookup, Result
from navarch.errors import NavarchError
from navarch.k8s.batch.v1 import Job, JobCondition
from navarch.k8s.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod
from navarch.operator import Operator

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


_BURST = 500
_OURS = {None, "kubernetes.io/job-controller"}
_UID_LABEL = "batch.kubernetes.io/controller-uid"


def declare_jobs(operator: Operator) -> None:
    """Adds the controller of Jobs, and one that lets go of pods whose Job is no more."""
    declare_owner(operator, Job, Pod, _reconcile)
    operator.controller(Pod, watches={Job: ByMetadata(_pods_of)}, when=_is_orphaned, until_gone=True, name="job-pods")(
        _release
    )


def _pods_of(entry: Entry, lookup: Lookup) -> Iterable[Key]:
    """The pods of a Job that is gone."""
    if lookup.get(Job, entry.key.name, namespace=entry.key.namespace) is not None:
        return ()
    pods = lookup.list(Pod, namespace=entry.key.namespace, labels={_UID_LABEL: entry.uid})
    return [Key(pod.namespace, pod.name) for pod in pods]


def _is_orphaned(change: Change) -> bool:
    """Returns True if a pod waits for its Job, and may wait in vain: it is to go, or nobody controls it."""
    pod = change.new
    return pod is not None and FINALIZER.encode() in pod.data and (pod.deleting or pod.controller is None)


async def _release(pod: Pod, ctx: Context) -> None:
    """Nobody will count a pod whose Job is gone, or over."""
    owner = next((each for each in pod.metadata.owner_references if each.controller), None)
    if not is_tracked(pod) or (owner is not None and owner.kind != "Job"):
        return
    job = await ctx.get(Job, owner.name) if owner is not None else None
    if job is None or owner is None or job.metadata.uid != owner.uid or is_finished(job):
        await let_go(pod, ctx)


async def _reconcile(job: Job, ctx: Context) -> Result | None:
    if job.spec.managed_by not in _OURS:
        return None
    if is_finished(job):
        return await _expire(job, ctx)
    if not await gathered(ctx, job, job.status.active):
        return None
    pods = await claimed(ctx, job, Pod, selector_of(job.spec.selector), finalizer=FINALIZER)
    if job.status.start_time is None and not job.spec.suspend:
        job.status.start_time = truncate_to_seconds(ctx.now())
    return await _advance(job, Tally(job, pods), ctx)


async def _advance(job: Job, tally: Tally, ctx: Context) -> Result | None:
    known = target_of(tally, ctx.now())
    failure, wait = await _managed(tally, ended=known is not None, ctx=ctx)
    now_there = Tally(job, ctx.owned(Pod))
    target = known
    if known is None and failure is None and not is_deleting(job):
        target = completed(tally, len(now_there.active), ctx.now())
    written = target is not None and condition_of(job, target.type) is not None
    more = await Counting(now_there, target, written).step(ctx)
    if target is not None and not written:
        job.status.conditions = [*(job.status.conditions or ()), target]
    elif target is None:
        _tell_suspension(job, ctx)
    _write_counts(job, Tally(job, ctx.owned(Pod)))
    if written and target is not None and not more and failure is None:
        _finish(job, target, ctx)
    if failure is not None:
        raise failure
    return _again(job, wait, more=more or (target is not None and not written), ctx=ctx)


def _write_counts(job: Job, tally: Tally) -> None:
    job.status.active = len(tally.active) or None
    job.status.ready = sum(map(is_ready, tally.active))
    job.status.terminating = len(tally.terminating)


def _again(job: Job, wait: float | None, *, more: bool, ctx: Context) -> Result | None:
    """At once if there is more to do; else when a pod may be made again, or the time is up."""
    if more:
        return Result(after=0)
    finished = is_finished(job)
    if finished is not None:
        return Result(after=0) if job.spec.ttl_seconds_after_finished is not None else None
    due = [seconds for seconds in (wait, deadline_left(job, ctx.now())) if seconds is not None]
    return Result(after=max(min(due), 0.0)) if due else None


def _tell_suspension(job: Job, ctx: Context) -> None:
    """Returns True if it rests, once it has ever rested."""
    known = next((each for each in job.status.conditions or () if each.type == "Suspended"), None)
    now, status = ctx.now(), "True" if job.spec.suspend else "False"
    if is_deleting(job) or (known.status if known else "False") == status:
        return
    word = "suspended" if job.spec.suspend else "resumed"
    condition = new_condition("Suspended", f"Job{word.capitalize()}", f"Job {word}", now, status)
    others = [each for each in job.status.conditions or () if each.type != "Suspended"]
    job.status.conditions = [*others, condition]
    job.status.start_time = None if job.spec.suspend else truncate_to_seconds(now)
    ctx.event(word.capitalize(), f"Job {word}")


def _finish(job: Job, target: JobCondition, ctx: Context) -> None:
    """The end is written down when every pod is counted and none runs any more."""
    uncounted = job.status.uncounted_terminated_pods
    if job.status.terminating or job.status.active or (uncounted and (uncounted.succeeded or uncounted.failed)):
        return
    succeeded = target.type == "SuccessCriteriaMet"
    condition = new_condition(
        "Complete" if succeeded else "Failed", target.reason or "", target.message or "", ctx.now()
    )
    job.status.conditions = [*(job.status.conditions or ()), condition]
    if succeeded:
        job.status.completion_time = condition.last_transition_time
        ctx.event("Completed", "Job completed")
    else:
        ctx.event(target.reason or "Failed", target.message or "", type="Warning")


async def _expire(job: Job, ctx: Context) -> Result | None:
    """A Job that is over goes with its pods when its time to live has passed."""
    finished, limit = is_finished(job), job.spec.ttl_seconds_after_finished
    if limit is None or finished is None or finished.last_transition_time is None or is_deleting(job):
        return None
    left = (finished.last_transition_time + timedelta(seconds=limit) - ctx.now()).total_seconds()
    if left > 0:
        return Result(after=left)
    await ctx.delete(job, propagation="Foreground")
    return None


async def _managed(tally: Tally, *, ended: bool, ctx: Context) -> tuple[NavarchError | None, float | None]:
    """Makes and deletes pods: what went wrong, and how many seconds a pod that failed has to wait for its successor."""
    try:
        if ended:
            await delete_pods(ctx, tally.active)
            return None, None
        return None, None if is_deleting(tally.job) else await _manage(tally, ctx)
    except NavarchError as error:
        return (None if is_ending(error) else error), None


async def _manage(tally: Tally, ctx: Context) -> float | None:
    job = tally.job
    wanted = 0 if job.spec.suspend else _wanted(tally)
    surplus = _surplus(tally, max(len(tally.active) - wanted, 0), ctx)
    if surplus:
        await _drop(surplus[:_BURST], ctx)
        return None
    missing = wanted - len(tally.active) - (len(tally.terminating) if replaces_failed_only(job) else 0)
    return await _add(tally, min(missing, _BURST), ctx) if missing > 0 else None


def _wanted(tally: Tally) -> int:
    """Returns how many pods should run at once."""
    spec = tally.job.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        return len(tally.active) if tally.succeeded else parallelism
    return max(min(spec.completions - tally.succeeded, parallelism), 0)


def _surplus(tally: Tally, at_least: int, ctx: Context) -> list[Pod]:
    """The pods that have to go: those that do what another one does already, and then the least loss."""
    ranked = least_loss_first(tally.active, (), ctx.now()) if at_least or is_indexed(tally.job) else []
    superfluous: list[Pod] = []
    if is_indexed(tally.job):
        best = {index_of(pod): pod for pod in ranked if tally.is_valid(pod)}
        superfluous = [pod for pod in ranked if best.get(index_of(pod)) is not pod]
    going = {pod.metadata.uid for pod in superfluous}
    others = [pod for pod in ranked if pod.metadata.uid not in going]
    return superfluous + others[: max(at_least - len(superfluous), 0)]


async def _drop(pods: list[Pod], ctx: Context) -> None:
    """These go without being counted."""
    freed = [await let_go(pod, ctx) if is_tracked(pod) else pod for pod in pods]
    await delete_pods(ctx, [pod for pod in freed if pod is not None])


async def _add(tally: Tally, count: int, ctx: Context) -> float | None:
    """Makes pods that are due; how long the next one has to wait if none is."""
    job = tally.job
    if job.spec.backoff_limit_per_index is None or not is_indexed(job):
        succeeded = [pod for pod in tally.pods if pod.status.phase == "Succeeded"]
        new_failed = {pod.metadata.uid for pod in tally.new_failed}
        failed = [pod for pod in tally.pods if pod.status.phase == "Failed" or pod.metadata.uid in new_failed]
        wait = delay_of_pods(succeeded, failed, ctx.now())
        if wait > 0:
            return wait
    if not is_indexed(job):
        await create_pods(ctx, [partial(new_pod, job)] * count)
        return None
    indexes = pending_indexes(job.spec.completions or 0, tally.busy_indexes, count)
    return await _add_indexes(tally, indexes, ctx)


async def _add_indexes(tally: Tally, indexes: list[int], ctx: Context) -> float | None:
    waits = {index: _wait(tally.to_replace.get(index), ctx) for index in indexes}
    due = [index for index, wait in waits.items() if wait <= 0]
    makers: list[Callable[[], Pod]] = [partial(new_pod, tally.job, index, tally.to_replace.get(index)) for index in due]
    await create_pods(ctx, makers)
    return None if due or not waits else min(waits.values())


def _wait(former: Pod | None, ctx: Context) -> float:
    """How long the successor of a pod that failed has to wait."""
    if former is None:
        return 0.0
    return delay_left(sum(failures_of_index(former)) + 1, finished_at(former), ctx.now())
