"""Fields that a write leaves as they were, so that its manager does not own them: status on an object, its spec on
status, and what some kinds add to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from navarch.cluster.server.fields.sets import LEAF, Tree, recursive_difference

__all__ = ["NO_RESET", "Reset", "reset_of"]

_METADATA: Final = "f:metadata"
_SPEC: Final[Tree] = {"f:spec": LEAF}
_STATUS: Final[Tree] = {"f:status": LEAF}
_METADATA_AND_SPEC: Final[Tree] = {_METADATA: LEAF, "f:spec": LEAF}

_KEEP_METADATA_ON_STATUS: Final = frozenset(
    {
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("apiregistration.k8s.io", "APIService"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("internal.apiserver.k8s.io", "StorageVersion"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourcePoolStatusRequest"),
        ("scheduling.k8s.io", "PodGroup"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    }
)
_SPECIAL: Final[Mapping[tuple[str, str, str], Tree]] = {
    ("apps", "Deployment", "status"): {_METADATA: {"f:labels": LEAF}, "f:spec": LEAF},
    ("", "Pod", "status"): {_METADATA: {"f:deletionTimestamp": LEAF, "f:ownerReferences": LEAF}, "f:spec": LEAF},
    ("", "Namespace", "finalize"): _STATUS,
    ("certificates.k8s.io", "CertificateSigningRequest", ""): {"f:spec": LEAF, "f:status": LEAF},
    ("certificates.k8s.io", "CertificateSigningRequest", "status"): {
        "f:spec": LEAF,
        "f:status": {"f:conditions": LEAF},
    },
    ("certificates.k8s.io", "CertificateSigningRequest", "approval"): {
        "f:spec": LEAF,
        "f:status": {"f:certificate": LEAF},
    },
    ("certificates.k8s.io", "PodCertificateRequest", ""): {},
    ("networking.k8s.io", "ServiceCIDR", ""): {},
}
_RESIZED: Final[Tree] = {"*": {"f:resizePolicy": LEAF, "f:resources": LEAF}}
_ONLY: Final[Mapping[tuple[str, str, str], Tree]] = {
    ("", "Pod", "ephemeralcontainers"): {"f:spec": {"f:ephemeralContainers": LEAF}},
    ("", "Pod", "resize"): {"f:spec": {"f:containers": _RESIZED, "f:initContainers": _RESIZED}},
}


class Reset(msgspec.Struct, frozen=True):
    """What is left out of a set. `dropped` are names of members of the object: they need not be looked at at all."""

    dropped: frozenset[str]
    excluded: Tree
    only: Tree | None = None

    def kept(self, tree: Tree) -> Tree:
        """The fields that can be owned."""
        if self.only is not None:
            tree = _matching(tree, self.only)
        return recursive_difference(tree, self.excluded) if self.excluded else tree


NO_RESET: Final = Reset(frozenset(), {})
"""Everything can be owned."""


def reset_of(group: str, kind: str, subresource: str, *, is_custom: bool, has_status: bool) -> Reset:
    """The reset of a kind and subresource; "" is the object itself."""
    excluded = _SPECIAL.get((group, kind, subresource))
    if excluded is None:
        excluded = _usual(group, kind, subresource, is_custom, has_status)
    dropped = frozenset(element[2:] for element, node in excluded.items() if not node)
    return Reset(dropped, excluded, _ONLY.get((group, kind, subresource)))


def _usual(group: str, kind: str, subresource: str, is_custom: bool, has_status: bool) -> Tree:
    if subresource == "status":
        return _METADATA_AND_SPEC if is_custom or (group, kind) in _KEEP_METADATA_ON_STATUS else _SPEC
    return _STATUS if subresource == "" and has_status else {}


def _matching(tree: Tree, pattern: Tree) -> Tree:
    """The members on the way of a pattern, and everything behind its ends; "*" stands for any element."""
    found: Tree = {}
    for element, node in tree.items():
        further: Any = pattern.get(element, pattern.get("*"))
        if element == "." or further is None:
            continue
        kept = _matching(node, further) if node and further else node
        if kept or not node:
            found[element] = {".": LEAF, **kept} if "." in node and further else kept
        elif "." in node:
            found[element] = LEAF
    return found
