"""Checks of the signals that containers are stopped by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.checks.common import choice
from navarch.cluster.server.wire.causes import forbidden, required, unsupported
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["check_os", "check_stop_signals"]

_NAMES: Final = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP "
    "TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX"
)
_SIGNALS: Final[dict[str, list[str]]] = {
    "linux": sorted(
        [f"SIG{name}" for name in _NAMES.split()]
        + [f"SIGRTMIN+{number}" for number in range(1, 16)]
        + [f"SIGRTMAX-{number}" for number in range(1, 15)]
    ),
    "windows": ["SIGKILL", "SIGTERM"],
}
"""Which there are depends on the system; a node knows no others."""


def check_os(system: Json | None, path: str) -> Iterator[Cause]:
    """The system that a pod is for."""
    if system is None:
        return
    if not system.get("name"):
        yield required(f"{path}.name", "cannot be empty")
    elif system["name"] not in _SIGNALS:
        yield unsupported(path, system["name"], sorted(_SIGNALS))


def check_stop_signals(spec: Json, path: str) -> Iterator[Cause]:
    """Those of all containers: each is one of the pod's system, which the pod has to name."""
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            signal = (container.get("lifecycle") or {}).get("stopSignal")
            if signal is not None:
                yield from _check(signal, spec.get("os"), f"{path}.{kind}[{index}].lifecycle.stopSignal")


def _check(signal: Any, system: Json | None, field: str) -> Iterator[Cause]:
    if system is None:
        yield forbidden(field, "may not be set for containers with empty `spec.os.name`")
    elif (known := _SIGNALS.get(system.get("name", ""))) is not None:
        yield from choice(signal, field, known)
