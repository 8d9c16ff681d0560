"""Waiting for a cluster, and what is created in it."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

from navarch import Client
from navarch._base.clock import SystemClock
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Container, PodSpec, ServiceAccount

_LOOK_SECONDS, _MOST_SECONDS = 0.05, 120.0


async def until(holds: Callable[[], Awaitable[object]], what: str) -> None:
    """Looks again and again; raises when it takes too long."""
    clock = SystemClock()
    limit = clock.monotonic() + _MOST_SECONDS
    while not await holds():
        if clock.monotonic() > limit:
            raise TimeoutError(f"expected {what} within {_MOST_SECONDS:g} s")
        await clock.sleep(_LOOK_SECONDS)


async def until_accounts(client: Client) -> None:
    """Pods can be created when there is a ServiceAccount for them."""
    await until(lambda: _is_there(client), "a default ServiceAccount")


async def _is_there(client: Client) -> bool:
    with contextlib.suppress(NotFound):
        await client.get(ServiceAccount, "default")
        return True
    return False


def pod_spec() -> PodSpec:
    """One container that asks for little, and no token: what it would do with it is not measured."""
    return PodSpec(containers=[Container(name="main", image="none")], automount_service_account_token=False)
