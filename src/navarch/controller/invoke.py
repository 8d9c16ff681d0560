"""Calling a user's function: a coroutine on the event loop, a plain one in a thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from navarch.api import Key
from navarch.controller.context import Context
from navarch.controller.contract import Result

__all__ = ["AsyncReconciler", "Reconciler", "Threads"]

AsyncReconciler = Callable[[Any, Context], Awaitable[Result | None]]
Reconciler = AsyncReconciler | Callable[[Any, Context], Result | None]


class Threads:
    """Runs the plain functions of one controller, in so many threads and no more; none are made before they are needed.

    A thread cannot be stopped. A call that is cut off is given up, but its key is not free before the function has
    ended: `when_free` tells.
    """

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._pool: ThreadPoolExecutor | None = None
        self._running: dict[Key, Future[Any]] = {}

    def awaitable(self, function: Reconciler) -> AsyncReconciler:
        """The function as a coroutine; one that is a coroutine already stays as it is."""
        if inspect.iscoroutinefunction(function):
            return function

        async def in_thread(primary: Any, ctx: Context) -> Any:
            future = self._running[ctx.key] = self._submit(function, primary, ctx)
            return await asyncio.wrap_future(future)

        return in_thread

    def when_free(self, key: Key, then: Callable[[], None]) -> None:
        """Calls `then` on this loop: at once, or when the thread that still works on the key has ended."""
        future = self._running.pop(key, None)
        if future is None or future.done():
            then()
            return
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(then))

    def close(self) -> None:
        """Begins nothing more; does not wait for what runs."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _submit(self, function: Reconciler, primary: Any, ctx: Context) -> Future[Any]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._count, thread_name_prefix=self._name)
        return self._pool.submit(function, primary, ctx)
