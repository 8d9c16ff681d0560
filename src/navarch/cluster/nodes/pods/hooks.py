"""Hooks: what a container is to do when it has started, and before it is stopped."""

from __future__ import annotations

from navarch._base.clock import Clock
from navarch.cluster.nodes.pods.checks import Target, exec_fault, http_fault, tcp_fault
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import LifecycleHandler

__all__ = ["hook_fault"]


async def hook_fault(hook: LifecycleHandler, target: Target, clock: Clock) -> str | None:
    """Runs the hook to its end; returns what went wrong, or None."""
    try:
        if hook.exec is not None:
            return await exec_fault(target, hook.exec)
        if hook.http_get is not None:
            return await http_fault(target, hook.http_get)
        if hook.tcp_socket is not None:
            return await tcp_fault(target, hook.tcp_socket)
    except ContainerError as error:
        return str(error)
    if hook.sleep is not None:
        await clock.sleep(hook.sleep.seconds)
    return None
