"""The rows of what runs pods."""

from __future__ import annotations

from typing import Any, Final

from navarch.cluster.server.kinds.builtin.cells.age import UNKNOWN, Ages, human_duration
from navarch.cluster.server.kinds.builtin.cells.texts import NONE, containers, labels, name, selector
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.times import readable_time

__all__ = [
    "cron_job_cells",
    "daemon_set_cells",
    "deployment_cells",
    "job_cells",
    "pod_template_cells",
    "replica_set_cells",
    "replication_controller_cells",
    "revision_cells",
    "stateful_set_cells",
]

_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""The conditions of a job in the order in which they count; the one without a name is its deletion."""


def _template(value: Json) -> Json:
    found: Json = ((value.get("spec", {}).get("template") or {}).get("spec")) or {}
    return found


def deployment_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, ready, up to date, available, age; containers, images, selector."""
    spec, status = value["spec"], value.get("status", {})
    return [
        name(value),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        ages.of(value),
        *containers(_template(value)),
        selector(spec.get("selector")),
    ]


def replica_set_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, desired, current, ready, age; containers, images, selector."""
    return [*_replicas(value, ages), selector(value["spec"].get("selector"))]


def replication_controller_cells(value: Json, ages: Ages) -> list[Any]:
    """The same for a ReplicationController."""
    return [*_replicas(value, ages), labels(value["spec"].get("selector"))]


def _replicas(value: Json, ages: Ages) -> list[Any]:
    spec, status = value["spec"], value.get("status", {})
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name(value), *counts, ages.of(value), *containers(_template(value))]


def stateful_set_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, ready, age; containers, images."""
    ready = f"{value.get('status', {}).get('readyReplicas', 0)}/{value['spec'].get('replicas', 0)}"
    return [name(value), ready, ages.of(value), *containers(_template(value))]


def daemon_set_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, desired, current, ready, up to date, available, node selector, age; containers, images, selector."""
    status = value.get("status", {})
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    template = _template(value)
    return [
        name(value),
        *(status.get(field, 0) for field in fields),
        labels(template.get("nodeSelector")),
        ages.of(value),
        *containers(template),
        selector(value["spec"].get("selector")),
    ]


def job_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, status, completions, duration, age; containers, images, selector."""
    return [
        name(value),
        _job_state(value),
        _completions(value),
        _duration(value.get("status", {}), ages),
        ages.of(value),
        *containers(_template(value)),
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
        name(value),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        str(bool(spec.get("suspend"))),
        len(status.get("active") or ()),
        ages.since(last) if last else NONE,
        ages.of(value),
        *containers(_template({"spec": job})),
        selector(job.get("selector")),
    ]


def pod_template_cells(value: Json, _: Ages) -> list[Any]:
    """Name, containers, images, labels of the pods."""
    template = value["template"]
    return [name(value), *containers(template.get("spec", {})), labels(template.get("metadata", {}).get("labels"))]


def revision_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, controller, revision, age."""
    owners = value["metadata"].get("ownerReferences") or ()
    controller = next((each for each in owners if each.get("controller")), None)
    return [name(value), _owner(controller) if controller else NONE, value.get("revision", 0), ages.of(value)]


def _owner(owner: Json) -> str:
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"
