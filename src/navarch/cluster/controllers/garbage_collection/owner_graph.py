"""`OwnerGraph`: owners and dependents by uid; returns the objects that a change affects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from navarch.api import Key, Kind

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class OwnerReferenceInfo(msgspec.Struct, rename="camel", frozen=True):
    """One owner reference of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        """The group of the owner's kind."""
        return self.api_version.rpartition("/")[0]


class _OwnedMetadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None
    owner_references: tuple[OwnerReferenceInfo, ...] | None = None


class _OwnedObject(msgspec.Struct):
    metadata: _OwnedMetadata


_decoder = msgspec.json.Decoder(_OwnedObject)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One object: its identity, its owner references, and whether it is terminating."""

    kind: Kind
    key: Key
    uid: str
    version: str = ""
    owners: tuple[OwnerReferenceInfo, ...] = ()
    is_deleting: bool = False
    finalizers: tuple[str, ...] = ()

    @property
    def waits_for_dependents(self) -> bool:
        """Returns True if it is deleted in the foreground: it goes after what it owns."""
        return self.is_deleting and FOREGROUND in self.finalizers

    @property
    def leaves_orphans(self) -> bool:
        """Returns True if what it owns is to lose it as an owner before it goes."""
        return self.is_deleting and ORPHAN in self.finalizers

    def is_meant_by(self, reference: OwnerReferenceInfo, child: GraphNode) -> bool:
        """Returns True if `child` can own this by that reference: an owner is in the same namespace, or in none."""
        same = (reference.group, reference.kind, reference.name) == (self.kind.group, self.kind.kind, self.key.name)
        return same and self.key.namespace in {"", child.key.namespace}

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.key}"


def node_of(kind: Kind, data: bytes) -> GraphNode:
    """The node of an object's JSON; raises `msgspec.DecodeError`."""
    metadata = _decoder.decode(data).metadata
    return GraphNode(
        kind=kind,
        key=Key(metadata.namespace, metadata.name),
        uid=metadata.uid,
        version=metadata.resource_version,
        owners=metadata.owner_references or (),
        is_deleting=metadata.deletion_timestamp is not None,
        finalizers=tuple(metadata.finalizers or ()),
    )


class OwnerGraph:
    """Every observed object. `observe` and `forget` return the objects that the change affects."""

    def __init__(self) -> None:
        self._nodes: dict[str, GraphNode] = {}
        self._dependents: dict[str, dict[str, OwnerReferenceInfo]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> GraphNode | None:
        """The object of that uid, if it is there."""
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> Iterator[tuple[GraphNode, OwnerReferenceInfo]]:
        """Everything that names the object as an owner, and how."""
        for child, reference in tuple(self._dependents.get(uid, {}).items()):
            yield self._nodes[child], reference

    def blocking(self, uid: str) -> list[GraphNode]:
        """What has to be gone before an owner that is deleted in the foreground may go."""
        return [child for child, reference in self.dependents(uid) if reference.block_owner_deletion]

    def observe(self, node: GraphNode) -> set[str]:
        """An object came or changed."""
        old = self._nodes.get(node.uid)
        self._nodes[node.uid] = node
        found: set[str] = set()
        if old is None or old.owners != node.owners:
            found |= self._relink(node, old)
        if old is None:
            found.update(
                child.uid for child, reference in self.dependents(node.uid) if not node.is_meant_by(reference, child)
            )
        if node.leaves_orphans or node.waits_for_dependents:
            found.add(node.uid)
        if node.waits_for_dependents and not (old is not None and old.waits_for_dependents):
            found.update(child.uid for child, _ in self.dependents(node.uid))
        return found

    def forget(self, uid: str) -> set[str]:
        """An object is gone: what it owned has an owner less, and an owner that waits for it may go."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return set()
        self._unlink(node, node.owners)
        return {child.uid for child, _ in self.dependents(uid)} | self._waiting(node.owners)

    def invalid(self, node: GraphNode) -> Iterator[OwnerReferenceInfo]:
        """References to owners that are known, and in a namespace where they cannot own the object."""
        for reference in node.owners:
            owner = self._nodes.get(reference.uid)
            if owner is not None and owner.key.namespace not in {"", node.key.namespace}:
                yield reference

    def _relink(self, node: GraphNode, old: GraphNode | None) -> set[str]:
        before = old.owners if old is not None else ()
        self._unlink(node, before)
        for reference in node.owners:
            self._dependents.setdefault(reference.uid, {})[node.uid] = reference
        found = self._waiting(before)
        if any(not self._is_solid(reference, node) for reference in node.owners):
            found.add(node.uid)
        return found

    def _is_solid(self, reference: OwnerReferenceInfo, child: GraphNode) -> bool:
        owner = self._nodes.get(reference.uid)
        return owner is not None and owner.is_meant_by(reference, child) and not owner.waits_for_dependents

    def _unlink(self, node: GraphNode, owners: Iterable[OwnerReferenceInfo]) -> None:
        for reference in owners:
            children = self._dependents.get(reference.uid, {})
            children.pop(node.uid, None)
            if not children:
                self._dependents.pop(reference.uid, None)

    def _waiting(self, owners: Iterable[OwnerReferenceInfo]) -> set[str]:
        found = (self._nodes.get(reference.uid) for reference in owners)
        return {owner.uid for owner in found if owner is not None and owner.waits_for_dependents}
