"""Rules of Jobs and CronJobs: defaults, columns, fields, generated selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.batch.checks import (
    check_cron_job,
    check_job,
    check_job_update,
    cron_job_name_faults,
    job_status,
)
from navarch.cluster.server.kinds.builtin.generic.columns import (
    NONE,
    UNKNOWN,
    Ages,
    containers,
    human_duration,
    name_of,
    selector,
)
from navarch.cluster.server.kinds.builtin.generic.strategy import BuiltinStatusStrategy, Rules
from navarch.cluster.server.kinds.builtin.pods.checks import cron_job_warnings, workload_warnings
from navarch.cluster.server.kinds.builtin.pods.columns import template_of
from navarch.cluster.server.kinds.builtin.pods.defaults import default_pod_spec
from navarch.cluster.server.objects.types import DeletionRules, WriteContext
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.times import readable_time

_NO_LIMIT: Final = 2**31 - 1


def default_job(value: Json) -> None:
    """A Job: its labels are its template's if it has none."""
    spec = value["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _NO_LIMIT if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels:
        value["metadata"].setdefault("labels", {**labels})
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    _default_job_spec(spec)


def _default_job_spec(spec: Json) -> None:
    default_pod_spec(spec["template"]["spec"])
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition["status"] = condition.get("status") or "True"


def default_cron_job(value: Json) -> None:
    """A CronJob. The template of its jobs gets what any pod template gets, but not what jobs do."""
    spec = value["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    _default_job_spec(spec["jobTemplate"]["spec"])


_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""The conditions of a job in the order in which they count; the one without a name is its deletion."""


def job_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, status, completions, duration, age; containers, images, selector."""
    return [
        name_of(value),
        _job_state(value),
        _completions(value),
        _duration(value.get("status", {}), ages),
        ages.of(value),
        *containers(template_of(value)),
        selector(value["spec"].get("selector")),
    ]


def _job_state(value: Json) -> str:
    true = {each["type"] for each in value.get("status", {}).get("conditions") or () if each.get("status") == "True"}
    if value["metadata"].get("deletionTimestamp"):
        true.add("")
    return next((state for condition, state in _JOB_STATES if condition in true), "Running")


def _completions(value: Json) -> str:
    spec, succeeded = value["spec"], value.get("status", {}).get("succeeded", 0)
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(status: Json, ages: Ages) -> str:
    started, ended = status.get("startTime"), status.get("completionTime")
    if not started:
        return ""
    if not ended:
        return ages.since(started)
    began, finished = readable_time(started), readable_time(ended)
    return UNKNOWN if began is None or finished is None else human_duration(finished.since(began))


def cron_job_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, schedule, time zone, suspend, active, last schedule, age; containers, images, selector."""
    spec, status = value["spec"], value.get("status", {})
    last = status.get("lastScheduleTime")
    job = spec.get("jobTemplate", {}).get("spec", {})
    return [
        name_of(value),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        str(bool(spec.get("suspend"))),
        len(status.get("active") or ()),
        ages.since(last) if last else NONE,
        ages.of(value),
        *containers(template_of({"spec": job})),
        selector(job.get("selector")),
    ]


_JOB_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")


def create_job(value: Json, _: WriteContext) -> None:
    """A job selects its pods by its own uid, unless it says how."""
    if value["spec"].get("manualSelector"):
        return
    uid, name = value["metadata"].get("uid", ""), value["metadata"].get("name", "")
    labels = {**dict.fromkeys(_UID_LABELS, uid), **dict.fromkeys(_JOB_LABELS, name)}
    template = value["spec"]["template"].setdefault("metadata", {})
    template["labels"] = {**(template.get("labels") or {}), **labels}
    selector = value["spec"].setdefault("selector", {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _UID_LABELS[0]: uid}
    value["metadata"].setdefault("labels", {**template["labels"]})


def job_fields(value: Json) -> Mapping[str, str]:
    """Returns the selectable fields of a Job: the number of succeeded pods."""
    return {"status.successful": str((value.get("status") or {}).get("succeeded", 0))}


class JobStatusStrategy(BuiltinStatusStrategy):
    """`jobs/status`: how a Job fares."""

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:
        """A Job without labels has those of its template when it is read again, which one that goes is not."""
        super().prepare_update(value, old, operation)
        labels = (value["spec"]["template"].get("metadata") or {}).get("labels")
        if labels and "deletionTimestamp" not in old["metadata"]:
            value["metadata"].setdefault("labels", {**labels})


_ORPHAN_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)

RULES: Final[dict[tuple[str, str], Rules]] = {
    ("batch/v1", "jobs"): Rules(
        deletion=DeletionRules(orphans_dependents=True, orphan_warning=_ORPHAN_WARNING),
        unknown_field_label='field label "{path}" not supported for Job',
        default=default_job,
        create=create_job,
        check=check_job,
        check_status=job_status,
        check_update=check_job_update,
        warnings=workload_warnings,
        counts_generation=True,
        fields=job_fields,
        cells=job_cells,
        subresources={"status": JobStatusStrategy},
    ),
    ("batch/v1", "cronjobs"): Rules(
        default=default_cron_job,
        check=check_cron_job,
        warnings=cron_job_warnings,
        name_faults=cron_job_name_faults,
        counts_generation=True,
        cells=cron_job_cells,
    ),
}
