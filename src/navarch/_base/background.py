"""Work that goes on beside its owner, until the owner ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from navarch._base.tasks import cancel_and_wait

__all__ = ["Background"]

_log = logging.getLogger("navarch.background")


class Background:
    """Tasks of one owner, for owners whose beginning and end are not in one task, as with fixtures of tests.

    Where they are, use a TaskGroup. Work that fails is logged, and the rest goes on.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Begins the work."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Cancels what still goes on and returns when it has ended."""
        await cancel_and_wait(*self._tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)
