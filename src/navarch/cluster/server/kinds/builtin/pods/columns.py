"""Columns of pods and PodTemplates."""

from __future__ import annotations

from typing import Any

import msgspec

from navarch.cluster.server.kinds.builtin.generic.columns import NONE, Ages, containers, labels, name_of
from navarch.cluster.server.wire.request import Json


def template_of(value: Json) -> Json:
    found: Json = ((value.get("spec", {}).get("template") or {}).get("spec")) or {}
    return found


def pod_template_cells(value: Json, _: Ages) -> list[Any]:
    """Name, containers, images, labels of the pods."""
    template = value["template"]
    return [name_of(value), *containers(template.get("spec", {})), labels(template.get("metadata", {}).get("labels"))]


_ENDED = frozenset({"Succeeded", "Failed"})


class _Summary(msgspec.Struct):
    """The summary of a pod's containers."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""

    def count_restarts(self, status: Json) -> None:
        self.restarts += status.get("restartCount", 0)
        ended = (status.get("lastState") or {}).get("terminated") or {}
        self.last_restart = max(self.last_restart, ended.get("finishedAt") or "")


def pod_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, ready, status, restarts, age; and, for wide tables, address, node, nominated node and readiness gates."""
    spec, status = value.get("spec", {}), value.get("status", {})
    summary = _summary(spec, status)
    inits = spec.get("initContainers") or ()
    total = len(spec.get("containers") or ()) + sum(each.get("restartPolicy") == "Always" for each in inits)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts = f"{restarts} ({ages.since(summary.last_restart)} ago)"
    return [
        name_of(value),
        f"{summary.ready}/{total}",
        _reason(value, status, summary.reason),
        restarts,
        ages.of(value),
        ((status.get("podIPs") or [{}])[0].get("ip")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _summary(spec: Json, status: Json) -> _Summary:
    gated = any(
        each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated"
        for each in status.get("conditions") or ()
    )
    phase = status.get("reason") or status.get("phase", "")
    summary = _Summary("SchedulingGated" if gated else phase)
    if not _add_init_containers(summary, spec, status) or _is_true(status, "Initialized"):
        _add_containers(summary, spec, status)
    return summary


def _add_init_containers(summary: _Summary, spec: Json, status: Json) -> bool:
    """Adds the init containers; returns True while the pod waits for one of them."""
    inits = spec.get("initContainers") or ()
    restartable = _restartable(spec)
    for index, each in enumerate(status.get("initContainerStatuses") or ()):
        summary.count_restarts(each)
        state = each.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode") == 0:
            continue
        if each.get("name") in restartable and each.get("started"):
            summary.ready += bool(each.get("ready"))
            continue
        summary.reason = f"Init:{_init_reason(state) or f'{index}/{len(inits)}'}"
        return True
    return False


def _init_reason(state: Json) -> str:
    if (ended := state.get("terminated")) is not None:
        return _ended_reason(ended)
    waiting: str = (state.get("waiting") or {}).get("reason", "")
    return "" if waiting == "PodInitializing" else waiting


def _restartable(spec: Json) -> set[str]:
    return {each["name"] for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"}


def _add_containers(summary: _Summary, spec: Json, status: Json) -> None:
    """Restarts of init containers that have ended count no more."""
    summary.restarts, summary.last_restart = 0, ""
    for each in status.get("initContainerStatuses") or ():
        if each.get("name") in _restartable(spec):
            summary.count_restarts(each)
    running, failure = False, ""
    for each in reversed(status.get("containerStatuses") or ()):
        summary.count_restarts(each)
        state = each.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            summary.reason = state["waiting"]["reason"]
        elif (ended := state.get("terminated")) is not None:
            summary.reason = _ended_reason(ended)
            failure = summary.reason if ended.get("exitCode") else failure
        elif each.get("ready") and "running" in state:
            running = True
            summary.ready += 1
    if summary.reason == "Completed":
        summary.reason = _completed_reason(status, failure, running=running)


def _ended_reason(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _completed_reason(status: Json, failure: str, *, running: bool) -> str:
    """One container has ended well; the pod is what the others are."""
    if running and _is_true(status, "Ready"):
        return "Running"
    return failure or ("NotReady" if running else "Completed")


def _is_true(status: Json, condition: str) -> bool:
    return any(
        each.get("type") == condition and each.get("status") == "True" for each in status.get("conditions") or ()
    )


def _reason(value: Json, status: Json, reason: str) -> str:
    if not value.get("metadata", {}).get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in _ENDED else "Terminating"


def _gates(spec: Json, status: Json) -> str:
    gates = spec.get("readinessGates") or ()
    met = sum(_is_true(status, each.get("conditionType", "")) for each in gates)
    return f"{met}/{len(gates)}" if gates else NONE
