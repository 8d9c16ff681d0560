"""One reconcile of one object, from the entry in the cache to the status that is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from navarch._base.deadlines import Deadlines
from navarch.cache import Collection, Entry
from navarch.controller.access import tell, wire_of
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.finalizers import Finalizer, Written
from navarch.controller.invoke import AsyncReconciler
from navarch.controller.reach import Reach
from navarch.controller.status import StatusWriter
from navarch.controller.unfit import clear_mismatch
from navarch.errors import DefinitionError

__all__ = ["Handlers", "Reconciliation"]


@dataclass(frozen=True, slots=True)
class Handlers:
    """What the user wrote for a kind: how it is reconciled and, where something has to be undone, how it is cleaned up."""

    reconcile: AsyncReconciler
    cleanup: AsyncReconciler | None
    finalizer: Finalizer


class Reconciliation:
    """Reconciles objects of one kind with what the user wrote for it."""

    def __init__(self, reach: Reach, collection: Collection[Any], handlers: Handlers, deadlines: Deadlines) -> None:
        self._reach = reach
        self._collection = collection
        self._handlers = handlers
        self._deadlines = deadlines

    async def of(self, entry: Entry, primary: Any, ctx: Context) -> Result | None:
        """What the reconciler, or for an object that is being deleted the cleanup, asks for; raises what it raises."""
        handlers = self._handlers
        if entry.deleting:
            return await self._clean_up(entry, primary, ctx)
        if handlers.cleanup is not None and not handlers.finalizer.is_on(primary):
            if not await self._add_finalizer(entry, primary):
                return None
            entry = self._collection.entry(entry.key) or entry
        return await self._call(handlers.reconcile, entry, primary, ctx)

    async def _clean_up(self, entry: Entry, primary: Any, ctx: Context) -> Result | None:
        """An object without our finalizer goes without us."""
        handlers = self._handlers
        if handlers.cleanup is None or not handlers.finalizer.is_on(primary):
            return None
        result = await self._call(handlers.cleanup, entry, primary, ctx)
        if result is None:
            self._tell_cache(entry, await handlers.finalizer.remove(self._reach.client, primary))
        return result

    async def _add_finalizer(self, entry: Entry, primary: Any) -> bool:
        """Whether the object has it now; the private copy goes on as the version that has it."""
        written = await self._handlers.finalizer.add(self._reach.client, primary)
        if written is None:
            return False
        self._tell_cache(entry, written)
        primary.metadata = written.found.metadata
        return True

    def _tell_cache(self, entry: Entry, written: Written | None) -> None:
        if written is not None:
            data = wire_of(written.found)
            tell(self._reach, entry.key, self._collection, data, before=entry, exact=written.directly)

    async def _call(self, handler: AsyncReconciler, entry: Entry, primary: Any, ctx: Context) -> Result | None:
        """The status is written at the end, also of a handler that raises; one that is cancelled writes nothing."""
        status = StatusWriter(entry, primary)
        clear_mismatch(primary)
        try:
            with self._deadlines.limit():
                result = await handler(primary, ctx)
        except Exception as error:
            await self._write_after(error, status, primary)
            raise
        _refuse_other(result, self._reach.controller)
        # The generation of an object that goes is nobody's concern any more.
        await status.write(self._reach, primary, succeeded=not entry.deleting)
        return result

    async def _write_after(self, error: Exception, status: StatusWriter, primary: Any) -> None:
        try:
            await status.write(self._reach, primary, succeeded=False)
        except Exception as second:  # noqa: BLE001 - the first error is the one to raise
            error.add_note(f"and its status could not be written: {second}")


def _refuse_other(result: object, controller: str) -> None:
    if result is not None and not isinstance(result, Result):
        raise DefinitionError(
            f"{controller}: expected None or Result(after=...) from a reconciler, got {type(result).__name__}"
        )
