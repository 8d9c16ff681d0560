"""Computes the status of a pod from the records of its containers, as Kubernetes' kubelet does, and writes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from navarch._base.backoff import Backoff, Delays
from navarch.api import from_builtins, to_builtins, truncate_to_seconds
from navarch.client import StrategicPatch
from navarch.cluster.nodes.pods.container_record import ContainerRecord
from navarch.cluster.nodes.pods.sandbox import PodSandbox
from navarch.errors import ApiError, Conflict, NavarchError, NotFound, ServerError, TooManyRequests
from navarch.k8s.core.v1 import Container, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus

_log = logging.getLogger("navarch.nodes")
_PAUSE: Final = Backoff(initial=0.2, maximum=10.0)
_WHOLE: Final = ("podIPs", "hostIPs")
_CLEARED: Final = {"reason": None, "message": None}
Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


class PodStatusWriter:
    """Writes the status that `compute` returns, after each call of `changed` while `run` runs."""

    def __init__(self, sandbox: PodSandbox, compute: Callable[[], PodStatus]) -> None:
        self._sandbox = sandbox
        self._compute = compute
        self._dirty = asyncio.Event()
        self._written: dict[str, Any] | None = None

    def changed(self) -> None:
        """Notifies that the status may have changed."""
        self._dirty.set()

    async def run(self) -> None:
        """Writes until it is cancelled; changes that come together are written together."""
        while True:
            await self._dirty.wait()
            await self._sandbox.deps.clock.sleep(0)
            await self.write()

    async def write(self) -> None:
        """Writes the status if it changed; retries until the API server has accepted it or the pod is deleted."""
        delays = Delays(_PAUSE, self._sandbox.deps.client.rng)
        while True:
            self._dirty.clear()
            try:
                await self._write_once()
            except (NotFound, Conflict):  # it is gone, or another one has its name
                return
            except NavarchError as error:
                if not _may_pass(error):
                    _log.warning(
                        "writing the status of pod %s/%s failed: %s",
                        self._sandbox.pod.namespace,
                        self._sandbox.pod.name,
                        error,
                    )
                    return
                await self._sandbox.deps.clock.sleep(delays.next_delay())
            else:
                return

    async def _write_once(self) -> None:
        status = _wire(self._compute())
        if status == self._written:
            return
        pod = self._sandbox.pod
        patch = StrategicPatch({"metadata": {"uid": pod.metadata.uid}, "status": status})
        found = await self._sandbox.deps.client.patch(
            Pod, pod.name, patch, namespace=pod.namespace, subresource="status"
        )
        self._written = status
        if int(found.metadata.resource_version) > int(self._sandbox.pod.metadata.resource_version):
            self._sandbox.pod = found


def _may_pass(error: NavarchError) -> bool:
    return not isinstance(error, ApiError) or isinstance(error, (ServerError, TooManyRequests))


def _wire(status: PodStatus) -> dict[str, Any]:
    """Returns the status as a patch; lists that are merged by key name the removed entries."""
    found: dict[str, Any] = to_builtins(status)
    found["conditions"] = [{**_CLEARED, **condition} for condition in found["conditions"]]
    for name in _WHOLE:
        if name in found:
            found[name] = [*found[name], {"$patch": "replace"}]
    return found


@dataclass(slots=True)
class PodState:
    """The state of a pod beside its containers. `reason` is set if the pod failed as a whole; `over` means that no
    container restarts.
    """

    start_time: datetime
    node_address: str
    address: str = ""
    prepared: bool = False
    over: bool = False
    reason: str | None = None
    message: str | None = None


def ephemeral_containers(pod: Pod) -> list[Container]:
    """Returns the ephemeral containers as ordinary containers."""
    added = [to_builtins(each) for each in pod.spec.ephemeral_containers or []]
    for each in added:
        each.pop("targetContainerName", None)
    return [from_builtins(Container, each) for each in added]


def is_sidecar(container: Container) -> bool:
    """Returns whether an init container keeps running beside the main containers."""
    return container.restart_policy == "Always"


def pod_status(
    pod: Pod, records: Mapping[str, ContainerRecord], state: PodState, images: Mapping[str, str], now: datetime
) -> PodStatus:
    """Returns the status without the fields that others set."""
    init = [records[each.name] for each in pod.spec.init_containers or []]
    main = [records[each.name] for each in pod.spec.containers]
    phase = phase_of(pod, init, main, state)
    known = {condition.type: condition for condition in pod.status.conditions or []}
    conditions = _conditions(pod, records, state, phase, known)
    return PodStatus(
        phase=phase,
        reason=state.reason,
        message=state.message,
        observed_generation=pod.metadata.generation or None,
        conditions=[_dated(condition, known, pod, now) for condition in conditions],
        host_ip=state.node_address,
        host_ips=[HostIP(ip=state.node_address)],
        pod_ip=state.address or None,
        pod_ips=[PodIP(ip=state.address)] if state.address else None,
        start_time=truncate_to_seconds(state.start_time),
        init_container_statuses=[each.status(images.get(each.spec.name, ""), initial=True) for each in init] or None,
        container_statuses=[each.status(images.get(each.spec.name, "")) for each in main],
        ephemeral_container_statuses=_ephemeral_statuses(pod, records, images) or None,
    )


def _ephemeral_statuses(
    pod: Pod, records: Mapping[str, ContainerRecord], images: Mapping[str, str]
) -> list[ContainerStatus]:
    names = [each.name for each in pod.spec.ephemeral_containers or [] if each.name in records]
    return [records[name].status(images.get(name, "")) for name in names]


def phase_of(pod: Pod, init: Sequence[ContainerRecord], main: Sequence[ContainerRecord], state: PodState) -> Phase:
    """Returns the phase of the pod."""
    if state.reason is not None:
        return "Failed"
    policy = pod.spec.restart_policy or "Always"
    if policy == "Never" and any(_has_failed(each) for each in init if not is_sidecar(each.spec)):
        return "Failed"
    if any(not _is_initialized(each) for each in init) and not state.over:
        return "Pending"
    if any(not _was_there(each) for each in main):
        return "Failed" if state.over else "Pending"
    if any(each.is_running for each in main):
        return "Running"
    succeeded = all(each.terminated is not None and each.terminated.exit_code == 0 for each in main)
    if not state.over and (policy == "Always" or any(each.is_running for each in init)):
        return "Running"
    if succeeded:
        return "Succeeded"
    return "Failed" if state.over or policy == "Never" else "Running"


def _was_there(record: ContainerRecord) -> bool:
    """Returns whether the container runs or has run."""
    before = record.last_state is not None and record.last_state.terminated is not None
    return record.is_running or record.terminated is not None or before


def _has_failed(record: ContainerRecord) -> bool:
    return record.terminated is not None and record.terminated.exit_code != 0


def _is_initialized(record: ContainerRecord) -> bool:
    if is_sidecar(record.spec):
        return record.started
    return record.terminated is not None and record.terminated.exit_code == 0


def _conditions(
    pod: Pod,
    records: Mapping[str, ContainerRecord],
    state: PodState,
    phase: Phase,
    known: Mapping[str, PodCondition],
) -> list[PodCondition]:
    init = [records[each.name] for each in pod.spec.init_containers or []]
    main = [records[each.name] for each in pod.spec.containers]
    found = [
        _condition("PodReadyToStartContainers", holds=state.prepared and not state.over),
        _initialized(init, phase, state),
    ]
    containers = _containers_ready([*(each for each in init if is_sidecar(each.spec)), *main], phase)
    ready = _ready(pod, containers, known)
    scheduled = known.get("PodScheduled") or _condition("PodScheduled", holds=True)
    return [*found, ready, containers, PodCondition(type="PodScheduled", status=scheduled.status)]


def _condition(kind: str, *, holds: bool, reason: str | None = None, message: str | None = None) -> PodCondition:
    return PodCondition(type=kind, status="True" if holds else "False", reason=reason, message=message)


def _initialized(init: Sequence[ContainerRecord], phase: Phase, state: PodState) -> PodCondition:
    if phase == "Succeeded":
        return _condition("Initialized", holds=True, reason="PodCompleted")
    missing = [each.spec.name for each in init if not _is_initialized(each)]
    if state.over and all(each.has_run for each in init if each.spec.name in missing):
        missing = [
            name for name in missing if not any(is_sidecar(each.spec) for each in init if each.spec.name == name)
        ]
    if not missing:
        return _condition("Initialized", holds=True)
    message = f"containers with incomplete status: [{' '.join(missing)}]"
    return _condition("Initialized", holds=False, reason="ContainersNotInitialized", message=message)


def _containers_ready(records: Sequence[ContainerRecord], phase: Phase) -> PodCondition:
    if phase == "Succeeded":
        return _condition("ContainersReady", holds=False, reason="PodCompleted")
    if phase == "Failed":
        return _condition("ContainersReady", holds=False, reason="PodFailed")
    missing = [each.spec.name for each in records if not each.ready]
    if not missing:
        return _condition("ContainersReady", holds=True)
    message = f"containers with unready status: [{' '.join(missing)}]"
    return _condition("ContainersReady", holds=False, reason="ContainersNotReady", message=message)


def _ready(pod: Pod, containers: PodCondition, known: Mapping[str, PodCondition]) -> PodCondition:
    if containers.status != "True":
        return _condition("Ready", holds=False, reason=containers.reason, message=containers.message)
    faults = [_gate_fault(gate.condition_type, known) for gate in pod.spec.readiness_gates or []]
    missing = [fault for fault in faults if fault]
    if not missing:
        return _condition("Ready", holds=True)
    return _condition("Ready", holds=False, reason="ReadinessGatesNotReady", message="; ".join(missing))


def _gate_fault(kind: str, known: Mapping[str, PodCondition]) -> str:
    if kind not in known:
        return f'corresponding condition of pod readiness gate "{kind}" does not exist.'
    status = known[kind].status
    return "" if status == "True" else f'the status of pod readiness gate "{kind}" is not "True", but {status}'


def _dated(condition: PodCondition, known: Mapping[str, PodCondition], pod: Pod, now: datetime) -> PodCondition:
    before = known.get(condition.type)
    same = before is not None and before.status == condition.status
    condition.last_transition_time = (before.last_transition_time if same and before else None) or truncate_to_seconds(
        now
    )
    condition.observed_generation = pod.metadata.generation or None
    return condition
