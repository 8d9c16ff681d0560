"""`PodView`: the fields of a pod that simulated nodes read; only they are decoded."""

from __future__ import annotations

from typing import Any, Final

import msgspec


class _MetadataView(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class ContainerView(msgspec.Struct, rename="camel"):
    """A container of the spec."""

    name: str
    image: str = ""
    restart_policy: str = ""


class _ReadinessGateView(msgspec.Struct, rename="camel"):
    condition_type: str


class _SpecView(msgspec.Struct, rename="camel"):
    containers: tuple[ContainerView, ...]
    init_containers: tuple[ContainerView, ...] = ()
    node_name: str = ""
    restart_policy: str = "Always"
    host_network: bool = False
    readiness_gates: tuple[_ReadinessGateView, ...] = ()


class ConditionView(msgspec.Struct, rename="camel"):
    """A condition of the status."""

    type: str
    status: str
    last_transition_time: str | None = None


class _RunningView(msgspec.Struct, rename="camel"):
    started_at: str | None = None


class _StateView(msgspec.Struct):
    running: _RunningView | None = None
    terminated: dict[str, Any] | None = None


class _ContainerStatusView(msgspec.Struct, rename="camel"):
    restart_count: int = 0
    state: _StateView = msgspec.field(default_factory=_StateView)
    last_state: _StateView = msgspec.field(default_factory=_StateView)


class _StatusView(msgspec.Struct, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: str | None = None
    conditions: tuple[ConditionView, ...] = ()
    container_statuses: tuple[_ContainerStatusView, ...] = ()


class PodView(msgspec.Struct):
    """The part of a pod that a simulated node reads."""

    metadata: _MetadataView
    spec: _SpecView
    status: _StatusView = msgspec.field(default_factory=_StatusView)

    @property
    def are_containers_ready(self) -> bool:
        """Returns whether the condition ContainersReady is true."""
        return any(each.type == "ContainersReady" and each.status == "True" for each in self.status.conditions)

    @property
    def is_held(self) -> bool:
        """Returns whether the pod has terminated and only finalizers keep it."""
        return bool(self.metadata.finalizers) and self.metadata.deletion_grace_period_seconds == 0

    @property
    def is_over(self) -> bool:
        """Returns whether the pod has ended for good."""
        return self.status.phase in {"Succeeded", "Failed"}


_decoder: Final = msgspec.json.Decoder(PodView)


def decode_pod(data: bytes) -> PodView:
    """Decodes the pod; raises `msgspec.DecodeError`."""
    return _decoder.decode(data)
