"""StorageObjectInUseProtection."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.wire.request import Json

__all__ = ["StorageProtection"]

_FINALIZERS: Final = {
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageProtection:
    """Keeps new volumes and claims until a controller says that nobody uses them any more."""

    resources = frozenset(_FINALIZERS)

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE":
            return
        finalizer = _FINALIZERS[attributes.resource.group, attributes.resource.plural]
        known = value["metadata"].get("finalizers") or []
        if finalizer not in known:
            value["metadata"]["finalizers"] = [*known, finalizer]
