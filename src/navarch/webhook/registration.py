"""`Registration`: keeps an operator's webhook configurations in the cluster as its code declares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from navarch.api import Dynamic, Key, Kind
from navarch.cache import Cache, Cached, Collection
from navarch.client import Client
from navarch.errors import ConfigError, Conflict, NotFound
from navarch.observe.logs import logger
from navarch.webhook.configurations import MUTATING, VALIDATING, WebhookSet, is_configured, with_foreign_bundle
from navarch.webhook.repair_loop import RepairLoop

_log = logger("navarch.webhook")
_KINDS = (MUTATING, VALIDATING)


async def remove_webhooks(client: Client, operator: str) -> None:
    """Deletes the webhook configurations of the operator of that name; those that are missing do not matter."""
    for kind in _KINDS:
        try:
            await client.delete(kind, operator)
        except NotFound:
            continue


async def verify_webhooks(client: Client, wanted: WebhookSet) -> None:
    """Raises `ConfigError` for configurations that are missing, or differ from what the operator declares."""
    faults = []
    for manifest in wanted.configurations():
        kind = _kind(manifest)
        try:
            found = await client.get(kind, wanted.operator)
        except NotFound:
            faults.append(f"{kind.kind} {wanted.operator} is missing")
            continue
        if not is_configured(found, manifest):
            faults.append(f"{kind.kind} {wanted.operator} differs from what the operator declares")
    if faults:
        raise ConfigError(
            f"expected the webhook configurations of operator {wanted.operator}, but {'; '.join(faults)}; apply the manifests "
            f'of configurations_of(operator, ...), or let the operator apply them: Operator(..., webhooks="install")'
        )


class Registration:
    """Applies the configurations and repairs them after an edit or a deletion.

    `lost` is called when a configuration is not as it was published. Every replica runs one: all of them want the same, and an apply that changes nothing writes nothing.
    """

    def __init__(self, client: Client, cache: Cache, wanted: WebhookSet, lost: Callable[[], None]) -> None:
        self._client = client
        self.wanted = wanted
        self._bundle = b""
        self._loop = RepairLoop(client, "repair the webhook configurations")
        self._lost = lost
        name = wanted.operator
        self._collections: dict[Kind, Collection[Dynamic]] = {
            _kind(manifest): cache.collection(Cached(_kind(manifest), fields=f"metadata.name={name}"))
            for manifest in wanted.configurations()
        }

    async def publish(self, ca_bundle: bytes) -> None:
        """Applies the configurations with this bundle; returns when the API server has stored them."""
        self._bundle = ca_bundle
        for manifest in self.wanted.configurations(ca_bundle):
            await self._apply(manifest)

    async def run(self) -> None:
        """Repairs the configurations until cancelled."""
        for collection in self._collections.values():
            collection.subscribe(self._loop.trigger)
        try:
            await self._loop.run(self._repair)
        finally:
            for collection in self._collections.values():
                collection.unsubscribe(self._loop.trigger)

    async def _repair(self) -> None:
        for manifest in self.wanted.configurations(self._bundle):
            collection = self._collections[_kind(manifest)]
            entry = collection.entry(Key("", self.wanted.operator))
            if entry is None or not is_configured(collection.view(entry), manifest):
                self._lost()
                _log.warning("repairing a webhook configuration", configuration=_named(manifest))
                await self._apply(manifest)

    async def _apply(self, manifest: Mapping[str, Any]) -> None:
        """Applies the configuration, and replaces it if others still own a part of it that is not wanted."""
        stored = await self._client.apply(Dynamic(dict(manifest)), force=True)
        if is_configured(stored, manifest):
            return
        entries = {entry.get("name"): entry for entry in stored.get("webhooks") or ()}
        replaced = Dynamic(dict(stored))
        replaced["webhooks"] = [
            with_foreign_bundle(entry, entries.get(entry["name"], {})) for entry in manifest["webhooks"]
        ]
        try:
            await self._client.replace(replaced)
        except (Conflict, NotFound):  # somebody was faster: the watch tells of it
            self._loop.trigger()


def _kind(manifest: Mapping[str, Any]) -> Kind:
    return MUTATING if manifest["kind"] == MUTATING.kind else VALIDATING


def _named(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
