"""Counting pods that have ended, each once, whatever happens in between.

A pod that ended is first named in the status as not counted; when that is written, its finalizer goes; when that is gone,
it is counted. Each reconcile takes one step: what was written by the one before it is what it goes by.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property, partial

from navarch._base.gather import gather_all
from navarch.cluster.controllers.workloads.jobs.indexes import Indexes, format_indexes, index_of
from navarch.cluster.controllers.workloads.jobs.pod_failures import judged
from navarch.cluster.controllers.workloads.jobs.tally import (
    FINALIZER,
    Tally,
    is_indexed,
    is_tracked,
    uncounted_of,
)
from navarch.cluster.controllers.workloads.pods import is_deleting
from navarch.controller import Context
from navarch.errors import NotFound
from navarch.k8s.batch.v1 import Job, JobCondition, UncountedTerminatedPods
from navarch.k8s.core.v1 import Pod

_AT_ONCE = 64
_MOST_UNCOUNTED = 500


async def let_go(pod: Pod, ctx: Context) -> Pod | None:
    """Takes the Job's finalizer off the pod; None if the pod is gone."""
    left = [each for each in pod.metadata.finalizers if each != FINALIZER]
    with contextlib.suppress(NotFound):
        return await ctx.patch(pod, {"metadata": {"finalizers": left or None}})
    return None


@dataclass(frozen=True)
class Counting:
    """One step of the counting. `target` is the decided end of the Job, if there is one."""

    tally: Tally
    target: JobCondition | None
    target_is_written: bool

    @property
    def _job(self) -> Job:
        return self.tally.job

    @cached_property
    def settled(self) -> list[Pod]:
        """The pods whose finalizers may go: they are named in the status, or need not be counted."""
        return [pod for pod in self.tally.pods if is_tracked(pod) and self._is_settled(pod)]

    def _is_settled(self, pod: Pod) -> bool:
        if is_deleting(self._job) or any(pod.metadata.uid in uids for uids in self._known):
            return True
        if not self._has_ended(pod):
            return self.target_is_written and not self._fails
        if pod.status.phase == "Succeeded" and is_indexed(self._job):
            return not self.tally.is_valid(pod) or index_of(pod) in self.tally.completed
        return not self._counts(pod) and not self._is_awaited(pod)

    @cached_property
    def _known(self) -> tuple[set[str], set[str]]:
        return uncounted_of(self._job)

    @property
    def _fails(self) -> bool:
        return self.target is not None and self.target.type == "FailureTarget"

    def _has_ended(self, pod: Pod) -> bool:
        """Returns True if it has; in a Job that fails, none goes on."""
        return pod.status.phase == "Succeeded" or self.tally.is_failed(pod) or self._fails

    def _counts(self, pod: Pod) -> bool:
        if not self.tally.is_valid(pod):
            return False
        return pod.status.phase == "Succeeded" or judged(self._job.spec.pod_failure_policy, pod).counts

    def _is_awaited(self, pod: Pod) -> bool:
        """Returns True if a pod that is to replace it needs to know it first."""
        index = index_of(pod)
        awaited = self.tally.to_replace.get(index) if index is not None and self.target is None else None
        return awaited is not None and awaited.metadata.uid == pod.metadata.uid

    async def step(self, ctx: Context) -> bool:
        """Lets settled pods go, counts those that are gone, and names those that ended; whether there is more to do."""
        new_succeeded, new_failed = self._new()
        completed = self.tally.succeeded_indexes
        await gather_all([partial(let_go, pod, ctx) for pod in self.settled], at_once=_AT_ONCE)
        gone = {pod.metadata.uid for pod in self.settled}
        tracked = {pod.metadata.uid for pod in self.tally.pods if is_tracked(pod)} - gone
        self._count(tracked)
        self._name(tracked, new_succeeded, new_failed)
        news = bool(new_succeeded or new_failed)
        if is_indexed(self._job):
            news = news or completed != self.tally.completed
            self._write_indexes(completed)
        return news or bool(self.settled)

    def _new(self) -> tuple[list[str], list[str]]:
        settled = {pod.metadata.uid for pod in self.settled}
        ended = [
            pod
            for pod in self.tally.pods
            if is_tracked(pod)
            and pod.metadata.uid not in settled
            and self._has_ended(pod)
            and self._counts(pod)
            and not self._is_awaited(pod)
        ]
        succeeded = [pod.metadata.uid for pod in ended if pod.status.phase == "Succeeded"]
        failed = [pod.metadata.uid for pod in ended if pod.status.phase != "Succeeded"]
        return ([] if is_indexed(self._job) else succeeded), failed

    def _count(self, tracked: set[str]) -> None:
        succeeded, failed = self._known
        status = self._job.status
        if not is_indexed(self._job):
            status.succeeded = (status.succeeded or 0) + len(succeeded - tracked) or None
        status.failed = (status.failed or 0) + len(failed - tracked) or None

    def _name(self, tracked: set[str], new_succeeded: list[str], new_failed: list[str]) -> None:
        succeeded, failed = self._known
        room = _MOST_UNCOUNTED - len(succeeded & tracked) - len(failed & tracked)
        named = new_succeeded[:room]
        self._job.status.uncounted_terminated_pods = UncountedTerminatedPods(
            succeeded=sorted(succeeded & tracked) + named or None,
            failed=sorted(failed & tracked) + new_failed[: room - len(named)] or None,
        )

    def _write_indexes(self, completed: Indexes) -> None:
        status, failed = self._job.status, self.tally.failed_indexes
        status.completed_indexes = format_indexes(completed) or None
        status.succeeded = len(completed) or None
        status.failed_indexes = None if failed is None else format_indexes(failed)
