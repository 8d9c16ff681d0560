"""Calling a user's function: a coroutine on the event loop, a plain one in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any

from navarch._base.threads import ThreadPool
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
        self._pool = ThreadPool(name, count)
        self._running: dict[Key, Future[Any]] = {}

    def awaitable(self, function: Reconciler) -> AsyncReconciler:
        """The function as a coroutine; one that is a coroutine already stays as it is."""
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - an object that is called
            return function  # type: ignore[return-value]  # as was just seen

        async def in_thread(primary: Any, ctx: Context) -> Any:
            call = partial(copy_context().run, function, primary, ctx)
            future = self._running[ctx.key] = self._pool.submit(call)
            result = await asyncio.wrap_future(future)
            # A plain function may wrap a coroutine, as decorators do.
            return await result if inspect.isawaitable(result) else result

        return in_thread

    def when_free(self, key: Key, then: Callable[[], None]) -> None:
        """Calls `then` on this loop: at once, or when the thread that still works on the key has ended."""
        future = self._running.pop(key, None)
        if future is None or future.done():
            then()
            return
        future.add_done_callback(partial(_tell, asyncio.get_running_loop(), then))

    def close(self) -> None:
        """Lets the threads go that are idle, and the others when they are done; does not wait for them."""
        self._pool.close()


def _tell(loop: asyncio.AbstractEventLoop, then: Callable[[], None], _: Future[Any]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
        loop.call_soon_threadsafe(then)
