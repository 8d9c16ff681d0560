"""Rules of volumes, claims and storage classes: defaults, columns and data sources."""

from __future__ import annotations

from typing import Any, Final

from navarch.cluster.server.kinds.builtin.generic.columns import (
    NONE,
    UNSET,
    Ages,
    count_of,
    field_of,
    joined,
    name_of,
    row,
)
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules
from navarch.cluster.server.kinds.builtin.pods.defaults import default_claim_spec, default_volume_source
from navarch.cluster.server.kinds.builtin.storage.checks import (
    check_claim,
    check_claim_status,
    check_claim_update,
    check_storage_class,
    check_storage_class_update,
    check_volume,
    check_volume_update,
    claim_warnings,
)
from navarch.cluster.server.objects.types import WriteContext
from navarch.cluster.server.wire.request import Json

_SOURCES: Final = frozenset({("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io")})
"""The kinds that `dataSource` can name."""


def create_claim(value: Json, _: WriteContext) -> None:
    """A claim is pending."""
    value["status"] = {"phase": "Pending"}
    _settle(value["spec"], had_source=False)


def update_claim(value: Json, old: Json, _: WriteContext) -> None:
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


def default_persistent_volume_claim(value: Json) -> None:
    """A PersistentVolumeClaim."""
    value["status"].setdefault("phase", "Pending")
    default_claim_spec(value["spec"])


def default_persistent_volume(value: Json) -> None:
    """A PersistentVolume."""
    spec = value["spec"]
    value["status"].setdefault("phase", "Pending")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_volume_source(spec)


def default_storage_class(value: Json) -> None:
    """A StorageClass."""
    value.setdefault("reclaimPolicy", "Delete")
    value.setdefault("volumeBindingMode", "Immediate")


def default_csi_driver(value: Json) -> None:
    """A CSIDriver."""
    spec = value["spec"]
    spec.setdefault("attachRequired", True)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    for name in ("podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"):
        spec.setdefault(name, False)
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


_CLASS_PROTECTION: Final = "kubernetes.io/vac-protection"


def create_persistent_volume(value: Json, _: WriteContext) -> None:
    """A volume is pending since now."""
    value["status"] = {
        "phase": "Pending",
        "lastPhaseTransitionTime": value["metadata"].get("creationTimestamp"),
    }


def update_persistent_volume_status(value: Json, old: Json, operation: WriteContext) -> None:
    """When the phase changed is noted, unless whoever changes it says it."""
    status, before = value.get("status") or {}, old.get("status") or {}
    since, given = before.get("lastPhaseTransitionTime"), status.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        noted = given or since
    else:
        noted = operation.now if given in {None, since} else given
    if noted:
        value["status"] = {**status, "lastPhaseTransitionTime": noted}


def create_attributes_class(value: Json, _: WriteContext) -> None:
    """A class of volume attributes stays while volumes use it."""
    finalizers = value["metadata"].get("finalizers") or []
    if _CLASS_PROTECTION not in finalizers:
        value["metadata"]["finalizers"] = [*finalizers, _CLASS_PROTECTION]


_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def claim_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, status, volume, capacity, access modes, class, attributes class, age; mode."""
    spec, status, metadata = value["spec"], value.get("status", {}), value["metadata"]
    volume = spec.get("volumeName", "")
    old_class = (metadata.get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return [
        name_of(value),
        "Terminating" if metadata.get("deletionTimestamp") else status.get("phase", ""),
        volume,
        (status.get("capacity") or {}).get("storage", "0") if volume else "",
        modes(status.get("accessModes")) if volume else "",
        old_class if old_class is not None else spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        ages.of(value),
        spec.get("volumeMode") or UNSET,
    ]


def modes(found: list[str] | None) -> str:
    """Access modes in short, in Kubernetes' order."""
    return joined(short for mode, short in _MODES.items() if mode in (found or ()))


def volume_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, capacity, access modes, reclaim policy, status, claim, class, attributes class, reason, age; mode."""
    spec, status = value["spec"], value.get("status", {})
    claim = spec.get("claimRef")
    return [
        name_of(value),
        (spec.get("capacity") or {}).get("storage", "0"),
        modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if value["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        ages.of(value),
        spec.get("volumeMode") or UNSET,
    ]


def csi_driver_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, what it asks for, its modes, age."""
    spec = value["spec"]
    tokens = spec.get("tokenRequests")
    return [
        name_of(value),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if tokens is None else joined(each.get("audience", "") for each in tokens),
        spec.get("requiresRepublish", False),
        joined(spec.get("volumeLifecycleModes") or (), NONE),
        ages.of(value),
    ]


RULES: Final[dict[tuple[str, str], Rules]] = {
    ("v1", "persistentvolumeclaims"): Rules(
        default=default_persistent_volume_claim,
        create=create_claim,
        update=update_claim,
        check=check_claim,
        check_update=check_claim_update,
        check_status=check_claim_status,
        warnings=claim_warnings,
        cells=claim_cells,
        returns_deleted=True,
    ),
    ("v1", "persistentvolumes"): Rules(
        never_empty=("spec", "capacity"),
        default=default_persistent_volume,
        create=create_persistent_volume,
        update_status=update_persistent_volume_status,
        check=check_volume,
        check_update=check_volume_update,
        cells=volume_cells,
        returns_deleted=True,
    ),
    ("storage.k8s.io/v1", "storageclasses"): Rules(
        default=default_storage_class,
        check=check_storage_class,
        check_update=check_storage_class_update,
        cells=row(
            field_of("provisioner"),
            field_of("reclaimPolicy", default="Delete"),
            field_of("volumeBindingMode", default="Immediate"),
            field_of("allowVolumeExpansion", default=False),
        ),
        returns_deleted=True,
    ),
    ("storage.k8s.io/v1", "volumeattributesclasses"): Rules(
        create=create_attributes_class,
        cells=row(field_of("driverName")),
        returns_deleted=True,
    ),
    ("storage.k8s.io/v1", "csidrivers"): Rules(
        default=default_csi_driver,
        allows_unconditional_update=False,
        cells=csi_driver_cells,
        returns_deleted=True,
    ),
    ("storage.k8s.io/v1", "csinodes"): Rules(
        allows_unconditional_update=False,
        cells=row(count_of("spec", "drivers")),
        returns_deleted=True,
    ),
    ("storage.k8s.io/v1", "csistoragecapacities"): Rules(
        allows_unconditional_update=False,
    ),
    ("storage.k8s.io/v1", "volumeattachments"): Rules(
        allows_unconditional_update=False,
        cells=row(
            field_of("spec", "attacher"),
            field_of("spec", "source", "persistentVolumeName"),
            field_of("spec", "nodeName"),
            field_of("status", "attached", default=False),
        ),
        returns_deleted=True,
    ),
}
