"""A thread pool for blocking functions, and how to tell them from coroutine functions."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _WorkItem(Generic[T]):
    def __init__(self, function: Callable[[], T]) -> None:
        self.function = function
        self.future: Future[T] = Future()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.function())
        except BaseException as error:  # noqa: BLE001 - whoever waits for the result gets it
            self.future.set_exception(error)


class ThreadPool:
    """A pool of at most `count` daemon threads, created on demand.

    Unlike the standard library's pool, a function that never returns does not keep the program from ending.
    """

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._calls: SimpleQueue[_WorkItem[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Runs the function in the next free thread; a call that has not started can be cancelled."""
        call = _WorkItem(function)
        self._calls.put(call)
        if len(self._threads) < self._count:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return call.future

    def close(self) -> None:
        """Ends each thread once all submitted calls have run; returns at once."""
        for _ in self._threads:
            self._calls.put(None)
        self._threads = []

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()


def is_plain(function: Callable[..., Any]) -> bool:
    """Returns whether the function has to run in a thread: neither it nor its `__call__` is a coroutine function."""
    return not any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004 - as said
