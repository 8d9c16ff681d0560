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
from navarch.controller.context import Context, ThreadContext
from navarch.controller.contract import Result

__all__ = ["AsyncReconciler", "Reconciler", "Threads", "is_plain"]

AsyncReconciler = Callable[[Any, Context], Awaitable[Result | None]]
Reconciler = AsyncReconciler | Callable[[Any, Context], Result | None]


def is_plain(function: Reconciler) -> bool:
    """Whether the function is called in a thread: it, or the object that is called, is no coroutine function."""
    return not any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004 - as said


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
        if not is_plain(function):
            return function  # type: ignore[return-value]  # as was just seen

        async def in_thread(primary: Any, ctx: Context) -> Any:
            call = partial(copy_context().run, function, primary, ctx)
            future = self._running[ctx.key] = self._pool.submit(call)
            result = await asyncio.wrap_future(future)
            if inspect.isawaitable(result):  # a plain function may wrap a coroutine, as decorators do
                return await result
            if isinstance(ctx, ThreadContext):
                ctx.refuse_calls_without_wait()
            return result

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
