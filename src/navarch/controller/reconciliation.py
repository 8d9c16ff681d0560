"""One reconcile of one object, from the entry in the cache to the status that is written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from navarch._base.deadlines import Deadlines
from navarch._base.tasks import is_cancelled
from navarch.cache import Collection, Entry
from navarch.controller.access import is_last, tell, wire_of
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.failure_report import clear_failed, is_failure
from navarch.controller.finalizers import Finalizer, Written
from navarch.controller.invoke import AsyncReconciler
from navarch.controller.reach import Reach, Writer
from navarch.controller.status import StatusWriter
from navarch.controller.unfit import clear_mismatch
from navarch.errors import DefinitionError

__all__ = ["Handlers", "Reconciliation"]

_AT_ONCE = Result(after=0)
"""Somebody else was faster: what was read is not what the object asks for now."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """What the user wrote for a kind: how it is reconciled and, where something has to be undone, how it is cleaned up.

    `context` is what they are called with. A finalizer is there if and only if there is a cleanup. With `until_gone` there is none, and an object that is being
    deleted is reconciled as before.
    """

    reconcile: AsyncReconciler
    cleanup: AsyncReconciler | None
    finalizer: Finalizer | None
    until_gone: bool = False
    context: type[Context] = Context


class Reconciliation:
    """Reconciles objects of one kind with what the user wrote for it."""

    def __init__(self, reach: Reach, collection: Collection[Any], handlers: Handlers, deadlines: Deadlines) -> None:
        self._reach = reach
        self._collection = collection
        self._handlers = handlers
        self._deadlines = deadlines

    async def of(self, entry: Entry, primary: Any, ctx: Context, *, is_failing: bool) -> Result | None:
        """What the reconciler, or for an object that is being deleted the cleanup, asks for; raises what it raises.

        `is_failing`: the attempt before failed, so that the object's status has to show it if this one fails, too.
        """
        handlers = self._handlers
        if entry.deleting and not handlers.until_gone:
            return await self._clean_up(entry, primary, ctx, is_failing=is_failing)
        finalizer = handlers.finalizer
        if finalizer is None or finalizer.is_on(primary):
            return await self._call(handlers.reconcile, entry, primary, ctx, is_failing=is_failing)
        written = await finalizer.add(self._reach.client, primary)
        if written is None:
            return None
        entry = self._tell_cache(entry, written)
        if not written.directly:
            return _AT_ONCE
        primary.metadata = written.found.metadata
        return await self._call(handlers.reconcile, entry, primary, ctx, is_failing=is_failing)

    async def _clean_up(self, entry: Entry, primary: Any, ctx: Context, *, is_failing: bool) -> Result | None:
        """An object without our finalizer goes without us."""
        cleanup, finalizer = self._handlers.cleanup, self._handlers.finalizer
        if cleanup is None or finalizer is None or not finalizer.is_on(primary):
            return None
        result = await self._call(cleanup, entry, primary, ctx, is_failing=is_failing)
        if result is None:
            await self._let_go(entry, finalizer)
        return result

    async def _let_go(self, entry: Entry, finalizer: Finalizer) -> None:
        """The finalizer goes from the object as it is now, whatever the cleanup has done to its copy."""
        now = self._collection.entry(entry.key)
        if now is None or now.uid != entry.uid:
            return
        written = await finalizer.remove(self._reach.client, self._collection.fresh(now))
        if written is not None:
            self._tell_cache(now, written)
            if is_last(wire_of(written.found)):
                self._collection.deleted(now.key, now.uid, writer=Writer(self._reach.controller, now.key))

    def _tell_cache(self, before: Entry, written: Written) -> Entry:
        """The entry of what was written."""
        data = wire_of(written.found)
        return tell(self._reach, before.key, self._collection, data, before=before, exact=written.directly)

    async def _call(
        self, handler: AsyncReconciler, entry: Entry, primary: Any, ctx: Context, *, is_failing: bool
    ) -> Result | None:
        """The status is written at the end, also of a handler that raises; one that is cancelled writes nothing."""
        status = StatusWriter(entry, primary)
        clear_mismatch(primary)
        try:
            with self._deadlines.limit():
                result = await _called(handler, primary, ctx)
            _refuse_other(result, self._reach.controller)
        except Exception as error:
            await self._write_after(error, status, primary, is_failing=is_failing)
            raise
        clear_failed(primary)
        # The generation of an object that goes is nobody's concern any more.
        await status.write(self._reach, primary, succeeded=not entry.deleting)
        return result

    async def _write_after(self, error: Exception, status: StatusWriter, primary: Any, *, is_failing: bool) -> None:
        failure = error if is_failing and is_failure(error) else None
        try:
            await status.write(self._reach, primary, succeeded=False, failure=failure)
        except Exception as second:  # noqa: BLE001 - the first error is the one to raise
            error.add_note(f"and its status could not be written: {second}")


async def _called(handler: AsyncReconciler, primary: Any, ctx: Context) -> Result | None:
    """What would end the whole program, or looks like a cancellation without being one, is a failure like any other."""
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
