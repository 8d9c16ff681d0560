"""Hooks: what a container is to do when it has started, and before it is stopped."""

from __future__ import annotations

from navarch._base.clock import Clock
from navarch.cluster.nodes.pods.checks import Target, action_fault
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import LifecycleHandler

__all__ = ["hook_fault"]


async def hook_fault(hook: LifecycleHandler, target: Target, clock: Clock) -> str | None:
    """Runs the hook to its end; returns what went wrong, or None."""
    if hook.sleep is not None:
        await clock.sleep(hook.sleep.seconds)
    try:
        return await action_fault(target, hook)
    except ContainerError as error:
        return str(error)
