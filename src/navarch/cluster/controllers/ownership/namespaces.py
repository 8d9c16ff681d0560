"""Namespaces that are being deleted: everything in them goes first, pods before all else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from navarch._base.backoff import Backoff
from navarch.api import Key, Kind
from navarch.cache import Change
from navarch.client import Client, MetadataOnly
from navarch.cluster.controllers.ownership.content import Content, Fault, Remaining
from navarch.cluster.controllers.ownership.kinds import deletable
from navarch.cluster.controllers.parts import Around, Workers
from navarch.errors import NavarchError, NotFound
from navarch.k8s.core.v1 import Namespace, NamespaceCondition

_FINALIZER: Final = "kubernetes"
_AGAIN: Final = Backoff(initial=0.05, factor=1.5, maximum=5.0)
_PODS: Final = ("", "pods")


class NamespaceDeletion:
    """Empties namespaces that are being deleted, says in their conditions how far it is, and lets them go."""

    def __init__(self, around: Around) -> None:
        self._client = around.client.using(manager="namespace-controller")
        self._clock = around.clock
        self._namespaces = around.cache.collection(Namespace)
        self._workers: Workers[Key] = Workers("deletion of namespaces", around, self._attend, backoff=_AGAIN)

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
    """Something is left; it is looked at again soon."""


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
        content.faults.append(Fault(kind, str(error)))
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
