"""`NamespaceDeletion`: deletes the content of a terminating namespace, pods first, then removes its finalizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from navarch._base.backoff import Backoff
from navarch.api import Key, Kind
from navarch.cache import Change
from navarch.client import Client, MetadataOnly
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.garbage_collection.metadata_informers import deletable
from navarch.cluster.workers import Workers
from navarch.errors import NavarchError, NotFound
from navarch.k8s.core.v1 import Namespace, NamespaceCondition


@dataclass(frozen=True, slots=True)
class Remaining:
    """Remaining objects of one kind, and their finalizers."""

    kind: Kind
    count: int
    finalizers: list[str]


@dataclass(frozen=True, slots=True)
class DeletionFault:
    """A kind whose objects the server did not delete, with the error."""

    kind: Kind
    error: str


@dataclass(slots=True)
class Content:
    """The result of one attempt to empty a namespace.

    While `pods` are there, nothing else has been looked at, and the conditions say what they said of it before: in
    Kubernetes, too, they do not name the pods.
    """

    undiscovered: str = ""
    pods: int = 0
    faults: list[DeletionFault] = field(default_factory=list)
    remaining: list[Remaining] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Returns True if nothing is left, for sure."""
        return not (self.undiscovered or self.pods or self.faults or self.remaining)

    @property
    def summary(self) -> str:
        """What is left, in a few words."""
        left = [f"{each.count} {each.kind.resource}" for each in self.remaining]
        left += [f"{self.pods} pods"] if self.pods else []
        return ", ".join([*left, *(fault.error for fault in self.faults), *filter(None, [self.undiscovered])])

    def conditions(self) -> Iterator[tuple[str, str, str, str]]:
        """Type, status, reason and message of each condition."""
        yield self._discovery()
        yield (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        )
        yield self._deletion()
        yield self._left()
        yield self._waiting()

    def _discovery(self) -> tuple[str, str, str, str]:
        type_ = "NamespaceDeletionDiscoveryFailure"
        if self.undiscovered:
            return type_, "True", "DiscoveryFailed", f"Discovery failed for some groups: {self.undiscovered}"
        return type_, "False", "ResourcesDiscovered", "All resources successfully discovered"

    def _deletion(self) -> tuple[str, str, str, str]:
        type_ = "NamespaceDeletionContentFailure"
        if self.faults:
            said = ", ".join(sorted(fault.error for fault in self.faults))
            return (
                type_,
                "True",
                "ContentDeletionFailed",
                f"Failed to delete all resource types, {len(self.faults)} remaining: {said}",
            )
        return type_, "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"

    def _left(self) -> tuple[str, str, str, str]:
        type_ = "NamespaceContentRemaining"
        if not self.remaining:
            return type_, "False", "ContentRemoved", "All content successfully removed"
        said = sorted(
            f"{each.kind.plural}.{each.kind.group} has {each.count} resource instances" for each in self.remaining
        )
        return type_, "True", "SomeResourcesRemain", f"Some resources are remaining: {', '.join(said)}"

    def _waiting(self) -> tuple[str, str, str, str]:
        type_ = "NamespaceFinalizersRemaining"
        counted = Counter(name for each in self.remaining for name in each.finalizers)
        if not counted:
            return type_, "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"
        said = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(counted.items()))
        message = f"Some content in the namespace has finalizers remaining: {said}"
        return type_, "True", "SomeFinalizersRemain", message


_FINALIZER: Final = "kubernetes"
_AGAIN: Final = Backoff(initial=0.05, factor=1.5, maximum=5.0)
_PODS: Final = ("", "pods")


class NamespaceDeletion:
    """Deletes the content of terminating namespaces, reports it in their conditions, then removes their finalizer."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client.using(manager="namespace-controller")
        self._clock = context.clock
        self._namespaces = context.cache.collection(Namespace)
        self._workers: Workers[Key] = Workers(
            "deletion of namespaces", context.clock, context.rng, self._attend, backoff=_AGAIN
        )

    async def run(self) -> None:
        """Works until it is cancelled."""
        self._namespaces.subscribe(self._changed)
        try:
            await self._workers.run()
        finally:
            self._namespaces.unsubscribe(self._changed)

    def _changed(self, change: Change) -> None:
        if change.new is not None and change.new.deleting and not (change.old is not None and change.old.deleting):
            self._workers.queue.add(change.new.key)

    async def _attend(self, key: Key) -> None:
        entry = self._namespaces.entry(key)
        if entry is None or not entry.deleting:
            return
        try:
            namespace = await self._client.get(Namespace, key.name)
        except NotFound:
            return
        if _FINALIZER not in (namespace.spec.finalizers or ()) or namespace.metadata.deletion_timestamp is None:
            return
        content = await self._emptied(key.name)
        namespace = await self._told(namespace, content)
        if not content.is_empty:
            raise _NotEmptyError(f"namespace {key.name} is not empty yet: {content.summary}")
        await self._let_go(namespace)

    async def _emptied(self, namespace: str) -> Content:
        """Pods go first: what they still need must not be taken from under them."""
        content = Content()
        try:
            kinds = deletable(await self._client.discovery.all())
        except NavarchError as error:
            content.undiscovered = str(error)
            return content
        if _PODS in kinds:
            await _empty(self._client, kinds.pop(_PODS), namespace, content)
            content.pods = sum(each.count for each in content.remaining)
            content.remaining.clear()
            if not content.is_empty:
                return content
        for kind in kinds.values():
            await _empty(self._client, kind, namespace, content)
        return content

    async def _told(self, namespace: Namespace, content: Content) -> Namespace:
        before = namespace.status.conditions or []
        after = _conditions(content, before, self._clock.now())
        if after == before:
            return namespace
        namespace.status.conditions = after
        return await self._client.replace_status(namespace)

    async def _let_go(self, namespace: Namespace) -> None:
        namespace.spec.finalizers = [name for name in namespace.spec.finalizers or () if name != _FINALIZER]
        try:
            await self._client.replace(namespace, subresource="finalize")
        except NotFound:
            return


class _NotEmptyError(NavarchError):
    """Objects remain in the namespace; it is retried soon."""


async def _empty(client: Client, kind: Kind, namespace: str, content: Content) -> None:
    """Deletes what is there of one kind; what stays after that waits for a finalizer or for its time to end."""
    try:
        if not await client.list(MetadataOnly(kind), namespace=namespace, page_size=1).pages().next():
            return
        await client.delete_all(kind, namespace=namespace, propagation="Background")
        left = await client.list(MetadataOnly(kind), namespace=namespace)
    except NotFound:  # the kind itself is gone
        return
    except NavarchError as error:
        content.faults.append(DeletionFault(kind, str(error)))
        return
    if left:
        finalizers = [name for each in left for name in each.metadata.finalizers or ()]
        content.remaining.append(Remaining(kind, len(left), finalizers))


def _conditions(content: Content, before: Iterable[NamespaceCondition], now: datetime) -> list[NamespaceCondition]:
    """The conditions as Kubernetes writes them; one that stays as it was keeps its time, and others' stay."""
    known = {condition.type: condition for condition in before}
    for type_, status, reason, message in content.conditions():
        old = known.get(type_)
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            continue
        moved = old.last_transition_time if old is not None and old.status == status else now.replace(microsecond=0)
        known[type_] = NamespaceCondition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=moved
        )
    return list(known.values())
