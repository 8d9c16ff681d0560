"""Webhook configurations in the cluster: written as the operator's code declares them, verified, removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch.api import Dynamic, Key, Kind
from navarch.cache import Cache, Cached, Collection
from navarch.client import Client
from navarch.errors import ConfigError, NotFound
from navarch.webhook.configurations import (
    MUTATING,
    VALIDATING,
    WebhookAddress,
    WebhookSet,
    is_configured,
    with_foreign_bundle,
)
from navarch.webhook.publication import Published

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


class ConfigurationPublication:
    """One webhook configuration in the cluster; see `Publication`."""

    def __init__(self, client: Client, cache: Cache, wanted: WebhookSet, kind: Kind) -> None:
        self._client = client
        self._wanted = wanted
        self._kind = kind
        self.name = f"{kind.kind} {wanted.operator}"
        self.collection: Collection[Dynamic] = cache.collection(Cached(kind, fields=f"metadata.name={wanted.operator}"))

    def cached(self) -> Published | None:
        """See `Publication`."""
        entry = self.collection.entry(Key("", self._wanted.operator))
        return None if entry is None else self.collection.view(entry)

    async def read(self) -> Published | None:
        """See `Publication`."""
        try:
            return await self._client.get(self._kind, self._wanted.operator)
        except NotFound:
            return None

    def is_current(self, found: Published | None, bundle: bytes) -> bool:
        """See `Publication`."""
        return found is not None and is_configured(found, self._manifest(bundle))

    def has_bundle(self, found: Published | None, bundle: bytes) -> bool:
        """See `Publication`."""
        trust = WebhookAddress().client_config("", bundle).get("caBundle")
        entries = (found or {}).get("webhooks") or ()
        return all((entry.get("clientConfig") or {}).get("caBundle") == trust for entry in entries)

    def is_foreign(self, found: Published | None) -> bool:
        """See `Publication`. One that has only another bundle is this release's."""
        return found is not None and not self.is_current(found, b"")

    async def write(self, found: Published | None, bundle: bytes) -> None:
        """See `Publication`. Replaces the configuration if others still own a part of it that is not wanted."""
        manifest = self._manifest(bundle)
        if found is None:
            await self._client.create(Dynamic(manifest))
            return
        version = found["metadata"]["resourceVersion"]
        stored = await self._client.apply(Dynamic(manifest), force=True, resource_version=version)
        if is_configured(stored, manifest):
            return
        entries = {entry.get("name"): entry for entry in stored.get("webhooks") or ()}
        replaced = Dynamic(dict(stored))
        replaced["webhooks"] = [
            with_foreign_bundle(entry, entries.get(entry["name"], {})) for entry in manifest["webhooks"]
        ]
        await self._client.replace(replaced)

    def _manifest(self, bundle: bytes) -> dict[str, Any]:
        return next(each for each in self._wanted.configurations(bundle) if each["kind"] == self._kind.kind)


def publications_of(client: Client, cache: Cache, wanted: WebhookSet) -> list[ConfigurationPublication]:
    """Returns the configurations that the operator declares; every replica looks after all of them."""
    return [ConfigurationPublication(client, cache, wanted, _kind(each)) for each in wanted.configurations()]


def _kind(manifest: Mapping[str, Any]) -> Kind:
    return MUTATING if manifest["kind"] == MUTATING.kind else VALIDATING
