"""Applying many objects with a client that is asynchronous: the same for all of them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from peers import work


async def apply_each(wanted: list[Any], apply: Callable[[Any], Awaitable[Any]]) -> None:
    """Applies each of them, so many at a time, and reports."""
    began, left = time.perf_counter(), iter(wanted)

    async def apply_some() -> None:
        for one in left:
            await apply(one)

    async with asyncio.TaskGroup() as group:
        for _ in range(work.AT_A_TIME):
            group.create_task(apply_some())
    work.report(began, len(wanted))
