"""`GarbageCollector`: deletes objects whose owners are gone, with the propagation policy that the deletion asked for."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final, NamedTuple

import msgspec

from navarch.api import Kind
from navarch.cache import Change
from navarch.client import MergePatch, MetadataOnly, PartialObjectMetadata, Preconditions
from navarch.client.bodies import Propagation
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.garbage_collection.metadata_informers import MetadataInformers
from navarch.cluster.controllers.garbage_collection.owner_graph import (
    FOREGROUND,
    ORPHAN,
    GraphNode,
    OwnerGraph,
    OwnerReferenceInfo,
    node_of,
)
from navarch.cluster.workers import Workers
from navarch.errors import NotFound
from navarch.queue import LOW, NORMAL

_log = logging.getLogger("navarch.cluster.controllers")
_REPORTER: Final = "garbage-collector-controller"
_CONCURRENCY: Final = 16
_ABSENT_KEPT: Final = 500


class _GarbageItem(NamedTuple):
    """An object in the queue, which is fair between namespaces."""

    namespace: str
    uid: str


class _Owners(NamedTuple):
    """The owners of an object: existing ones, missing ones, and those that wait for its deletion."""

    solid: list[OwnerReferenceInfo]
    dangling: list[OwnerReferenceInfo]
    waiting: list[OwnerReferenceInfo]


class GarbageCollector:
    """Deletes objects whose owners are all gone, in the background or before their owners, or takes the owners off them.

    The owner graph is kept from metadata alone. An owner that it does not have is asked for before anything is deleted.
    """

    def __init__(self, context: ControllerContext, kinds: MetadataInformers) -> None:
        self._client = context.client.using(manager="garbage-collector")
        self._recorder = context.recorder
        self._graph = OwnerGraph()
        self._absent: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._kinds = kinds
        kinds.subscribe(self._changed)
        self._workers: Workers[_GarbageItem] = Workers(
            "garbage collection", context.clock, context.rng, self._attend, concurrency=_CONCURRENCY
        )

    async def run(self) -> None:
        """Collects until it is cancelled."""
        await self._kinds.wait_synced()
        await self._workers.run()

    # What is seen

    def _changed(self, kind: Kind, change: Change) -> None:
        if change.new is None:
            uid = change.newest.uid
            self._remember_absent(change.newest.key.namespace, uid)
            self._enqueue(self._graph.forget(uid))
            return
        try:
            node = node_of(kind, change.new.data)
        except msgspec.DecodeError as error:
            _log.warning(
                "decoding %s %s failed: %s; the garbage collector ignores it", kind.kind, change.new.key, error
            )
            return
        self._enqueue(self._graph.observe(node), LOW if change.initial else NORMAL)

    def _enqueue(self, uids: set[str], priority: int = NORMAL) -> None:
        for uid in uids:
            node = self._graph.get(uid)
            if node is not None:
                self._workers.queue.add(_GarbageItem(node.key.namespace, uid), priority=priority)

    def _tell_invalid(self, node: GraphNode, reference: OwnerReferenceInfo) -> None:
        namespace = node.key.namespace
        owner = (
            f"[{reference.api_version}/{reference.kind}, namespace: {namespace}, name: {reference.name}, "
            f"uid: {reference.uid}]"
        )
        note = f'ownerRef {owner} does not exist in namespace "{namespace}"'
        about = _partial(node)
        self._recorder.record(about, "OwnerRefInvalidNamespace", note, type="Warning", controller=_REPORTER)

    # What is done

    async def _attend(self, item: _GarbageItem) -> None:
        node = self._graph.get(item.uid)
        if node is None:
            return
        if node.leaves_orphans:
            await self._orphan(node)
        elif node.waits_for_dependents:
            await self._let_go_after_dependents(node)
        elif not node.is_deleting and node.owners:
            await self._judge(node)

    async def _orphan(self, node: GraphNode) -> None:
        for child, _ in self._graph.dependents(node.uid):
            await self._disown(child, {node.uid})
        await self._remove_finalizer(node, ORPHAN)

    async def _let_go_after_dependents(self, node: GraphNode) -> None:
        blocking = self._graph.blocking(node.uid)
        if not blocking:
            await self._remove_finalizer(node, FOREGROUND)
        self._enqueue({child.uid for child in blocking if not child.is_deleting})

    async def _judge(self, node: GraphNode) -> None:
        """Whoever has an owner that stays, stays too, and loses the others."""
        for reference in self._graph.invalid(node):
            self._tell_invalid(node, reference)
        owners = await self._sorted(node)
        if owners is None:
            return
        if owners.solid:
            if gone := owners.dangling + owners.waiting:
                await self._disown(node, {reference.uid for reference in gone})
        elif owners.waiting and any(True for _ in self._graph.dependents(node.uid)):
            await self._break_circle(node)
            await self._delete(node, "Foreground")
        else:
            await self._delete(node, _propagation(node))

    async def _sorted(self, node: GraphNode) -> _Owners | None:
        """None if it cannot be told: an object in no namespace may name an owner that is in one, which cannot be found."""
        found = _Owners([], [], [])
        for reference in node.owners:
            owner = self._graph.get(reference.uid)
            if owner is not None and owner.is_meant_by(reference, node):
                (found.waiting if owner.waits_for_dependents else found.solid).append(reference)
            elif (node.key.namespace, reference.uid) in self._absent:
                found.dangling.append(reference)
            else:
                live = await self._live_owner(node, reference)
                if live is None:
                    return None
                (found.solid if live else found.dangling).append(reference)
        return found

    async def _live_owner(self, node: GraphNode, reference: OwnerReferenceInfo) -> bool | None:
        """Returns True if the server has that owner; None if it is of a kind that cannot own the object, and is not looked for.

        A kind that is not served raises `NotFound`, and comes again: nothing is deleted because of it.
        """
        kind = await self._client.discovery.kind(reference.api_version, reference.kind)
        if kind.namespaced and not node.key.namespace:
            _log.info(
                "%s has an owner reference to the namespaced %s %s; it is ignored", node, reference.kind, reference.name
            )
            return None
        namespace = node.key.namespace if kind.namespaced else None
        try:
            found = await self._client.get(MetadataOnly(kind), reference.name, namespace=namespace)
        except NotFound:
            found = None
        if found is not None and found.metadata.uid == reference.uid:
            return True
        self._remember_absent(node.key.namespace, reference.uid)
        return False

    def _remember_absent(self, namespace: str, uid: str) -> None:
        """A uid is never used again; where it was looked for, it will never be found."""
        self._absent[(namespace, uid)] = None
        if len(self._absent) > _ABSENT_KEPT:
            self._absent.popitem(last=False)

    async def _break_circle(self, node: GraphNode) -> None:
        """Two that own each other, both deleted in the foreground, would wait for each other for ever."""
        if any(child.waits_for_dependents for child, _ in self._graph.dependents(node.uid)):
            found = await self._read(node)
            if found is None:
                return
            references = [{**each, "blockOwnerDeletion": False} for each in _references(found)]
            await self._patch(found, node, {"ownerReferences": references})

    async def _delete(self, node: GraphNode, propagation: Propagation) -> None:
        """Only as it was judged: if it has changed since, it is judged anew."""
        conditions = Preconditions(uid=node.uid, resource_version=node.version)
        try:
            await self._client.delete(
                MetadataOnly(node.kind),
                node.key.name,
                namespace=node.key.namespace or None,
                propagation=propagation,
                preconditions=conditions,
            )
        except NotFound:
            return

    async def _disown(self, node: GraphNode, owners: set[str]) -> None:
        found = await self._read(node)
        if found is None:
            return
        left = [each for each in _references(found) if each["uid"] not in owners]
        if len(left) < len(_references(found)):
            await self._patch(found, node, {"ownerReferences": left or None})

    async def _remove_finalizer(self, node: GraphNode, name: str) -> None:
        found = await self._read(node)
        finalizers = (found.metadata.finalizers or []) if found is not None else []
        if found is not None and name in finalizers:
            left = [each for each in finalizers if each != name]
            await self._patch(found, node, {"finalizers": left or None})

    async def _read(self, node: GraphNode) -> PartialObjectMetadata | None:
        """The object as it is now; None if it is gone, or is another one of the same name."""
        try:
            found = await self._client.get(MetadataOnly(node.kind), node.key.name, namespace=node.key.namespace or None)
        except NotFound:
            return None
        return found if found.metadata.uid == node.uid else None

    async def _patch(self, found: PartialObjectMetadata, node: GraphNode, changes: dict[str, object]) -> None:
        metadata = {"uid": node.uid, "resourceVersion": found.metadata.resource_version, **changes}
        try:
            await self._client.patch(
                MetadataOnly(node.kind),
                node.key.name,
                MergePatch({"metadata": metadata}),
                namespace=node.key.namespace or None,
            )
        except NotFound:
            return


def _references(found: PartialObjectMetadata) -> list[dict[str, object]]:
    references: list[dict[str, object]] = msgspec.to_builtins(found.metadata.owner_references or [])
    return references


def _propagation(node: GraphNode) -> Propagation:
    """How its deletion goes on below it: as its own finalizers ask for."""
    if ORPHAN in node.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in node.finalizers else "Background"


def _partial(node: GraphNode) -> PartialObjectMetadata:
    data = {"metadata": {"name": node.key.name, "namespace": node.key.namespace, "uid": node.uid}}
    return MetadataOnly(node.kind).from_json(msgspec.json.encode(data))
