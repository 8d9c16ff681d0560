"""What the server makes of a PersistentVolumeClaim: the two ways to say what it begins with are kept alike."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.objects.types import Operation
from navarch.cluster.server.wire.request import Json

__all__ = ["create_claim", "update_claim"]

_SOURCES: Final = frozenset({("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io")})
"""What the older of the two ways may name."""


def create_claim(value: Json, _: Operation) -> None:
    """A claim is pending."""
    value["status"] = {"phase": "Pending"}
    _settle(value["spec"], had_source=False)


def update_claim(value: Json, old: Json, _: Operation) -> None:
    """Clients that know one of the two ways leave the other alone."""
    before = old["spec"]
    _settle(value["spec"], had_source=bool(before.get("dataSource") or before.get("dataSourceRef")))


def _settle(spec: Json, *, had_source: bool) -> None:
    if (spec.get("dataSourceRef") or {}).get("namespace"):
        del spec["dataSourceRef"]  # sources in other namespaces are switched off
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        if not had_source and (source.get("kind", ""), source.get("apiGroup") or "") not in _SOURCES:
            del spec["dataSource"]
        else:
            spec["dataSourceRef"] = {**source}
    elif reference is not None and source is None:
        spec["dataSource"] = {"apiGroup": None, **reference}
