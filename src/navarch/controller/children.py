"""Writes the children of the reconciled object: apply, create, patch, delete and prune."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import msgspec

from navarch.api import Dynamic, Key, Kind, Object, set_controller
from navarch.cache import Collection, Entry
from navarch.client import MergePatch, Preconditions
from navarch.client.bodies import Propagation
from navarch.client.target import Readable, kind_of, reader_of
from navarch.controller.apply_cache import Child, annotations_of, digest_of
from navarch.controller.deps import ControllerDeps
from navarch.controller.reader import is_no_such_object, kind_of_object, namespace_for, view
from navarch.controller.triggers import Version, Writer
from navarch.controller.write_recorder import collection_for, is_last, record_write, wire_of
from navarch.errors import Conflict, DecodeError, InvalidValueError, NotFound

__all__ = ["Children", "Deletion", "Prune", "kinds_to_prune", "refuse_duplicates", "refuse_undeclared", "unwanted"]


Prune = bool | tuple[Readable[Any], ...]
"""Whether to delete what is no longer wanted: of all kinds in `owns`, of none, or of these."""


def kinds_to_prune(deps: ControllerDeps, prune: Prune) -> frozenset[Kind]:
    """Returns the kinds to prune; raises `InvalidValueError` for a kind that is not in `owns`."""
    if isinstance(prune, bool):
        return deps.owned if prune else frozenset()
    kinds = frozenset(kind_of(what) for what in prune)
    for kind in kinds:
        _refuse_undeclared(deps, kind, "prune")
    return kinds


def refuse_undeclared(deps: ControllerDeps, children: Iterable[Child], prune: Prune) -> None:
    """Raises `InvalidValueError` for a kind that is not in `owns`: pruning would leave its children behind."""
    if prune is True:
        for child in children:
            _refuse_undeclared(deps, child.kind, str(child))


def _refuse_undeclared(deps: ControllerDeps, kind: Kind, where: str) -> None:
    if kind not in deps.owned:
        raise InvalidValueError(
            f"{where}: expected a kind that the controller owns, got {kind}; what is no longer wanted of it could not be "
            f"found: declare owns=({kind.kind}, ...), or write prune=False"
        )


def refuse_duplicates(children: Iterable[Child]) -> None:
    """Raises `InvalidValueError` for a child that is given twice."""
    seen: set[Child] = set()
    for child in children:
        if child in seen:
            raise InvalidValueError(f"expected each object once, got {child} twice; give it another name")
        seen.add(child)


def unwanted(deps: ControllerDeps, owner_uid: str, kinds: Iterable[Kind], wanted: set[Child]) -> list[Deletion]:
    """Returns the deletions of the children of these kinds that are not wanted and not being deleted."""
    return [
        Deletion(child, uid=entry.uid)
        for kind in kinds
        for entry in deps.collections[kind].owned_by(owner_uid)
        if (child := Child(kind, entry.key)) not in wanted
        and not entry.deleting
        and entry.controller is not None
        and entry.controller.uid == owner_uid
    ]


W = TypeVar("W", bound=Object | Dynamic)


@dataclass(frozen=True, slots=True)
class Deletion:
    """An object to delete; with a `uid`, only while it has that uid."""

    child: Child
    uid: str = ""
    propagation: Propagation = "Background"
    grace_seconds: int | None = None


class _Manager(msgspec.Struct):
    manager: str = ""


class _Managed(msgspec.Struct, rename="camel"):
    managed_fields: list[_Manager] | None = None


class _ManagedHead(msgspec.Struct):
    metadata: _Managed


class Children:
    """The writes of one reconcile. The cache shows each write from the moment the server has answered it."""

    __slots__ = ("_deps", "_key", "_owner")

    def __init__(self, deps: ControllerDeps, key: Key, owner: Object) -> None:
        self._deps = deps
        self._key = key
        self._owner = owner

    async def prepared(self, desired: W, *, owned: bool) -> tuple[Child, W]:
        """Returns a copy with its namespace and, with `owned`, its controller reference; the caller's object stays as it is."""
        kind = await kind_of_object(self._deps, desired)
        twin = cast(W, desired.copy() if isinstance(desired, Object) else copy.deepcopy(desired))
        if owned:
            self._refuse_cluster_scoped(kind, twin)
            self._refuse_itself(twin)
            set_controller(twin, self._owner)
            self._deps.untriggered_children.check(self._deps.controller, kind, twin, self._deps.collections)
        namespace = namespace_for(kind, twin.namespace or None, self._key.namespace)
        if namespace and isinstance(twin, Dynamic):
            twin.metadata["namespace"] = namespace
        elif isinstance(twin, Object):
            twin.namespace = namespace
        return Child(kind, Key(namespace, twin.name)), twin

    def _refuse_cluster_scoped(self, kind: Kind, child: Object | Dynamic) -> None:
        if self._key.namespace and not kind.namespaced:
            raise InvalidValueError(
                f"{kind.kind} {child.name!r} has no namespace, so {self._owner.kind} {self._key} cannot own it: the garbage "
                f"collector would delete it; write owned=False, and delete it in a cleanup"
            )

    def _refuse_itself(self, child: Object | Dynamic) -> None:
        """Raises `InvalidValueError` for the reconciled object itself, whose copy a reconciler may want to save."""
        owner = self._owner
        here = child.namespace in {"", self._key.namespace}
        if here and (child.api_version, child.kind, child.name) == (owner.api_version, owner.kind, self._key.name):
            raise InvalidValueError(
                f"{owner.kind} {self._key} is what is reconciled, and cannot be its own child; its status is written when "
                f"the reconcile ends, and anything else by ctx.patch(object, {{...}})"
            )

    async def apply(self, child: Child, desired: W, *, force: bool) -> W:
        """Applies the object, unless the same was applied before and nothing but its status or foreign annotations has changed."""
        collection = collection_for(self._deps, child.kind, child.key.namespace)
        if collection is None:
            return await self._deps.client.apply(desired, force=force)
        before, digest = collection.entry(child.key), digest_of(desired, child.kind, self._owner.metadata.uid)
        ours = None if collection.cached.keep else annotations_of(desired)
        if before is not None and self._deps.apply_cache.is_done(self._key, child, digest, before, ours):
            found = _whole(collection, desired, before)
            if found is not None:
                return found
        written, exact = await self._sent(desired, before, force=force)
        entry = record_write(self._deps, self._key, collection, wire_of(written), before=before, exact=exact)
        self._deps.apply_cache.remember(self._key, child, digest, entry)
        return written

    async def _sent(self, desired: W, before: Entry | None, *, force: bool) -> tuple[W, bool]:
        """Returns the answer, and whether it is the version that directly follows `before`.

        The server answers an apply that changes nothing with the current version, which may be another writer's. So the known
        version is a precondition; after a conflict the apply is sent without it, and its echo triggers everybody.
        """
        client = self._deps.client
        if before is None:
            written = await client.apply(desired, force=force)
            return written, _has_no_other_manager(wire_of(written), client.options.manager)
        try:
            return await client.apply(desired, force=force, resource_version=str(before.version)), True
        except Conflict as error:
            if error.managers:
                raise
        return await client.apply(desired, force=force), False

    async def create(self, child: Child, new: W) -> W:
        """Creates the object; raises `AlreadyExists`."""
        written = await self._deps.client.create(new)
        collection = collection_for(self._deps, child.kind, child.key.namespace)
        if collection is not None:
            record_write(self._deps, self._key, collection, wire_of(written), before=None)
        return written

    async def patch(self, found: W, changes: Mapping[str, Any], subresource: str | None) -> W:
        """Patches the object; raises `Conflict` if it is no longer the version that was read."""
        kind = await kind_of_object(self._deps, found)
        key = Key(namespace_for(kind, found.namespace or None, self._key.namespace), found.name)
        collection = collection_for(self._deps, kind, key.namespace)
        before = collection.entry(key) if collection is not None else None
        patch = MergePatch({**changes, "metadata": {**changes.get("metadata", {}), "resourceVersion": _version(found)}})
        written = await self._deps.client.patch(
            reader_of(found, kind), key.name, patch, namespace=key.namespace or None, subresource=subresource
        )
        if collection is not None:
            self._record_patch(collection, before, _version(found), written)
        return written

    def _record_patch(
        self, collection: Collection[object], before: Entry | None, read: str, written: Object | Dynamic
    ) -> None:
        """Records the patch; a patch that removes the last finalizer of an object that is being deleted deletes it."""
        exact = before is not None and str(before.version) == read
        entry = record_write(self._deps, self._key, collection, wire_of(written), before=before, exact=exact)
        if is_last(wire_of(written)):
            collection.deleted(entry.key, entry.uid, writer=Writer(self._deps.controller, self._key))

    async def delete(self, deletion: Deletion) -> bool:
        """Deletes the object and returns whether it existed; with a `uid`, an object with another uid does not count.

        Without a `uid`, raises `Conflict` if another object has replaced the one that the cache knows.
        """
        child = deletion.child
        collection = collection_for(self._deps, child.kind, child.key.namespace)
        before = collection.entry(child.key) if collection is not None else None
        uid = deletion.uid or (before.uid if before is not None else "")
        self._deps.apply_cache.forget(self._key, child)
        try:
            left = await self._deps.client.delete(
                child.kind,
                child.key.name,
                namespace=child.key.namespace or None,
                propagation=deletion.propagation,
                grace_seconds=deletion.grace_seconds,
                preconditions=Preconditions(uid=uid) if uid else None,
            )
        except (NotFound, Conflict) as error:
            if not (is_no_such_object(error) if isinstance(error, NotFound) else deletion.uid):
                raise
            if collection is not None:
                collection.deleted(child.key, uid, writer=None)
            return False
        if collection is not None:
            self._record_deletion(collection, child, uid, before, left)
        return True

    def _record_deletion(
        self, collection: Collection[object], child: Child, uid: str, before: Entry | None, left: Dynamic | None
    ) -> None:
        """Records the deletion: an answer with a deletionTimestamp is an object that finalizers still keep."""
        if left is not None and left.metadata.get("deletionTimestamp"):
            record_write(self._deps, self._key, collection, wire_of(left), before=before, exact=False)
            return
        held = collection.entry(child.key)
        if before is not None and (held is None or held.uid != before.uid):
            self._deps.retract(self._key, Version(child.kind, child.key, before.version).end)
        collection.deleted(child.key, uid, writer=Writer(self._deps.controller, self._key))


def _whole(collection: Collection[object], desired: W, entry: Entry) -> W | None:
    """Returns the object from the cache in the form of `desired`; None if the cache does not keep it in that form."""
    if collection.cached.metadata_only:
        return None
    try:
        return view(collection, reader_of(desired, collection.kind), entry)
    except DecodeError:
        return None


def _version(found: Object | Dynamic) -> str:
    """Returns the resourceVersion that was read; raises `InvalidValueError` for an object that was never read."""
    version = found.metadata.resource_version if isinstance(found, Object) else found.metadata.get("resourceVersion")
    if not version:
        raise InvalidValueError(f"expected an object that was read, got {found.kind} {found.name!r} without a version")
    return str(version)


def _has_no_other_manager(data: bytes, ours: str) -> bool:
    """Returns whether the apply created the object: no other field manager has written it."""
    managers = msgspec.json.decode(data, type=_ManagedHead).metadata.managed_fields or ()
    return all(known.manager == ours for known in managers)
