"""DefaultStorageClass and PersistentVolumeClaimResize."""

from __future__ import annotations

from typing import Final

from navarch.api import Quantity
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.plugins.pods import forbid
from navarch.cluster.server.pipeline.admission.plugins.table import Informed
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError

__all__ = ["ClaimResizing", "DefaultStorageClass"]

_CLAIMS: Final = frozenset({("", "persistentvolumeclaims")})
_CLASSES: Final = ("storage.k8s.io", "v1", "storageclasses")
_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_BETA: Final = "storageclass.beta.kubernetes.io/is-default-class"
_CLASS_BETA: Final = "volume.beta.kubernetes.io/storage-class"


class DefaultStorageClass(Informed):
    """Gives a new claim that names no class the default one: of several, the youngest."""

    resources = _CLAIMS

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE" or _class_of(value) is not None:
            return
        classes = await self._objects.list(self._objects.resource(*_CLASSES))
        marked = sorted((each for each in classes if _is_default(each)), key=lambda each: str(each["metadata"]["name"]))
        youngest = max(marked, key=lambda each: str(each["metadata"].get("creationTimestamp", "")), default=None)
        if youngest is not None:
            value["spec"]["storageClassName"] = youngest["metadata"]["name"]


def _class_of(claim: Json) -> str | None:
    annotations = claim["metadata"].get("annotations") or {}
    found: str | None = annotations.get(_CLASS_BETA, claim["spec"].get("storageClassName"))
    return found


def _is_default(storage_class: Json) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return "true" in {annotations.get(_DEFAULT), annotations.get(_DEFAULT_BETA)}


class ClaimResizing(Informed):
    """Lets a claim grow only if its class says that its volumes can."""

    resources = _CLAIMS

    async def check(self, attributes: Attributes) -> None:
        """See `Validating.check`."""
        if attributes.operation != "UPDATE" or not _grows(attributes.value or {}, attributes.old or {}):
            return
        name = _class_of(attributes.old or {})
        found = await self._objects.get(self._objects.resource(*_CLASSES), "", name) if name else None
        if found is None or not found.get("allowVolumeExpansion"):
            why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc"
            raise forbid(attributes, f"{why} must support resize")


def _grows(value: Json, old: Json) -> bool:
    try:
        return _size(value) > _size(old)
    except InvalidValueError:
        return False


def _size(claim: Json) -> Quantity:
    requests = ((claim["spec"].get("resources") or {}).get("requests")) or {}
    return Quantity(str(requests.get("storage", "0")))
