"""One reconcile of one object: its finalizer, the call of the user's function, and the status at the end."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from navarch._base.deadlines import Deadlines
from navarch._base.tasks import is_cancelled
from navarch._base.threads import ThreadPool, is_plain
from navarch.api import Key, Kind, Object
from navarch.api.names import LABEL_KEY
from navarch.cache import Collection, Entry
from navarch.client import Client, MergePatch
from navarch.controller.context import Context, ThreadContext
from navarch.controller.contract import Result
from navarch.controller.deps import ControllerDeps
from navarch.controller.outcomes import clear_failed, is_failure
from navarch.controller.status import StatusWriter, clear_mismatch
from navarch.controller.triggers import Writer
from navarch.controller.write_recorder import is_last, record_write, wire_of
from navarch.errors import Conflict, DefinitionError, NotFound

__all__ = ["Finalizer", "Handlers", "Reconciliation", "Threads", "finalizer_name"]


AsyncReconciler = Callable[[Any, Context], Awaitable[Result | None]]
Reconciler = AsyncReconciler | Callable[[Any, Context], Result | None]


class Threads:
    """Runs the plain functions of one controller in at most `count` threads, which start when they are needed.

    A thread cannot be stopped. A call past its time limit is abandoned, but its key stays taken until the function has ended:
    see `when_free`.
    """

    def __init__(self, name: str, count: int) -> None:
        self._pool = ThreadPool(name, count)
        self._running: dict[Key, Future[Any]] = {}

    def awaitable(self, function: Reconciler) -> AsyncReconciler:
        """Returns the function as a coroutine function."""
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
        """Stops idle threads now and the others when their call ends; does not wait for them."""
        self._pool.close()


def _tell(loop: asyncio.AbstractEventLoop, then: Callable[[], None], _: Future[Any]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
        loop.call_soon_threadsafe(then)


def finalizer_name(operator: str, controller: str, kind: Kind) -> str:
    """Returns a name that no other operator, and no other controller of this one, has.

    >>> finalizer_name("memcached-operator", "reconcile", Kind("cache.example.com", "v1", "Memcached", plural="memcacheds"))
    'cache.example.com/memcached-operator.reconcile'
    """
    return f"{kind.group or 'core'}/{operator}.{controller}"


class Written(NamedTuple):
    """An object after a write; `directly` says that it is the version that follows the one that was read."""

    found: Object
    directly: bool


class Finalizer:
    """One finalizer of one controller; while an object has it, its deletion waits for the cleanup.

    Adding it twice and removing it twice change nothing. Raises `InvalidValueError` for a name that no server would accept.
    """

    def __init__(self, name: str) -> None:
        self.name = LABEL_KEY.check(name, where="the name of a finalizer")

    def is_on(self, primary: Object) -> bool:
        """Returns whether the object has it."""
        return self.name in primary.metadata.finalizers

    async def add(self, client: Client, primary: Object) -> Written | None:
        """Returns the object with the finalizer; None if it is gone or being deleted."""
        return await self._set(client, primary, present=True)

    async def remove(self, client: Client, primary: Object) -> Written | None:
        """Returns the object without the finalizer; None if it is gone."""
        return await self._set(client, primary, present=False)

    async def _set(self, client: Client, primary: Object, *, present: bool) -> Written | None:
        """Patches the version that was read; after a conflict the newer object is read first."""
        try:
            return Written(await self._patch(client, primary, present=present), directly=True)
        except NotFound:
            return None
        except Conflict:
            return await self._set_on_newer(client, primary, present=present)

    async def _set_on_newer(self, client: Client, primary: Object, *, present: bool) -> Written | None:
        """Patches the current object, if it has the same uid and still lacks the change."""
        try:
            newer = await client.get(type(primary), primary.name, namespace=primary.namespace or None)
            if newer.metadata.uid != primary.metadata.uid or (present and newer.metadata.deletion_timestamp):
                return None
            if self.is_on(newer) != present:
                newer = await self._patch(client, newer, present=present)
        except NotFound:
            return None
        return Written(newer, directly=False)

    async def _patch(self, client: Client, primary: Object, *, present: bool) -> Object:
        others = [name for name in primary.metadata.finalizers if name != self.name]
        finalizers = [*others, self.name] if present else others
        metadata = {"resourceVersion": primary.metadata.resource_version, "finalizers": finalizers or None}
        return await client.patch(
            type(primary), primary.name, MergePatch({"metadata": metadata}), namespace=primary.namespace or None
        )


_AT_ONCE = Result(after=0)
"""Somebody else was faster: what was read is not what the object asks for now."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """The user's functions for a kind: the reconciler and, if there is one, the cleanup.

    `context` is the class of their second argument. There is a finalizer if and only if there is a cleanup. With `until_gone`
    there is neither, and an object that is being deleted is still reconciled.
    """

    reconcile: AsyncReconciler
    cleanup: AsyncReconciler | None
    finalizer: Finalizer | None
    until_gone: bool = False
    context: type[Context] = Context


class Reconciliation:
    """Reconciles objects of one kind with the user's functions."""

    def __init__(
        self, deps: ControllerDeps, collection: Collection[Any], handlers: Handlers, deadlines: Deadlines
    ) -> None:
        self._deps = deps
        self._collection = collection
        self._handlers = handlers
        self._deadlines = deadlines

    async def of(self, entry: Entry, primary: Any, ctx: Context, *, is_failing: bool) -> Result | None:
        """Returns the result of the reconciler or, for an object that is being deleted, of the cleanup; raises its error.

        With `is_failing` the attempt before failed: if this one fails too, the status shows it.
        """
        handlers = self._handlers
        if entry.deleting and not handlers.until_gone:
            return await self._clean_up(entry, primary, ctx, is_failing=is_failing)
        finalizer = handlers.finalizer
        if finalizer is None or finalizer.is_on(primary):
            return await self._call(handlers.reconcile, entry, primary, ctx, is_failing=is_failing)
        written = await finalizer.add(self._deps.client, primary)
        if written is None:
            return None
        entry = self._record(entry, written)
        if not written.directly:
            return _AT_ONCE
        primary.metadata = written.found.metadata
        return await self._call(handlers.reconcile, entry, primary, ctx, is_failing=is_failing)

    async def _clean_up(self, entry: Entry, primary: Any, ctx: Context, *, is_failing: bool) -> Result | None:
        """Calls the cleanup; an object without the finalizer of this controller needs none."""
        cleanup, finalizer = self._handlers.cleanup, self._handlers.finalizer
        if cleanup is None or finalizer is None or not finalizer.is_on(primary):
            return None
        result = await self._call(cleanup, entry, primary, ctx, is_failing=is_failing)
        if result is None:
            await self._remove_finalizer(entry, finalizer)
        return result

    async def _remove_finalizer(self, entry: Entry, finalizer: Finalizer) -> None:
        """Removes the finalizer from the current object, whatever the cleanup did to its copy."""
        now = self._collection.entry(entry.key)
        if now is None or now.uid != entry.uid:
            return
        written = await finalizer.remove(self._deps.client, self._collection.fresh(now))
        if written is not None:
            self._record(now, written)
            if is_last(wire_of(written.found)):
                self._collection.deleted(now.key, now.uid, writer=Writer(self._deps.controller, now.key))

    def _record(self, before: Entry, written: Written) -> Entry:
        """Records the write; returns its entry."""
        data = wire_of(written.found)
        return record_write(self._deps, before.key, self._collection, data, before=before, exact=written.directly)

    async def _call(
        self, handler: AsyncReconciler, entry: Entry, primary: Any, ctx: Context, *, is_failing: bool
    ) -> Result | None:
        """Calls the handler and writes the status, also if it raises; a cancelled handler writes nothing."""
        status = StatusWriter(entry, primary)
        clear_mismatch(primary)
        try:
            with self._deadlines.limit():
                result = await _called(handler, primary, ctx)
            _refuse_other(result, self._deps.controller)
        except Exception as error:
            await self._write_after(error, status, primary, is_failing=is_failing)
            raise
        clear_failed(primary)
        # The generation of an object that goes is nobody's concern any more.
        await status.write(self._deps, primary, succeeded=not entry.deleting)
        return result

    async def _write_after(self, error: Exception, status: StatusWriter, primary: Any, *, is_failing: bool) -> None:
        failure = error if is_failing and is_failure(error) else None
        try:
            await status.write(self._deps, primary, succeeded=False, failure=failure)
        except Exception as second:  # noqa: BLE001 - the first error is the one to raise
            error.add_note(f"and its status could not be written: {second}")


async def _called(handler: AsyncReconciler, primary: Any, ctx: Context) -> Result | None:
    """Calls the handler; `SystemExit` and a cancellation that nobody requested become failures of this key."""
    try:
        return await handler(primary, ctx)
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise RuntimeError(f"expected a reconciler to return or to raise an Exception, got {error!r}") from error


def _refuse_other(result: object, controller: str) -> None:
    if result is not None and not isinstance(result, Result):
        raise DefinitionError(
            f"{controller}: expected None or Result(after=...) from a reconciler, got {type(result).__name__}; "
            f"return Result(after=30) to be called again in 30 s"
        )
