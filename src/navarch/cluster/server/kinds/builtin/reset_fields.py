"""Reset fields: for each built-in kind and each path that accepts writes, the fields that stay as they are
stored, whatever the client sends.

Kubernetes' strategies call these reset fields. The table holds for every way to write (update, every sort of patch, apply);
tests/conformance/test_write_table.py compares each row of it with the real API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.objects.types import FieldReset
from navarch.cluster.server.wire.request import Json

Paths = tuple[str, ...]
"""Members of an object, and members of these: `spec`, `metadata.labels`."""

_SERVED: Final = (
    "metadata.annotations",
    "metadata.finalizers",
    "metadata.labels",
    "metadata.ownerReferences",
)
"""The metadata that clients set."""
_METADATA: Final = ("metadata.deletionTimestamp", *_SERVED)
"""The same, where a deletion that is sent is passed over; what else there is in the metadata may not differ in any write."""
_ALL_METADATA: Final = ("metadata.deletionGracePeriodSeconds", "metadata.generateName", "metadata.uid", *_METADATA)


class WritableFields(msgspec.Struct, frozen=True):
    """The fields that one path accepts: all but those that it `keeps`, or, if it is not None, `only` some.

    The metadata that the server itself writes (`resourceVersion`, `generation`, …) is none of its business.
    """

    keeps: Paths = ()
    only: Paths | None = None

    def reset(self, value: Json, old: Json) -> None:
        """Puts the fields that this path does not take back to what is stored, in place."""
        if self.only is None:
            for path in self.keeps:
                _copy(old, value, path)
            return
        sent = {**value}
        value.clear()
        value.update(old)
        value["metadata"] = sent["metadata"]
        for path in _METADATA:
            _copy(old, value, path)
        for path in self.only:
            _copy(sent, value, path)


class ResetFields(msgspec.Struct, frozen=True):
    """The row of a kind: what is dropped from a new object, what each path takes of an update ("" is the object's own), and
    what an update of the object is refused for if it differs.
    """

    create: Paths = ()
    immutable: Paths = ()
    paths: Mapping[str, WritableFields] = msgspec.field(default_factory=dict)

    def of(self, subresource: str) -> WritableFields:
        """Returns the fields that the path of a subresource accepts; "" is the object's own path."""
        return self.paths.get(subresource, _EVERYTHING)

    def fixed(self, value: Json, old: Json) -> list[tuple[str, Any, Any]]:
        """Each field that may not differ, with what was sent and what is stored."""
        return [(path, _at(value, path), _at(old, path)) for path in self.immutable]


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _copy(source: Json, target: Json, path: str) -> None:
    """Makes a field of the target what it is in the source; the members on the way are private copies afterwards."""
    name, _, rest = path.partition(".")
    if rest:
        target[name] = {**(target.get(name) or {})}
        _copy(source.get(name) or {}, target[name], rest)
    elif name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


_EVERYTHING: Final = WritableFields()


def _with_status(*status_keeps: str, **others: WritableFields) -> ResetFields:
    """A kind with a `status`: neither a creation nor an update of the object changes it, and it changes nothing else."""
    own = {"": WritableFields(keeps=("status",)), "status": WritableFields(keeps=("spec", *status_keeps))}
    return ResetFields(create=("status",), paths={**own, **others})


_PLAIN: Final = ResetFields()
_STATUS: Final = _with_status()
_STATUS_ALONE: Final = _with_status(*_METADATA)
_FIXED_SPEC: Final = ResetFields(immutable=("spec",))

_ADMISSION: Final = "admissionregistration.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_RESOURCE: Final = "resource.k8s.io"
_STORAGE: Final = "storage.k8s.io"

RESET_FIELDS: Final[Mapping[tuple[str, str], ResetFields]] = {
    ("", "ConfigMap"): _PLAIN,
    ("", "Endpoints"): _PLAIN,
    ("", "Event"): _PLAIN,
    ("", "LimitRange"): _PLAIN,
    ("", "Namespace"): ResetFields(
        create=("status",),
        paths={
            "": WritableFields(keeps=("spec.finalizers", "status")),
            "status": WritableFields(keeps=("spec",)),
            "finalize": WritableFields(keeps=("status",)),
        },
    ),
    ("", "Node"): ResetFields(
        paths={
            "": WritableFields(keeps=("status",)),
            "status": WritableFields(keeps=("spec",)),
        }  # a kubelet registers with its status
    ),
    ("", "PersistentVolume"): _STATUS,
    ("", "PersistentVolumeClaim"): _STATUS,
    ("", "Pod"): _with_status(
        "metadata.deletionTimestamp",
        "metadata.ownerReferences",
        ephemeralcontainers=WritableFields(only=("spec.ephemeralContainers",)),
        resize=WritableFields(only=("spec.containers", "spec.initContainers")),
    ),
    ("", "PodTemplate"): _PLAIN,
    ("", "ReplicationController"): _STATUS,
    ("", "ResourceQuota"): _STATUS,
    ("", "Secret"): _PLAIN,
    ("", "Service"): _STATUS,
    ("", "ServiceAccount"): _PLAIN,
    (_ADMISSION, "MutatingAdmissionPolicy"): _PLAIN,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _PLAIN,
    (_ADMISSION, "MutatingWebhookConfiguration"): _PLAIN,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _STATUS_ALONE,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _PLAIN,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _PLAIN,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _STATUS,
    ("apiregistration.k8s.io", "APIService"): _with_status(*_SERVED),
    ("apps", "ControllerRevision"): _PLAIN,
    ("apps", "DaemonSet"): _STATUS,
    ("apps", "Deployment"): _with_status("metadata.labels"),
    ("apps", "ReplicaSet"): _STATUS,
    ("apps", "StatefulSet"): _STATUS,
    ("autoscaling", "HorizontalPodAutoscaler"): _STATUS,
    ("batch", "CronJob"): _STATUS,
    ("batch", "Job"): _STATUS,
    ("certificates.k8s.io", "CertificateSigningRequest"): ResetFields(
        create=("status",),
        paths={
            "": WritableFields(keeps=("spec", "status")),
            "status": WritableFields(keeps=("spec",)),
            "approval": WritableFields(keeps=("spec", "status.certificate")),
        },
    ),
    ("coordination.k8s.io", "Lease"): _PLAIN,
    ("discovery.k8s.io", "EndpointSlice"): _PLAIN,
    ("events.k8s.io", "Event"): _PLAIN,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _with_status(*_ALL_METADATA),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _with_status(*_ALL_METADATA),
    (_NETWORKING, "IPAddress"): ResetFields(immutable=("spec.parentRef",)),
    (_NETWORKING, "Ingress"): _STATUS,
    (_NETWORKING, "IngressClass"): _PLAIN,
    (_NETWORKING, "NetworkPolicy"): _PLAIN,
    (_NETWORKING, "ServiceCIDR"): _STATUS_ALONE,
    ("node.k8s.io", "RuntimeClass"): _PLAIN,
    ("policy", "PodDisruptionBudget"): _STATUS,
    (_RBAC, "ClusterRole"): _PLAIN,
    (_RBAC, "ClusterRoleBinding"): _PLAIN,
    (_RBAC, "Role"): _PLAIN,
    (_RBAC, "RoleBinding"): _PLAIN,
    (_RESOURCE, "DeviceClass"): _PLAIN,
    (_RESOURCE, "ResourceClaim"): replace(_STATUS_ALONE, immutable=("spec",)),
    (_RESOURCE, "ResourceClaimTemplate"): _FIXED_SPEC,
    (_RESOURCE, "ResourceSlice"): _PLAIN,
    ("scheduling.k8s.io", "PriorityClass"): _PLAIN,
    (_STORAGE, "CSIDriver"): _PLAIN,
    (_STORAGE, "CSINode"): _PLAIN,
    (_STORAGE, "CSIStorageCapacity"): _PLAIN,
    (_STORAGE, "StorageClass"): _PLAIN,
    (_STORAGE, "VolumeAttachment"): replace(_STATUS_ALONE, immutable=("spec",)),
    (_STORAGE, "VolumeAttributesClass"): ResetFields(immutable=("driverName", "parameters")),
}
"""By group and kind: every built-in kind that is stored."""

_LEAF: Final[Json] = {}
_SPEC_TREE: Final = "f:spec"
_STATUS_TREE: Final = "f:status"
_SIGNING_REQUEST: Final = ("certificates.k8s.io", "CertificateSigningRequest")
_METADATA_AND_SPEC: Final[Mapping[str, Any]] = {"f:metadata": _LEAF, _SPEC_TREE: _LEAF}
_DECLARED: Final[Mapping[tuple[str, str, str], Mapping[str, Any]]] = {
    **{
        (group, kind, "status"): _METADATA_AND_SPEC
        for group, kind in (
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
            ("apiregistration.k8s.io", "APIService"),
            ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
            ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
            ("networking.k8s.io", "ServiceCIDR"),
            ("resource.k8s.io", "ResourceClaim"),
            ("storage.k8s.io", "VolumeAttachment"),
        )
    },
    ("", "Namespace", ""): {_STATUS_TREE: _LEAF},
    ("", "Pod", "status"): {
        "f:metadata": {"f:deletionTimestamp": _LEAF, "f:ownerReferences": _LEAF},
        _SPEC_TREE: _LEAF,
    },
    (*_SIGNING_REQUEST, "status"): {_SPEC_TREE: _LEAF, _STATUS_TREE: {"f:conditions": _LEAF}},
    ("networking.k8s.io", "ServiceCIDR", ""): {},
}
"""Kinds whose declared reset fields differ from the fields that their writes keep."""
_RESIZED: Final[Mapping[str, Any]] = {"*": {"f:resizePolicy": _LEAF, "f:resources": _LEAF}}
_ONLY: Final[Mapping[tuple[str, str, str], Mapping[str, Any]]] = {
    ("", "Pod", "ephemeralcontainers"): {"f:spec": {"f:ephemeralContainers": _LEAF}},
    ("", "Pod", "resize"): {"f:spec": {"f:containers": _RESIZED, "f:initContainers": _RESIZED}},
}


def field_resets(group: str, kind: str) -> dict[str, FieldReset]:
    """Returns the fields of a kind that no manager owns, by subresource; "" is the object itself."""
    row = RESET_FIELDS.get((group, kind), _PLAIN)
    declared = [name for own_group, own_kind, name in (*_DECLARED, *_ONLY) if (own_group, own_kind) == (group, kind)]
    return {
        name: FieldReset(_DECLARED.get((group, kind, name), _tree(row.of(name).keeps)), _ONLY.get((group, kind, name)))
        for name in {*row.paths, *declared}
    }


def _tree(paths: tuple[str, ...]) -> Json:
    """Paths as a set of fields.

    >>> _tree(("spec", "metadata.labels"))
    {'f:spec': {}, 'f:metadata': {'f:labels': {}}}
    """
    tree: Json = {}
    for path in paths:
        name, _, rest = path.partition(".")
        below = tree.get(f"f:{name}", {})
        tree[f"f:{name}"] = {**below, **_tree((rest,))} if rest else _LEAF
    return tree
