"""Computes the status of a simulated pod as a kubelet would write it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.nodes.simulated.life import PodLife, SimulatedContainers
from navarch.cluster.nodes.simulated.pod_view import ContainerView, PodView

_DONE: Final = {"exitCode": 0, "reason": "Completed"}
Json = dict[str, Any]


def pod_status(life: PodLife, host: str, now: str) -> Json:
    """Returns the status without the fields that others set. A condition with the same status keeps its transition
    time.
    """
    pod = life.pod
    known = {condition.type: condition for condition in pod.status.conditions}
    conditions = []
    for condition in _conditions(life):
        before = known.get(condition["type"])
        same = before is not None and before.status == condition["status"]
        condition["lastTransitionTime"] = (before.last_transition_time if same and before else None) or now
        conditions.append(condition)
    failure = life.failure
    return {
        "phase": _phase(life),
        "reason": failure.reason or "Failed" if failure is not None else None,
        "message": failure.message or None if failure is not None else None,
        "observedGeneration": pod.metadata.generation or None,
        "conditions": conditions,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": life.address,
        "podIPs": [{"ip": life.address}],
        "startTime": life.start_time,
        **({"initContainerStatuses": [*_initial(life)]} if pod.spec.init_containers else {}),
        "containerStatuses": [_container(each, life.containers, pod) for each in pod.spec.containers],
    }


def without_nulls(status: Json) -> Json:
    """Returns the status without nulls, for a pod that has no status yet."""
    conditions = [_present(condition) for condition in status["conditions"]]
    return {**_present(status), "conditions": conditions}


def _present(values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _phase(life: PodLife) -> str:
    here = life.containers
    if life.failure is not None:
        return "Failed"
    if life.is_over:
        return "Succeeded" if here.ended is not None and here.ended["exitCode"] == 0 else "Failed"
    return "Running" if here.has_run else "Pending"


def _conditions(life: PodLife) -> Iterator[Json]:
    generation = life.pod.metadata.generation or None
    containers = _containers_ready(life)
    ready = containers
    if life.containers.ready and (gates := _closed_gates(life.pod)):
        ready = _condition(holds=False, reason="ReadinessGatesNotReady", message=gates)
    found = {
        "PodReadyToStartContainers": _condition(holds=not life.is_over),
        "Initialized": _condition(holds=True),
        "Ready": ready,
        "ContainersReady": containers,
        "PodScheduled": _condition(holds=True),
    }
    for kind, condition in found.items():
        yield {"type": kind, **condition, "observedGeneration": generation}
    for kind, status in life.containers.conditions.items():
        yield {"type": kind, "status": status}


def _containers_ready(life: PodLife) -> Json:
    if life.is_over:
        return _condition(holds=False, reason="PodCompleted" if _phase(life) == "Succeeded" else "PodFailed")
    if life.containers.ready:
        return _condition(holds=True)
    names = " ".join(each.name for each in life.pod.spec.containers)
    return _condition(holds=False, reason="ContainersNotReady", message=f"containers with unready status: [{names}]")


def _condition(*, holds: bool, reason: str | None = None, message: str | None = None) -> Json:
    return {"status": "True" if holds else "False", "reason": reason, "message": message}


def _closed_gates(pod: PodView) -> str:
    """What the conditions lack that the pod waits for beside its containers."""
    known = {condition.type: condition.status for condition in pod.status.conditions}
    closed = [gate.condition_type for gate in pod.spec.readiness_gates if known.get(gate.condition_type) != "True"]
    return "; ".join(f'the status of pod readiness gate "{kind}" is not "True"' for kind in closed)


def _container(spec: ContainerView, here: SimulatedContainers, pod: PodView) -> Json:
    ended = {**here.ended, "containerID": _id(spec, here, pod)} if here.ended is not None else None
    if here.state == "running":
        state: Json = {"running": {"startedAt": here.started_at}}
    elif here.state == "ended":
        state = {"terminated": ended}
    else:
        state = {"waiting": {"reason": here.reason, **({"message": here.message} if here.message else {})}}
    last = {"terminated": ended} if ended is not None and here.state != "ended" else {}
    return {
        **_base(spec, here, pod),
        "ready": here.ready,
        "started": here.state == "running",
        "state": state,
        "lastState": last,
    }


def _initial(life: PodLife) -> Iterator[Json]:
    """Those that run before the others have done so in no time; those that stay are as the others are."""
    here, pod = life.containers, life.pod
    for spec in pod.spec.init_containers:
        if spec.restart_policy == "Always":
            yield _container(spec, here, pod)
        else:
            times = {"startedAt": life.start_time, "finishedAt": life.start_time}
            state = {"terminated": {**_DONE, **times}} if here.has_run else {"waiting": {"reason": "PodInitializing"}}
            rest = {"ready": here.has_run, "started": False, "state": state, "lastState": {}, "restartCount": 0}
            yield {**_base(spec, here, pod), **rest}


def _base(spec: ContainerView, here: SimulatedContainers, pod: PodView) -> Json:
    started = {"containerID": _id(spec, here, pod)} if here.has_run else {}
    return {"name": spec.name, "image": spec.image, "imageID": spec.image, "restartCount": here.restarts, **started}


def _id(spec: ContainerView, here: SimulatedContainers, pod: PodView) -> str:
    return f"simulated://{pod.metadata.uid}/{spec.name}/{here.restarts}"
