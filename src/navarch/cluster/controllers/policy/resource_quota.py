"""`QuotaUsage`: recomputes the usage of ResourceQuotas after changes that admission did not charge: deletions, pods that ended,
and objects older than the quota.
"""

from __future__ import annotations

from typing import Final

import msgspec

from navarch.api import Kind, Quantity, to_builtins
from navarch.cache import Change
from navarch.client import MergePatch, MetadataOnly
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.garbage_collection.metadata_informers import MetadataInformers
from navarch.cluster.usage import Amounts, added, counted, in_scope, kind_behind, usage
from navarch.cluster.workers import Workers
from navarch.errors import NotFound
from navarch.k8s.core.v1 import ResourceQuota

_WHOLE: Final = frozenset(
    {("", "pods"), ("", "services"), ("", "persistentvolumeclaims"), ("resource.k8s.io", "resourceclaims")}
)
"""Kinds of which more counts than how many there are."""
_A_MOMENT: Final = 0.2


class QuotaUsage:
    """Updates the status of quotas, a moment after any change in a namespace with quotas."""

    def __init__(self, context: ControllerContext, kinds: MetadataInformers) -> None:
        self._client = context.client.using(manager="resourcequota-controller")
        self._kinds = kinds
        self._quotas = context.cache.collection(ResourceQuota)
        self._workers: Workers[str] = Workers("usage of quotas", context.clock, context.rng, self._attend)
        kinds.subscribe(self._changed)

    async def run(self) -> None:
        """Works until it is cancelled."""
        await self._kinds.wait_synced()
        self._quotas.subscribe(self._quota_changed)
        try:
            await self._workers.run()
        finally:
            self._quotas.unsubscribe(self._quota_changed)

    def _changed(self, kind: Kind, change: Change) -> None:  # noqa: ARG002 - whatever it was, all is added up
        namespace = change.newest.key.namespace
        if namespace and self._quotas.store.in_namespace(namespace):
            self._workers.queue.add_after(namespace, _A_MOMENT)

    def _quota_changed(self, change: Change) -> None:
        if change.new is not None and (change.old is None or _hard(change.old.data) != _hard(change.new.data)):
            self._workers.queue.add(change.new.key.namespace)

    async def _attend(self, namespace: str) -> None:
        """Everything is asked of the server: the cache may not have what was charged for already."""
        for quota in await self._client.list(ResourceQuota, namespace=namespace):
            if quota.metadata.deletion_timestamp is None:
                await self._keep(quota)

    async def _keep(self, quota: ResourceQuota) -> None:
        hard = quota.spec.hard or {}
        total: Amounts = {}
        for group, plural in sorted({kind_behind(name) for name in hard}):
            total = added(total, await self._used(quota, group, plural))
        used = {name: total.get(name, Quantity(0)) for name in hard}
        if (quota.status.hard or {}, quota.status.used or {}) != (hard, used):
            await self._write(quota, hard, used)

    async def _used(self, quota: ResourceQuota, group: str, plural: str) -> Amounts:
        kind = self._kinds.find(group, plural)
        if kind is None:
            return {}
        spec = to_builtins(quota.spec)
        if (group, plural) not in _WHOLE:
            found = await self._client.list(MetadataOnly(kind), namespace=quota.namespace)
            return counted(group, plural, len(found)) if in_scope(spec, group, plural, {}) else {}
        total: Amounts = {}
        for value in await self._client.list(kind, namespace=quota.namespace):
            if in_scope(spec, group, plural, value):
                total = added(total, usage(group, plural, value))
        return total

    async def _write(self, quota: ResourceQuota, hard: Amounts, used: Amounts) -> None:
        gone = dict.fromkeys({*(quota.status.hard or {}), *(quota.status.used or {})} - hard.keys())
        patch = MergePatch(
            {
                "metadata": {"resourceVersion": quota.metadata.resource_version},
                "status": {"hard": {**gone, **hard}, "used": {**gone, **used}},
            }
        )
        try:
            await self._client.patch(ResourceQuota, quota.name, patch, namespace=quota.namespace, subresource="status")
        except NotFound:
            return


class _QuotaSpecFields(msgspec.Struct):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_decoder = msgspec.json.Decoder(_QuotaSpecFields)


def _hard(data: bytes) -> bytes:
    """What is asked of the quota."""
    return bytes(_decoder.decode(data).spec)
