"""The conversion section of CRDs: written as the operator's code declares it, and verified."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from navarch.api import Dynamic, Key, Kind
from navarch.api.json_patch import copy_json
from navarch.cache import Cache, Cached, Collection
from navarch.client import Client, MergePatch
from navarch.errors import ConfigError, NotFound
from navarch.observe.logs import logger
from navarch.webhook.configurations import WebhookAddress
from navarch.webhook.publication import Published

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


def with_published_bundle(wanted: Mapping[str, Any], found: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the section with the bundle that the CRD has for the same webhook: only a `ConversionPublication` changes it."""
    section: dict[str, Any] = copy_json(dict(wanted))
    config, published = _client_config_of(section), _client_config(found or {"spec": {}})
    if "caBundle" in published and {**config, "caBundle": None} == {**published, "caBundle": None}:
        config["caBundle"] = published["caBundle"]
    return section


def _client_config(crd: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how the API server calls the webhook that converts the objects of a CRD; empty if there is none."""
    return _client_config_of(crd["spec"].get("conversion") or {})


def _client_config_of(section: Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = (section.get("webhook") or {}).get("clientConfig") or {}
    return config


def has_section(crd: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Returns whether a CRD has the wanted section; a bundle that cert-manager injected stays."""
    found = copy_json(crd["spec"].get("conversion") or {})
    client_config = (found.get("webhook") or {}).get("clientConfig") or {}
    if "caBundle" not in wanted["webhook"]["clientConfig"]:
        client_config.pop("caBundle", None)
    return bool(found == wanted)


class ConversionPublication:
    """The conversion section of one CRD; see `Publication`."""

    def __init__(
        self,
        client: Client,
        cache: Cache,
        name: str,
        address: WebhookAddress,
        *,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """`annotations` are added to the CRD: that of cert-manager, which then injects its CA."""
        self._client = client
        self._crd = name
        self._address = address
        self._annotations = dict(annotations or {})
        self.name = f"conversion of CRD {name}"
        self.collection: Collection[Dynamic] = cache.collection(Cached(_CRDS, fields=f"metadata.name={name}"))

    def cached(self) -> Published | None:
        """See `Publication`."""
        entry = self.collection.entry(Key("", self._crd))
        return None if entry is None else self.collection.view(entry)

    async def read(self) -> Published | None:
        """See `Publication`."""
        try:
            return await self._client.get(_CRDS, self._crd)
        except NotFound:
            return None

    def is_current(self, found: Published | None, bundle: bytes) -> bool:
        """See `Publication`. A CRD that is missing is not created here."""
        if found is None:
            return True
        annotations = found["metadata"].get("annotations") or {}
        return has_section(found, self._section(bundle)) and self._annotations.items() <= annotations.items()

    def has_bundle(self, found: Published | None, bundle: bytes) -> bool:
        """See `Publication`."""
        return found is None or _client_config(found).get("caBundle") == _client_config_of(self._section(bundle)).get(
            "caBundle"
        )

    def is_foreign(self, found: Published | None) -> bool:
        """See `Publication`. One that names no webhook is not: without one, fields are lost."""
        config = _client_config(found or {"spec": {}})
        return bool(config) and {**config, "caBundle": None} != {**_client_config_of(self._section()), "caBundle": None}

    async def write(self, found: Published | None, bundle: bytes) -> None:
        """See `Publication`."""
        assert found is not None
        wanted = self._section(bundle)
        _log.info("writing the conversion of a CRD", crd=self._crd)
        client_config: dict[str, Any] = {"url": None, "service": None} | wanted["webhook"]["clientConfig"]
        webhook = wanted["webhook"] | {"clientConfig": client_config}
        metadata: dict[str, Any] = {"resourceVersion": found["metadata"]["resourceVersion"]}
        if self._annotations:
            metadata["annotations"] = self._annotations
        change = {"metadata": metadata, "spec": {"conversion": wanted | {"webhook": webhook}}}
        await self._client.patch(_CRDS, self._crd, MergePatch(change))

    def _section(self, bundle: bytes = b"") -> dict[str, Any]:
        return conversion_section(self._address, bundle)


async def verify_conversions(client: Client, crds: Iterable[str], address: WebhookAddress) -> None:
    """Raises `ConfigError` for CRDs that do not name the operator's webhook."""
    wanted = conversion_section(address)
    faults = [name for name in crds if not has_section(await client.get(_CRDS, name), wanted)]
    if faults:
        raise ConfigError(
            f"expected CRDs whose conversion is the operator's webhook ({address}), got others: {', '.join(faults)}; apply "
            f"crd(..., conversion=Webhook(...)) of all versions, or let the operator write it: "
            f'Operator(..., webhooks="install")'
        )
