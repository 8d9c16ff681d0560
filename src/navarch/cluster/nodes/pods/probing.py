"""Probes: looks at a running container, again and again, and what follows from them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.cluster.nodes.pods.checks import Target, action_fault, grpc_health_fault
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import Probe

__all__ = ["Fault", "ProbeKind", "results"]

ProbeKind = Literal["Startup", "Liveness", "Readiness"]
Fault = str | None
"""Why a probe failed; None if it did not."""


async def results(probe: Probe, target: Target, clock: Clock) -> AsyncIterator[tuple[Fault, bool | None]]:
    """What each look gives: what is wrong, and whether the container counts as well from now on (None: as before).

    A container counts as well after `successThreshold` looks in a row, as not well after `failureThreshold`.
    """
    needed = {True: probe.success_threshold or 1, False: probe.failure_threshold or 3}
    in_a_row, last = 0, None
    await clock.sleep(probe.initial_delay_seconds or 0)
    while True:
        fault = await _looked(probe, target, clock)
        well = fault is None
        in_a_row, last = (in_a_row + 1 if well is last else 1), well
        yield fault, well if in_a_row >= needed[well] else None
        await clock.sleep(probe.period_seconds or 10)


async def _looked(probe: Probe, target: Target, clock: Clock) -> Fault:
    seconds = probe.timeout_seconds or 1
    try:
        return await within(clock, seconds, _look(probe, target))
    except TimeoutError:
        return _late(probe, seconds)
    except ContainerError as error:
        return str(error)


def _late(probe: Probe, seconds: float) -> str:
    if probe.exec is not None:
        return f"command timed out: {' '.join(probe.exec.command or [])!r} timed out after {seconds}s"
    return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


async def _look(probe: Probe, target: Target) -> Fault:
    if probe.grpc is not None:
        return await grpc_health_fault(target, probe.grpc)
    return await action_fault(target, probe)
