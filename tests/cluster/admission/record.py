"""What a fresh real server answers where webhooks, policies and plug-ins have a say: `make judge NAME=admission`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import rig
from cluster.admission import plugin_cases, policy_cases, review_cases, webhook_cases
from cluster.admission.engines import Engine, real
from cluster.admission.hooks import serving
from judge import KUBE_APISERVER, Recording, Verdicts
from navarch._base.clock import SystemClock

DATA = Path(__file__).parent / "data"
SETTLING = 4.0
"""Seconds in which the server fetches the parameters of policies that it knows."""


async def webhook_answers(engine: Engine, folder: Path) -> dict[str, Any]:
    """The answer to each case."""
    async with serving(folder, webhook_cases.answers()) as server:
        await webhook_cases.install(engine, server)
        found = {name: webhook_cases.compared(await webhook_cases.ask(engine, name)) for name in webhook_cases.CASES}
        await webhook_cases.remove(engine)
    return found


async def policy_answers(engine: Engine, settling: float = 0.0) -> dict[str, Any]:
    """The answer to each case."""
    await policy_cases.install(engine)
    await SystemClock().sleep(settling)
    found = {name: webhook_cases.compared(await policy_cases.ask(engine, name)) for name in policy_cases.CASES}
    await policy_cases.remove(engine)
    return found


async def plugin_answers(engine: Engine, settle: Callable[[], Awaitable[None]]) -> dict[str, Any]:
    """The answer to each step; after those that others depend on, at least a second passes."""
    found = {}
    for step in plugin_cases.STEPS:
        found[step.name] = plugin_cases.compared(step, await plugin_cases.take(engine, step))
        if step.settles:
            await settle()
    return found


async def reviews(engine: Engine, folder: Path) -> list[Any]:
    """What webhooks are shown."""
    async with serving(folder) as server:
        await review_cases.install(engine, server)
        await review_cases.run(engine)
        await review_cases.remove(engine)
    return review_cases.shown(server)


async def settle_really() -> None:
    """Waits until the real server's caches know."""
    await SystemClock().sleep(1.1)


async def _asked(cluster: rig.Cluster, folder: Path) -> Verdicts:
    async with real(cluster) as engine:
        return {
            "webhooks.json": await webhook_answers(engine, folder),
            "reviews.json": await reviews(engine, folder),
            "plugins.json": await plugin_answers(engine, settle_really),
            "policies.json": await policy_answers(engine, SETTLING),
        }


def ask(cluster: rig.Cluster) -> Verdicts:
    """Puts every question."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_asked(cluster, Path(folder)))


RECORDING = Recording(
    "admission", KUBE_APISERVER, DATA, ("plugins.json", "policies.json", "reviews.json", "webhooks.json"), ask
)
