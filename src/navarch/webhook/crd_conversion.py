"""`ConversionRegistration`: keeps the conversion section of CRDs as the operator's code declares it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from navarch.api import Dynamic, Key, Kind
from navarch.api.json_patch import copy_json
from navarch.cache import Cache, Cached, Collection
from navarch.client import Client, MergePatch
from navarch.errors import ConfigError, NotFound
from navarch.observe.logs import logger
from navarch.webhook.configurations import WebhookAddress
from navarch.webhook.repair_loop import RepairLoop

CONVERSION_PATH: Final = "/convert"
_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)

_log = logger("navarch.webhook")


def conversion_section(address: WebhookAddress, ca_bundle: bytes = b"") -> dict[str, Any]:
    """Returns the `spec.conversion` of a CRD whose objects the operator converts."""
    client_config = address.client_config(CONVERSION_PATH, ca_bundle)
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client_config, "conversionReviewVersions": ["v1"]},
    }


def has_section(crd: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Returns whether a CRD has the wanted section; a bundle that cert-manager injected stays."""
    found = copy_json(crd["spec"].get("conversion") or {})
    client_config = (found.get("webhook") or {}).get("clientConfig") or {}
    if "caBundle" not in wanted["webhook"]["clientConfig"]:
        client_config.pop("caBundle", None)
    return bool(found == wanted)


class ConversionRegistration:
    """Writes the conversion section into CRDs, and repairs it after an edit.

    `lost` is called when a section is not as it was published. Every replica runs one: all of them want the same, and a
    section that is as wanted is not written.
    """

    def __init__(
        self,
        client: Client,
        cache: Cache,
        crds: Sequence[str],
        address: WebhookAddress,
        lost: Callable[[], None],
        *,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """`annotations` are added to the CRDs: that of cert-manager, which then injects its CA."""
        self._client = client
        self._crds = crds
        self._address = address
        self._annotations = dict(annotations or {})
        self._bundle = b""
        self._loop = RepairLoop(client, "repair the conversion of a CRD")
        self._lost = lost
        self._collections: dict[str, Collection[Dynamic]] = {
            name: cache.collection(Cached(_CRDS, fields=f"metadata.name={name}")) for name in crds
        }

    def section(self) -> dict[str, Any]:
        """Returns the wanted section with the bundle that was published last."""
        return conversion_section(self._address, self._bundle)

    async def publish(self, ca_bundle: bytes) -> None:
        """Writes the section with this bundle; returns when the API server has stored it. Skips CRDs that are missing."""
        self._bundle = ca_bundle
        for name in self._crds:
            try:
                found = await self._client.get(_CRDS, name)
            except NotFound:
                continue
            await self._write(found)

    async def verify(self) -> None:
        """Raises `ConfigError` for CRDs that do not name the operator's webhook."""
        faults = []
        for name in self._crds:
            found = await self._client.get(_CRDS, name)
            if not has_section(found, self.section()):
                faults.append(name)
        if faults:
            raise ConfigError(
                f"expected CRDs whose conversion is the operator's webhook ({self._address}), got others: "
                f"{', '.join(faults)}; apply crd(..., conversion=Webhook(...)) of all versions, or let the operator write it: "
                f'Operator(..., webhooks="install")'
            )

    async def run(self) -> None:
        """Repairs the sections until cancelled."""
        for collection in self._collections.values():
            collection.subscribe(self._loop.trigger)
        try:
            await self._loop.run(self._repair)
        finally:
            for collection in self._collections.values():
                collection.unsubscribe(self._loop.trigger)

    async def _repair(self) -> None:
        for name, collection in self._collections.items():
            entry = collection.entry(Key("", name))
            if entry is not None and not has_section(collection.view(entry), self.section()):
                self._lost()
                await self._write(collection.view(entry))

    async def _write(self, found: Mapping[str, Any]) -> None:
        wanted = self.section()
        annotations = found["metadata"].get("annotations") or {}
        if has_section(found, wanted) and self._annotations.items() <= annotations.items():
            return
        name = found["metadata"]["name"]
        _log.info("writing the conversion of a CRD", crd=name)
        client_config: dict[str, Any] = {"url": None, "service": None} | wanted["webhook"]["clientConfig"]
        webhook = wanted["webhook"] | {"clientConfig": client_config}
        change: dict[str, Any] = {"spec": {"conversion": wanted | {"webhook": webhook}}}
        if self._annotations:
            change["metadata"] = {"annotations": self._annotations}
        await self._client.patch(_CRDS, name, MergePatch(change))
