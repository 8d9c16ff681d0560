"""`Context`: what a reconciler can read, write and report."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, overload

from navarch._base.tasks import gather_all
from navarch.api import Dynamic, Key, Object
from navarch.cache.lookup import selector_of
from navarch.client import Client
from navarch.client.bodies import Propagation
from navarch.client.rest_client import FieldSelector, LabelSelector
from navarch.client.target import Readable, kind_of
from navarch.controller.apply_cache import Child
from navarch.controller.children import (
    Children,
    Deletion,
    Prune,
    kinds_to_prune,
    refuse_duplicates,
    refuse_undeclared,
    unwanted,
)
from navarch.controller.deps import ControllerDeps
from navarch.controller.event_records import EventType
from navarch.controller.reader import (
    Query,
    kind_of_object,
    namespace_for,
    namespaces_for,
    read_many,
    read_one,
    read_orphans,
    read_owned,
)
from navarch.controller.triggers import TrackedRead, Writer
from navarch.controller.write_recorder import recording_client
from navarch.errors import ClosedError, InvalidValueError
from navarch.observe.logs import Log, ReconcileFields

__all__ = ["Context", "ThreadContext"]

T = TypeVar("T")
W = TypeVar("W", bound=Object | Dynamic)


_logger = logging.getLogger("navarch.reconcile")
_AT_ONCE = 8


class Context:
    """Reads, writes and reports of one reconcile; the reconciled object is called the owner here.

    Reads of declared kinds come from the cache, are never older than this process's own writes, and return shared objects: do
    not change them (`.copy()` first). Other reads ask the server. Writes are made by the controller's field manager and do not
    trigger the reconcile that made them.
    """

    __slots__ = ("_closed", "_deps", "_id", "_identity", "_log", "_loop", "_owner", "_waiting", "key", "reasons")

    def __init__(
        self,
        deps: ControllerDeps,
        key: Key,
        owner: Object,
        *,
        reasons: tuple[str, ...] = (),
        reconcile_id: str = "",
    ) -> None:
        self._deps = deps
        self._owner = owner
        self._id = reconcile_id
        self._identity: ReconcileFields | None = None
        self._loop = asyncio.get_running_loop()
        self._log: Log | None = None
        self._closed = False
        self._waiting: set[Future[Any]] = set()
        self.key = key
        """Namespace and name of the object."""
        self.reasons = reasons
        """Why it is reconciled."""

    # Reading

    async def get(self, what: Readable[T], name: str, *, namespace: str | None = None) -> T | None:
        """Returns the object of that name, or None. The namespace defaults to the owner's.

        A declared kind is read from the cache; an object outside of a declared selection is read from the server. A kind declared
        with `metadata_only` is read from the cache as `MetadataOnly(kind)`. Raises `DecodeError` if the object does not fit its
        model.
        """
        kind = kind_of(what)
        key = Key(namespace_for(kind, namespace, self.key.namespace), name)
        if self._deps.reads.follows(kind):
            self._deps.reads.note(self.key, kind, TrackedRead(key.namespace, name))
        return await read_one(self._deps, what, key)

    async def list(
        self,
        what: Readable[T],
        *,
        labels: LabelSelector = None,
        fields: FieldSelector = None,
        namespace: str | None = None,
        index: tuple[str, str] | None = None,
    ) -> builtins.list[T]:
        """Returns the objects that match, in no particular order, of the owner's namespace, another one, or all (`ALL`).

        An owner without a namespace lists all. A declared kind is read from the cache, within its declared selection; `fields` asks
        the server. `index` is the name of a declared index and a value. An object that does not fit its model is left out and
        logged once.
        """
        kind = kind_of(what)
        place = namespaces_for(kind, namespace, self.key.namespace)
        if self._deps.reads.follows(kind):
            self._deps.reads.note(self.key, kind, TrackedRead(place, labels=selector_of(labels), index=index))
        return await read_many(self._deps, what, Query(place, labels, fields, index))

    def owned(self, what: Readable[T]) -> builtins.list[T]:
        """Returns the objects of a kind in `owns` that the owner controls, in no particular order, from the cache.

        The children of an owner with a namespace are in the same one. Raises `InvalidValueError` for a kind that is not in `owns`.
        """
        return read_owned(self._deps, what, self._owner.metadata.uid, self.key.namespace)

    def orphans(self, what: Readable[T], labels: LabelSelector) -> builtins.list[T]:
        """Returns the objects of a kind in `owns`, in the owner's namespace, that match and have no controller, from the cache.

        To adopt one, `patch` its `ownerReferences`. Raises `InvalidValueError` for a kind that is not in `owns`.
        """
        return read_orphans(self._deps, what, self.key.namespace, labels)

    # Writing

    async def apply(self, desired: W, *, owned: bool = True, force: bool = True) -> W:
        """Applies the desired object (server-side apply) and returns the stored one, which is shared: do not change it.

        With `owned` the owner becomes its controller: it is deleted with the owner, and its changes trigger the owner. Its namespace
        defaults to the owner's. `force` takes over fields of other managers; without it `Conflict` is raised. Nothing is sent if
        this process applied the same before and only the status, or annotations of others, have changed since.
        """
        children = self._children
        return await children.apply(*await children.prepared(desired, owned=owned), force=force)

    async def apply_all(self, desired: Iterable[W], *, prune: Prune = True) -> builtins.list[W]:
        """Applies every child, several at once, then deletes those of the owner's children that are not among them.

        So `desired` has to be *all* objects that the owner is to have of the kinds in `owns`; `prune=(ConfigMap,)` deletes
        of these kinds alone, `prune=False` nothing. If an apply fails, the others are finished, nothing is deleted, and
        the first error is raised with the others in its text. Raises `InvalidValueError` for an object that is given
        twice, and for a kind that is not in `owns`.
        """
        children = self._children
        prepared = [await children.prepared(each, owned=True) for each in desired]
        names = [child for child, _ in prepared]
        refuse_duplicates(names)
        refuse_undeclared(self._deps, names, prune)
        kinds = kinds_to_prune(self._deps, prune)
        work = [partial(children.apply, child, wanted, force=True) for child, wanted in prepared]
        applied = await gather_all(work, at_once=_AT_ONCE)
        deletions = unwanted(self._deps, self._owner.metadata.uid, kinds, set(names))
        await gather_all([partial(children.delete, deletion) for deletion in deletions], at_once=_AT_ONCE)
        for deletion in deletions:
            self.log.info("deleted a child that is no longer wanted", child=str(deletion.child))
        return applied

    async def create(self, new: W, *, owned: bool = True) -> W:
        """Creates the object, owned and placed as `apply` does; raises `AlreadyExists`."""
        children = self._children
        return await children.create(*await children.prepared(new, owned=owned))

    async def patch(self, found: W, changes: Mapping[str, Any], *, subresource: str | None = None) -> W:
        """Changes this very object as it was read, by a JSON merge patch: what is named is set, None removes.

        For objects that others change too, such as one to adopt or to scale, or the reconciled object itself.
        Raises `Conflict` if it has changed since it was read, and `NotFound` if it is gone.
        """
        return await self._children.patch(found, changes, subresource)

    @overload
    async def delete(
        self,
        what: Object | Dynamic,
        *,
        propagation: Propagation = ...,
        grace_seconds: int | None = ...,
    ) -> bool: ...
    @overload
    async def delete(
        self,
        what: Readable[Any],
        name: str,
        *,
        namespace: str | None = ...,
        propagation: Propagation = ...,
        grace_seconds: int | None = ...,
    ) -> bool: ...
    async def delete(
        self,
        what: Object | Dynamic | Readable[Any],
        name: str | None = None,
        *,
        namespace: str | None = None,
        propagation: Propagation = "Background",
        grace_seconds: int | None = None,
    ) -> bool:
        """Deletes an object: the one given, or that of a kind and name. Returns whether there was one; none is no error.

        By name, an object that the cache knows is deleted only if it is still the same one: if another one has taken its
        name, `Conflict` is raised, and the next reconcile sees the new one.
        """
        if isinstance(what, (Object, Dynamic)):
            return await self._delete_object(what, propagation, grace_seconds)
        kind = kind_of(what)
        if not name:
            raise InvalidValueError(f"expected the name of one of {kind.resource} to delete, got {name!r}")
        child = Child(kind, Key(namespace_for(kind, namespace, self.key.namespace), name))
        return await self._children.delete(Deletion(child, propagation=propagation, grace_seconds=grace_seconds))

    async def _delete_object(
        self, found: Object | Dynamic, propagation: Propagation, grace_seconds: int | None
    ) -> bool:
        kind = await kind_of_object(self._deps, found)
        place = namespace_for(kind, found.namespace or None, self.key.namespace)
        uid = found.metadata.uid if isinstance(found, Object) else str(found.metadata.get("uid", ""))
        return await self._children.delete(
            Deletion(Child(kind, Key(place, found.name)), uid, propagation, grace_seconds)
        )

    @property
    def _children(self) -> Children:
        return Children(self._deps, self.key, self._owner)

    @property
    def client(self) -> Client:
        """The client for everything else: its reads go to the server.

        The cache learns of its writes from the watch; they trigger reconciles like the writes of others.
        """
        note_of = self._deps.note_of
        note = note_of(Writer(self._deps.controller, self.key)) if note_of is not None else None
        return self._deps.client if note is None else recording_client(self._deps.client, note)

    # Telling

    def event(
        self,
        reason: str,
        note: str,
        *,
        type: EventType = "Normal",  # noqa: A002 - the API's word
        regarding: Object | Dynamic | None = None,
    ) -> None:
        """Records an event about the object, or about another one; it is sent in the background.

        May be called from any thread. Raises `InvalidValueError` for a reason that no server would accept.
        """
        about = self._owner if regarding is None else regarding
        self._deps.recorder.record(about, reason, note, type=type, controller=self._deps.reporter)

    @property
    def log(self) -> Log:
        """A logger whose records name the controller, the object, the reconcile and its reasons."""
        if self._log is None:
            self._log = Log(_logger, self._identified)
        return self._log

    @property
    def reconcile_id(self) -> str:
        """Identifies this reconcile in logs."""
        return self._identified.reconcile_id

    @property
    def _identified(self) -> ReconcileFields:
        if self._identity is None:
            self._identity = ReconcileFields(self._deps.controller, self._owner.kind, self.key, self.reasons, self._id)
        return self._identity

    def now(self) -> datetime:
        """The time of day, in UTC, by the controller's clock."""
        return self._deps.clock.now()

    # Plain functions

    def wait(self, work: Awaitable[T]) -> T:
        """For reconcilers that are plain functions: `pods = ctx.wait(ctx.list(Pod))`.

        Raises `InvalidValueError` in a coroutine, which has to `await`; and `ClosedError` when the reconcile is over,
        because its time limit has passed.
        """
        fault = self._why_not_wait()
        if fault is not None:
            _dispose(work)
            raise fault
        waiting = asyncio.run_coroutine_threadsafe(_result(work), self._loop)
        self._waiting.add(waiting)
        try:
            if self._closed:  # since it was asked
                waiting.cancel()
            return waiting.result()
        except CancelledError:
            raise self._why_not_wait() or CancelledError from None
        finally:
            self._waiting.discard(waiting)

    def _why_not_wait(self) -> Exception | None:
        if self._closed:
            return ClosedError(
                f"expected the reconcile of {self._owner.kind} {self.key} to be under way, but it is over: it was cut off "
                f"at its time limit; nothing more is read or written in its name"
            )
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return None
        return InvalidValueError(
            "ctx.wait(...) is for reconcilers that are plain functions, and would block the event loop here; write await"
        )

    def close(self) -> None:
        """Ends the reconcile: `wait` in a thread that still runs raises `ClosedError` from now on."""
        self._closed = True
        for waiting in tuple(self._waiting):
            waiting.cancel()


class ThreadContext(Context):
    """The context of a reconciler that is a plain function: it finds calls that were never waited for."""

    __slots__ = ("_calls",)

    def __init__(
        self, deps: ControllerDeps, key: Key, owner: Object, *, reasons: tuple[str, ...] = (), reconcile_id: str = ""
    ) -> None:
        super().__init__(deps, key, owner, reasons=reasons, reconcile_id=reconcile_id)
        self._calls: builtins.list[tuple[str, Coroutine[Any, Any, Any]]] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("_") and inspect.iscoroutinefunction(found):
            return partial(self._noted, name, found)
        return found

    def _noted(self, name: str, method: Callable[..., Coroutine[Any, Any, Any]], *values: Any, **named: Any) -> Any:
        call = method(*values, **named)
        self._calls.append((name, call))
        return call

    def refuse_calls_without_wait(self) -> None:
        """Raises `InvalidValueError` if a call was made and never waited for: it has done nothing."""
        unwaited = [(name, call) for name, call in self._calls if inspect.getcoroutinestate(call) == "CORO_CREATED"]
        for _, call in unwaited:
            call.close()
        if unwaited:
            name = unwaited[0][0]
            raise InvalidValueError(
                f"ctx.{name}(...) was called in a plain function without ctx.wait, and did nothing; write "
                f"ctx.wait(ctx.{name}(...)), or make the function async and await it"
            )


async def _result(work: Awaitable[T]) -> T:
    return await work


def _dispose(work: Awaitable[object]) -> None:
    """Closes a coroutine that never ran: its warning would hide the error."""
    if asyncio.iscoroutine(work):
        work.close()
