"""Two directions of one connection at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["alongside"]

T = TypeVar("T")


async def alongside(main: Coroutine[Any, Any, T], helper: Coroutine[Any, Any, None]) -> T:
    """The result of `main`; `helper` runs beside it and is cancelled when `main` ends. An error of either ends both."""
    try:
        async with asyncio.TaskGroup() as tasks:
            helping = tasks.create_task(helper)
            result = await main
            helping.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures.exceptions[0].__cause__
    return result
