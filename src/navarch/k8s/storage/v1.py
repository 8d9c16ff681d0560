"""storage/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated

from navarch.api import ListMap, ListSet, Model, Object, field
from navarch.api.quantity import Quantity
from navarch.k8s.core.v1 import PersistentVolumeSpec, TopologySelectorTerm
from navarch.k8s.meta.v1 import LabelSelector

__all__ = [
    "CSIDriver",
    "CSIDriverSpec",
    "CSINode",
    "CSINodeDriver",
    "CSINodeSpec",
    "CSIStorageCapacity",
    "StorageClass",
    "TokenRequest",
    "VolumeAttachment",
    "VolumeAttachmentSource",
    "VolumeAttachmentSpec",
    "VolumeAttachmentStatus",
    "VolumeAttributesClass",
    "VolumeError",
    "VolumeNodeResources",
]


class TokenRequest(Model):
    audience: str
    expiration_seconds: int | None = None


class CSIDriverSpec(Model):
    attach_required: bool | None = None
    fs_group_policy: str | None = None
    node_allocatable_update_period_seconds: int | None = None
    pod_info_on_mount: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    service_account_token_in_secrets: bool | None = None
    storage_capacity: bool | None = None
    token_requests: list[TokenRequest] | None = None
    volume_lifecycle_modes: Annotated[list[str], ListSet()] | None = None


class CSIDriver(Object, group="storage.k8s.io", version="v1", plural="csidrivers", namespaced=False, has_status=False):
    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class VolumeNodeResources(Model):
    count: int | None = None


class CSINodeDriver(Model):
    name: str
    node_id: str = field(name="nodeID")
    allocatable: VolumeNodeResources | None = None
    topology_keys: list[str] | None = None


class CSINodeSpec(Model):
    drivers: Annotated[list[CSINodeDriver], ListMap("name")]


class CSINode(Object, group="storage.k8s.io", version="v1", plural="csinodes", namespaced=False, has_status=False):
    spec: CSINodeSpec


class CSIStorageCapacity(Object, group="storage.k8s.io", version="v1", plural="csistoragecapacities", has_status=False):
    storage_class_name: str
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None


class StorageClass(
    Object,
    group="storage.k8s.io",
    version="v1",
    plural="storageclasses",
    namespaced=False,
    has_status=False,
    short_names=("sc",),
):
    provisioner: str
    allow_volume_expansion: bool | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None
    mount_options: list[str] | None = None
    parameters: dict[str, str] | None = None
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None


class VolumeAttachmentSource(Model):
    inline_volume_spec: PersistentVolumeSpec | None = None
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Model):
    attacher: str
    node_name: str
    source: VolumeAttachmentSource


class VolumeError(Model):
    error_code: int | None = None
    message: str | None = None
    time: datetime | None = None


class VolumeAttachmentStatus(Model):
    attach_error: VolumeError | None = None
    attached: bool = False
    attachment_metadata: dict[str, str] | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(Object, group="storage.k8s.io", version="v1", plural="volumeattachments", namespaced=False):
    spec: VolumeAttachmentSpec
    status: VolumeAttachmentStatus = field(default_factory=VolumeAttachmentStatus)


class VolumeAttributesClass(
    Object,
    group="storage.k8s.io",
    version="v1",
    plural="volumeattributesclasses",
    namespaced=False,
    has_status=False,
    short_names=("vac",),
):
    driver_name: str
    parameters: dict[str, str] | None = None
